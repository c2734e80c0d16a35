//! What all faces stand on: whatever serves the operations of the contract, and how much is worked on at once.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use ipnet::IpNet;

use super::http::middleware::no_such_address;
use super::http::refusal::{Refusal, WriteRefusal};
use super::http::{EntryRule, LimitedRouter, ReadTimeout, RequestLimits, Routes};
use super::socket::SocketFace;
use crate::contract::table::{ListNodes, ShowStatus};
use crate::contract::{Identity, Operation, Serve, ServiceResult, nodes, status};
use crate::keys::ServiceKey;
use crate::listen::SocketCounts;
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
    pub server_status: Arc<ServerStatus>,
    /// What the server signs with.
    pub service_key: ServiceKey,
    /// How much is worked on at once.
    pub limits: Arc<RequestLimits>,
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
    /// What goes through the raw socket.
    pub(crate) socket: Arc<SocketCounts>,
    /// Port of the raw socket, where it is open.
    pub(crate) socket_port: Option<u16>,
}

impl Api {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: ApiParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Builds the router of all faces over HTTP.
    pub(crate) fn router(&self) -> LimitedRouter {
        super::rest::router(self)
            .merge(super::xmlrpc::router(self))
            .merge(super::discovery::router(self))
            .merge(super::soap::router(self))
            .merge(super::grpc::router(self))
            .merge(nowhere(self))
    }

    /// Builds the routes of a node that serves no API: whether it lives and is ready, its version and its metrics.
    pub(crate) fn bare_router(&self) -> LimitedRouter {
        super::rest::health_router(self).merge(nowhere(self))
    }

    /// Returns what speaks to connections of the raw socket.
    pub(crate) fn socket(&self) -> SocketFace {
        SocketFace::new(self.clone())
    }

    pub(super) fn socket_port(&self) -> Option<u16> {
        self.0.socket_port
    }

    pub(super) fn socket_counts(&self) -> &Arc<SocketCounts> {
        &self.0.socket
    }

    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    pub(super) fn server_status(&self) -> &ServerStatus {
        &self.0.server_status
    }

    pub(crate) fn service_key(&self) -> &ServiceKey {
        &self.0.service_key
    }

    pub(crate) fn limits(&self) -> &Arc<RequestLimits> {
        &self.0.limits
    }

    pub(super) fn trusted_proxies(&self) -> &[IpNet] {
        &self.0.trusted_proxies
    }

    pub(crate) fn body_max_bytes(&self) -> usize {
        self.0.body_max_bytes
    }

    pub(crate) fn large_body_max_bytes(&self) -> usize {
        self.0.large_body_max_bytes
    }

    pub(super) fn import_timeout(&self) -> &ReadTimeout {
        &self.0.import_timeout
    }

    /// Counts an operation and its time, through whichever face it was asked.
    fn measured<O: Operation>(
        &self,
        work: impl Future<Output = ServiceResult<O::Reply>> + Send,
    ) -> impl Future<Output = ServiceResult<O::Reply>> + Send {
        self.server_status().operations.measure(O::FACTS.name, work)
    }

    pub(super) fn has_docs(&self) -> bool {
        self.0.docs
    }
}

/// Answers what is asked where there is nothing.
pub(super) async fn answer_nowhere(headers: HeaderMap) -> Response {
    match super::grpc::is_call(&headers) {
        true => super::grpc::no_such_service(),
        false => Refusal(no_such_address()).into_response(),
    }
}

/// Answers at addresses that do not exist, calls of gRPC in their own form.
fn nowhere(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = super::rest::write_refusal;
    Routes::new().fallback(answer_nowhere).limited(api, api.clone(), EntryRule::Open, write)
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
        self.measured::<O>(Serve::<O>::serve(self.service(), by, subject, request))
    }
}

impl Serve<ShowStatus> for Api {
    fn serve(
        &self,
        by: Identity,
        subject: (),
        request: (),
    ) -> impl Future<Output = ServiceResult<status::StatusView>> + Send {
        self.measured::<ShowStatus>(Serve::<ShowStatus>::serve(self.server_status(), by, subject, request))
    }
}

impl Serve<ListNodes> for Api {
    fn serve(
        &self,
        by: Identity,
        subject: (),
        request: (),
    ) -> impl Future<Output = ServiceResult<nodes::NodeList>> + Send {
        self.measured::<ListNodes>(Serve::<ListNodes>::serve(self.server_status(), by, subject, request))
    }
}
