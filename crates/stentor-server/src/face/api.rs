//! What all faces stand on: whatever serves the operations of the contract, and how much is worked on at once.

use std::sync::Arc;

use axum::Router;
use ipnet::IpNet;

use super::http::{ReadTimeout, RequestLimits};
use crate::contract::table::ShowStatus;
use crate::contract::{Identity, Operation, Serve, ServiceResult, status};
use crate::service::Service;
use crate::status::ServerStatus;

/// Everything the faces stand on; clones share it.
#[derive(Clone)]
pub struct Api(Arc<ApiParts>);

/// What the faces stand on.
pub struct ApiParts {
    /// What decides.
    pub service: Arc<Service>,
    /// What the server knows of itself.
    pub board: Arc<ServerStatus>,
    /// How much is worked on at once.
    pub limits: RequestLimits,
    /// Largest body of most requests.
    pub body_max_bytes: usize,
    /// Largest body where many names or a certificate may stand in it.
    pub large_body_max_bytes: usize,
    /// How long an import waits for its body.
    pub import_timeout: ReadTimeout,
    /// Proxies whose word about the caller is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether /docs is served.
    pub docs: bool,
}

impl Api {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: ApiParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Builds the router of all faces over HTTP.
    pub fn router(&self) -> Router {
        super::rest::router(self)
            .merge(super::xmlrpc::router(self))
            .merge(super::grpc::router(self))
            .with_state(self.clone())
    }

    pub(super) fn service(&self) -> &Service {
        &self.0.service
    }

    pub(super) fn board(&self) -> &ServerStatus {
        &self.0.board
    }

    pub(super) fn limits(&self) -> &RequestLimits {
        &self.0.limits
    }

    pub(super) fn trusted_proxies(&self) -> &[IpNet] {
        &self.0.trusted_proxies
    }

    pub(super) fn body_max_bytes(&self) -> usize {
        self.0.body_max_bytes
    }

    pub(super) fn large_body_max_bytes(&self) -> usize {
        self.0.large_body_max_bytes
    }

    pub(super) fn import_timeout(&self) -> &ReadTimeout {
        &self.0.import_timeout
    }

    pub(super) fn has_docs(&self) -> bool {
        self.0.docs
    }
}

impl<O: Operation> Serve<O> for Api
where
    Service: Serve<O>,
{
    fn serve(
        &self,
        by: O::By,
        subject: O::Subject,
        request: O::Request,
    ) -> impl Future<Output = ServiceResult<O::Reply>> + Send {
        Serve::<O>::serve(self.service(), by, subject, request)
    }
}

impl Serve<ShowStatus> for Api {
    fn serve(
        &self,
        by: Identity,
        subject: (),
        request: (),
    ) -> impl Future<Output = ServiceResult<status::Status>> + Send {
        Serve::<ShowStatus>::serve(self.board(), by, subject, request)
    }
}
