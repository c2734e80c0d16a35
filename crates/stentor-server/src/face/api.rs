//! Shared state of all faces: the services that implement the contract, and the limits on concurrent requests.

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

/// Shared state of the faces. Clones refer to the same state.
#[derive(Clone)]
pub struct Api(Arc<ApiParts>);

/// Parts of the shared state.
pub struct ApiParts {
    /// Implementation of the operations.
    pub service: Arc<Service>,
    /// Status of the server.
    pub server_status: Arc<ServerStatus>,
    /// Signing key of the server.
    pub service_key: ServiceKey,
    /// Limits on concurrent requests.
    pub limits: Arc<RequestLimits>,
    /// Maximum body size for most operations.
    pub body_max_bytes: usize,
    /// Maximum body size for operations with many names or a certificate.
    pub large_body_max_bytes: usize,
    /// Read timeout for the body of an import.
    pub import_timeout: ReadTimeout,
    /// Proxies with a trusted `X-Forwarded-For` header.
    pub trusted_proxies: Vec<IpNet>,
    /// True if `/docs` is served.
    pub docs: bool,
    /// Counters of the raw socket.
    pub(crate) socket: Arc<SocketCounts>,
    /// Port of the raw socket, if it is open.
    pub(crate) socket_port: Option<u16>,
}

impl Api {
    /// Creates the state from its parts.
    #[must_use]
    pub fn new(parts: ApiParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Builds the router of all faces that use HTTP.
    pub(crate) fn router(&self) -> LimitedRouter {
        super::rest::router(self)
            .merge(super::xmlrpc::router(self))
            .merge(super::discovery::router(self))
            .merge(super::soap::router(self))
            .merge(super::grpc::router(self))
            .merge(nowhere(self))
    }

    /// Builds the routes of a node without an API: liveness, readiness, version and metrics.
    pub(crate) fn bare_router(&self) -> LimitedRouter {
        super::rest::health_router(self).merge(nowhere(self))
    }

    /// Returns the handler for connections of the raw socket.
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

    /// Counts an operation and measures its time, for all faces.
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

/// Responds to a request for an unknown path.
pub(super) async fn answer_nowhere(headers: HeaderMap) -> Response {
    match super::grpc::is_call(&headers) {
        true => super::grpc::no_such_service(),
        false => Refusal(no_such_address()).into_response(),
    }
}

/// Returns the fallback for unknown paths. A gRPC call gets a gRPC response.
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
