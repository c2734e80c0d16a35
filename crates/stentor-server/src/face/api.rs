//! Shared state of all faces: the services that implement the contract, and the limits on concurrent requests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::read_timeout::ReadTimeout;
use super::request_limits::RequestLimits;
use crate::config::{ApiConfig, ConsoleConfig};
use crate::contract::table::{ListNodes, ListSettings, ShowStatus};
use crate::contract::{Identity, Operation, Serve, ServiceResult, nodes, settings, status};
use crate::keys::ServiceKey;
use crate::listen::SocketCounts;
use crate::oidc::IdentityProvider;
use crate::service::Service;
use crate::status::ServerStatus;

/// Shared state of the faces. Clones refer to the same state.
#[derive(Clone)]
pub struct Api(Arc<ApiState>);

struct ApiState {
    /// The services, which decide.
    service: Arc<Service>,
    /// The state of the server, and its settings.
    server_status: Arc<ServerStatus>,
    /// The key of signed documents.
    service_key: ServiceKey,
    /// The operator's identity provider, if there is one.
    identity_provider: Option<Arc<IdentityProvider>>,
    /// Limits on concurrent requests.
    limits: Arc<RequestLimits>,
    /// Port of the raw socket, if it is open.
    socket_port: Option<u16>,
    /// Read timeout for the body of an import.
    import_timeout: ReadTimeout,
    /// Proxies with a trusted `X-Forwarded-For` header.
    trusted_proxies: Vec<IpNet>,
}

impl Api {
    /// Serves the operations of a service, within limits.
    pub(crate) fn new(
        service: Arc<Service>,
        server_status: Arc<ServerStatus>,
        service_key: ServiceKey,
        identity_provider: Option<Arc<IdentityProvider>>,
        limits: Arc<RequestLimits>,
        socket_port: Option<u16>,
    ) -> Self {
        let config = &server_status.config.api;
        let import_timeout = ReadTimeout {
            idle: Duration::from_secs(config.import_idle_timeout_seconds),
            min_bytes_per_second: config.import_min_bytes_per_second,
            total: Duration::from_secs(config.import_timeout_seconds),
        };
        let trusted_proxies = config.trusted_proxies();
        Self(Arc::new(ApiState {
            service,
            server_status,
            service_key,
            identity_provider,
            limits,
            socket_port,
            import_timeout,
            trusted_proxies,
        }))
    }

    fn config(&self) -> &ApiConfig {
        &self.0.server_status.config.api
    }

    pub(super) fn socket_port(&self) -> Option<u16> {
        self.0.socket_port
    }

    pub(super) fn socket_counts(&self) -> &Arc<SocketCounts> {
        &self.0.server_status.listener.socket
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

    pub(super) fn identity_provider(&self) -> Option<&IdentityProvider> {
        self.0.identity_provider.as_deref()
    }

    pub(crate) fn limits(&self) -> &Arc<RequestLimits> {
        &self.0.limits
    }

    pub(super) fn trusted_proxies(&self) -> &[IpNet] {
        &self.0.trusted_proxies
    }

    pub(crate) fn body_max_bytes(&self) -> usize {
        self.config().body_max_bytes
    }

    pub(crate) fn large_body_max_bytes(&self) -> usize {
        self.config().body_max_bytes.max(self.config().large_body_max_bytes)
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

    pub(super) fn console(&self) -> &ConsoleConfig {
        &self.0.server_status.config.console
    }

    pub(super) fn has_console(&self) -> bool {
        self.console().enabled
    }

    /// Returns true if the API itself speaks TLS.
    pub(super) fn is_encrypted(&self) -> bool {
        self.server_status().listener.certificate.is_some()
    }

    pub(super) fn has_docs(&self) -> bool {
        self.config().docs
    }

    /// Returns the folder of the documentation's site, if one is named.
    pub(super) fn docs_dir(&self) -> Option<&Path> {
        Some(self.config().docs_dir.as_path()).filter(|folder| !folder.as_os_str().is_empty())
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

impl Serve<ListSettings> for Api {
    fn serve(
        &self,
        by: Identity,
        subject: (),
        request: (),
    ) -> impl Future<Output = ServiceResult<settings::SettingList>> + Send {
        self.measured::<ListSettings>(Serve::<ListSettings>::serve(
            self.server_status(),
            by,
            subject,
            request,
        ))
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
