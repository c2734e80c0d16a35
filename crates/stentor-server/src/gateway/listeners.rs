//! Listeners of the protocols other than HTTP: each has an address of its own, and the API's certificate.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use stentor_gateway::Gateway;
use stentor_gateway::ccs::{self, CcsServer};
use stentor_gateway::mcs::{self, McsLimits};
use stentor_gateway::mqtt::{self, MqttLimits};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::config::{ApiConfig, GatewayConfig};
use crate::listen::{
    Accepted, Certificate, ConnectionProtocol, ConnectionTask, ConnectionTimeouts, Connections, Listener,
    WatchedStream,
};
use crate::node::AppError;
use crate::private;

/// Bytes received before the login that are not counted: most logins are shorter.
const LOGIN_FREE_BYTES: usize = 1_024;

/// A protocol with a port of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortProtocol {
    Mcs,
    Mqtt,
    Ccs,
}

impl PortProtocol {
    const ALL: [Self; 3] = [Self::Mcs, Self::Mqtt, Self::Ccs];

    const fn setting(self) -> &'static str {
        match self {
            Self::Mcs => "gateway.mcs_listen",
            Self::Mqtt => "gateway.mqtt_listen",
            Self::Ccs => "gateway.ccs_listen",
        }
    }

    /// File in the data directory that holds the address if the system chose the port.
    const fn file(self) -> &'static str {
        match self {
            Self::Mcs => "mcs.addr",
            Self::Mqtt => "mqtt.addr",
            Self::Ccs => "ccs.addr",
        }
    }

    const fn address(self, config: &GatewayConfig) -> Option<SocketAddr> {
        match self {
            Self::Mcs => config.mcs_listen,
            Self::Mqtt => config.mqtt_listen,
            Self::Ccs => config.ccs_listen,
        }
    }
}

/// Listeners that are bound and not yet serving.
#[derive(Default)]
pub(crate) struct GatewayListeners(Vec<(PortProtocol, Listener)>);

impl GatewayListeners {
    /// Binds the listeners that have an address.
    pub(crate) async fn bind(
        config: &GatewayConfig,
        api: &ApiConfig,
        certificate: Option<&Arc<Certificate>>,
        timeouts: ConnectionTimeouts,
    ) -> Result<Self, AppError> {
        let connections =
            Connections::new(config.connections_max_count, config.connections_per_address_max_count);
        let mut listeners = Vec::new();
        for protocol in PortProtocol::ALL {
            let Some(address) = protocol.address(config) else { continue };
            let tls = certificate.map(Certificate::bare_config).transpose().map_err(AppError::Tls)?;
            let bound = Listener::bind(address, tls, connections.clone(), timeouts).await;
            let setting = protocol.setting();
            let bound = bound.map_err(|cause| AppError::Listen { setting, address, cause })?;
            if api.tls_files().is_none() && !address.ip().to_canonical().is_loopback() {
                tracing::warn!(%address, setting, "devices are served without TLS beyond this machine");
            }
            listeners.push((protocol, bound));
        }
        Ok(Self(listeners))
    }

    /// Writes addresses with a system-chosen port into the data directory.
    pub(crate) fn write_addresses(&self, config: &GatewayConfig, folder: &Path) -> Result<(), AppError> {
        for (protocol, listener) in &self.0 {
            let Some(address) = protocol.address(config).filter(|address| address.port() == 0) else {
                continue;
            };
            let setting = protocol.setting();
            let bound =
                listener.local_addr().map_err(|cause| AppError::Listen { setting, address, cause })?;
            let file = folder.join(protocol.file());
            let written = private::write(&file, format!("{bound}\n").as_bytes());
            written.map_err(|cause| AppError::File { what: file.display().to_string(), cause })?;
        }
        Ok(())
    }

    /// Serves devices, and app servers that speak CCS, until `stop`.
    pub(crate) async fn serve(self, gateway: &Gateway, app_servers: CcsServer, stop: CancellationToken) {
        let serving = self.0.into_iter().map(|(protocol, listener)| {
            let (gateway, app_servers) = (gateway.clone(), app_servers.clone());
            let connections = DeviceConnections { gateway, app_servers, protocol };
            listener.serve(connections, stop.clone().cancelled_owned())
        });
        join_all(serving).await;
    }
}

/// Connections of devices on one port.
#[derive(Clone)]
struct DeviceConnections {
    gateway: Gateway,
    app_servers: CcsServer,
    protocol: PortProtocol,
}

impl DeviceConnections {
    /// Returns the future that serves a connection to its end. It is boxed per protocol; otherwise every connection would need the memory
    /// of the largest protocol.
    fn serving<S>(
        self,
        stream: S,
        stopping: CancellationToken,
        admitted: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { gateway, app_servers, protocol } = self;
        match protocol {
            PortProtocol::Mcs => {
                Box::pin(mcs::serve(gateway, stream, stopping, admitted, McsLimits::default()))
            }
            PortProtocol::Mqtt => {
                Box::pin(mqtt::serve(gateway, stream, stopping, admitted, MqttLimits::default()))
            }
            PortProtocol::Ccs => Box::pin(ccs::serve(app_servers, stream, stopping, admitted)),
        }
    }
}

impl ConnectionProtocol for DeviceConnections {
    fn serve_connection<S>(self, stream: S, accepted: Accepted) -> ConnectionTask
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (admitted, Accepted { place, stopping, .. }) = (CancellationToken::new(), accepted);
        let room = place.login_room();
        let stream = WatchedStream::new(stream, room.watch(LOGIN_FREE_BYTES));
        let mut serving = self.serving(stream, stopping, admitted.clone());
        ConnectionTask::new(async move {
            // A connection without a login can be replaced by a new one; otherwise silent connections could keep devices out.
            tokio::select! {
                () = &mut serving => return None,
                () = place.replaced() => return None,
                () = admitted.cancelled() => {}
            }
            room.free();
            // A silent device is not idle: it waits for messages, and is not replaced.
            let permit = place.keep()?;
            Some(ConnectionTask::only(serving.map(move |()| drop(permit))))
        })
    }
}
