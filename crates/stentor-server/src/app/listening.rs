//! The ports of a server. The configuration and the roles of the node decide which of them are opened.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{AppError, LISTEN_FILE, SOCKET_FILE};
use crate::config::{ApiConfig, Config};
use crate::gateway::GatewayListeners;
use crate::listen::{Certificate, ConnectionTimeouts, Connections, Listener};
use crate::pipeline::NodeRole;
use crate::private;

/// The open ports of a server.
pub(super) struct OpenListeners {
    /// The API's.
    pub(super) api: Listener,
    /// The certificate of all ports, where they speak TLS.
    pub(super) certificate: Option<Arc<Certificate>>,
    /// The raw socket's, where it is open.
    pub(super) socket: Option<Listener>,
    /// Those of the gateway's devices.
    pub(super) devices: GatewayListeners,
}

/// The addresses of the API and of the raw socket, also where the system chose the ports.
pub(super) struct OpenAddresses {
    pub(super) api: SocketAddr,
    pub(super) socket: Option<SocketAddr>,
}

impl OpenListeners {
    /// Binds all ports of a node.
    pub(super) async fn open(config: &Config) -> Result<Self, AppError> {
        check_docs(&config.api.docs_dir)?;
        let (api, certificate) = open_listener(&config.api).await?;
        let (socket, devices) = open_others(config, certificate.as_ref(), api.connections()).await?;
        Ok(Self { api, certificate, socket, devices })
    }

    /// Writes addresses with a system-chosen port to files for scripts, atomically.
    pub(super) fn write_addresses(&self, config: &Config) -> Result<OpenAddresses, AppError> {
        let folder = &config.data_dir;
        let api = write_address(&self.api, "api.listen", config.api.listen, &folder.join(LISTEN_FILE))?;
        let wanted = config.api.socket_listen.zip(self.socket.as_ref());
        let socket = wanted.map(|(wanted, socket)| {
            write_address(socket, "api.socket_listen", wanted, &folder.join(SOCKET_FILE))
        });
        Ok(OpenAddresses { api, socket: socket.transpose()? })
    }
}

/// Binds the ports beside the API's: the raw socket if the node has the API, and the ports for devices if it has the gateway.
async fn open_others(
    config: &Config,
    certificate: Option<&Arc<Certificate>>,
    connections: &Arc<Connections>,
) -> Result<(Option<Listener>, GatewayListeners), AppError> {
    let socket = match config.roles.has(NodeRole::Api) {
        true => open_socket(&config.api, certificate, connections).await?,
        false => None,
    };
    let devices = match config.roles.has(NodeRole::Gateway) {
        true => {
            GatewayListeners::bind(&config.gateway, &config.api, certificate, timeouts(&config.api)).await?
        }
        false => GatewayListeners::default(),
    };
    devices.write_addresses(&config.gateway, &config.data_dir)?;
    Ok((socket, devices))
}

/// Refuses a folder of the documentation without a first page.
fn check_docs(folder: &Path) -> Result<(), AppError> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let page = folder.join("index.html");
    let refusal = |cause| AppError::File { what: format!("api.docs_dir: {}", page.display()), cause };
    std::fs::metadata(&page).map(drop).map_err(refusal)
}

/// Binds the API's port.
async fn open_listener(config: &ApiConfig) -> Result<(Listener, Option<Arc<Certificate>>), AppError> {
    let certificate = match config.tls_files() {
        Some((cert, key)) => Some(Arc::new(Certificate::read(cert, key).map_err(AppError::Tls)?)),
        None => None,
    };
    let tls = certificate.as_ref().map(Certificate::config).transpose().map_err(AppError::Tls)?;
    let address = config.listen;
    let connections =
        Connections::new(config.connections_max_count, config.connections_per_address_max_count);
    let listener = Listener::bind(address, tls, connections, timeouts(config)).await;
    let listener = listener.map_err(|cause| AppError::Listen { setting: "api.listen", address, cause })?;
    if certificate.is_none() && !address.ip().to_canonical().is_loopback() {
        tracing::warn!(
            %address,
            "the API is served without TLS beyond this machine: set api.tls_cert_file and api.tls_key_file, \
             or let only a proxy with TLS reach it"
        );
    }
    Ok((listener, certificate))
}

/// Binds the raw socket if an address is configured. Its connections count towards the limits of the API's.
async fn open_socket(
    config: &ApiConfig,
    certificate: Option<&Arc<Certificate>>,
    connections: &Arc<Connections>,
) -> Result<Option<Listener>, AppError> {
    let Some(address) = config.socket_listen else { return Ok(None) };
    let tls = certificate.map(Certificate::bare_config).transpose().map_err(AppError::Tls)?;
    let listener = Listener::bind(address, tls, connections.clone(), timeouts(config)).await;
    let setting = "api.socket_listen";
    let listener = listener.map_err(|cause| AppError::Listen { setting, address, cause })?;
    if certificate.is_none() && !address.ip().to_canonical().is_loopback() {
        tracing::warn!(
            %address,
            "the raw socket is served without TLS beyond this machine: set api.tls_cert_file and api.tls_key_file"
        );
    }
    Ok(Some(listener))
}

pub(super) const fn timeouts(config: &ApiConfig) -> ConnectionTimeouts {
    ConnectionTimeouts {
        header: Duration::from_secs(config.header_timeout_seconds),
        idle: Duration::from_secs(config.connection_idle_timeout_seconds),
    }
}

fn write_address(
    listener: &Listener,
    setting: &'static str,
    address: SocketAddr,
    file: &Path,
) -> Result<SocketAddr, AppError> {
    let bound = listener.local_addr().map_err(|cause| AppError::Listen { setting, address, cause })?;
    if address.port() == 0 {
        let written = private::write(file, format!("{bound}\n").as_bytes());
        written.map_err(|cause| AppError::File { what: file.display().to_string(), cause })?;
    }
    Ok(bound)
}
