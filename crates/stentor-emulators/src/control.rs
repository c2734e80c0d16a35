//! A running emulator: its handle, and the plain HTTP port for monitoring and control.

mod http;

use crate::credential::EmulatorCredential;
use crate::device::Devices;
use crate::error::EmulatorError;
use crate::faults::InjectedFault;
use crate::listener::{ConnectionHandler, Port, Protocols};
use crate::observer::{Counts, Observer, ObserverTotals};
use crate::policy::Policy;
use crate::service::EmulatorContext;
use crate::tls::ServerTls;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of an emulator: its messages and its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// The sums over all tokens.
    #[serde(flatten)]
    pub tokens: ObserverTotals,
    /// Connection counts since the start.
    pub wire: WireSums,
    /// Counts of decrypted messages since the start; zeros for services that do not encrypt.
    #[serde(default)]
    pub content: ContentSums,
}

/// Counts of the accepted messages that were decrypted on behalf of their devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentSums {
    /// Messages that were decrypted.
    pub decrypted: u64,
    /// Messages that no key of their device decrypts, or that are malformed below the encryption.
    pub undecryptable: u64,
}

/// Connection counts since the emulator was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireSums {
    /// Connections that spoke the service's protocol.
    pub connections: u64,
    /// Requests that arrived, of every kind; over XMPP the messages for devices.
    pub requests: u64,
    /// Requests that were reset instead of answered.
    pub resets: u64,
    /// GOAWAY frames sent; over XMPP the announcements that a connection is drained.
    pub goaways: u64,
    /// Requests above a GOAWAY's last stream id, left unprocessed.
    pub unprocessed: u64,
    /// Streams refused because they exceeded the stream limit; over XMPP messages above the limit of pending ones.
    pub refused: u64,
}

/// The controls of an emulator, shared by its handle and its control port.
#[derive(Clone)]
pub(crate) struct Control {
    context: Arc<EmulatorContext>,
    devices: Arc<Devices>,
    routes: Option<Arc<dyn ControlRoutes>>,
    /// The policy of the start, to which a reset returns.
    first_policy: Policy,
}

/// Additional routes on the control port of one emulator.
pub(crate) trait ControlRoutes: Send + Sync {
    /// Learns the address of the push service's port, before the control port opens.
    fn opened(&self, _address: SocketAddr) {}

    /// Answers a request; `None` for other routes.
    fn route(&self, method: &str, segments: &[&str], body: &[u8]) -> Option<ControlAnswer>;
}

/// The response of the control port: a value, or a status and a sentence.
pub(crate) type ControlAnswer = Result<serde_json::Value, (::http::StatusCode, String)>;

impl Control {
    pub(crate) fn new(context: Arc<EmulatorContext>, devices: Arc<Devices>) -> Self {
        let first_policy = context.policy.judge().policy.clone();
        Self { context, devices, routes: None, first_policy }
    }

    /// Adds the routes of this emulator.
    pub(crate) fn with_routes(self, routes: Arc<dyn ControlRoutes>) -> Self {
        Self { routes: Some(routes), ..self }
    }

    fn sums(&self) -> Sums {
        let (wire, content) = (&self.context.wire, &self.context.content);
        // Each number is independent: sums are read while requests are served.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Sums {
            tokens: self.context.observer.as_ref().map(|observer| observer.totals()).unwrap_or_default(),
            wire: WireSums {
                connections: read(&wire.connections),
                requests: read(&wire.requests),
                resets: read(&wire.resets),
                goaways: read(&wire.goaways),
                unprocessed: read(&wire.unprocessed),
                refused: read(&wire.refused),
            },
            content: ContentSums {
                decrypted: read(&content.decrypted),
                undecryptable: read(&content.undecryptable),
            },
        }
    }

    fn counts(&self, token: &str) -> Counts {
        self.context.observer.as_ref().map(|observer| observer.lookup(token)).unwrap_or_default()
    }

    fn set_policy(&self, policy: Policy) -> Result<(), EmulatorError> {
        // The policy first: a request that follows a released answer must meet the new one.
        self.context.policy.set(policy)?;
        self.context.faults.release();
        Ok(())
    }

    /// Forgets messages and counts, and returns to the first policy.
    fn reset(&self) -> Result<(), EmulatorError> {
        self.set_policy(self.first_policy.clone())?;
        self.devices.forget_messages();
        if let Some(observer) = &self.context.observer {
            observer.clear();
        }
        Ok(())
    }
}

/// A running emulator; it stops when this is dropped.
pub struct Running {
    control: Control,
    port: Port,
    management_port: Option<Port>,
    control_port: Option<http::ControlPort>,
    tls: ServerTls,
    credential: Option<EmulatorCredential>,
}

impl Running {
    pub(crate) async fn start<S: ConnectionHandler>(
        control: Control,
        control_address: Option<SocketAddr>,
        listen: SocketAddr,
        tls: ServerTls,
        protocols: Protocols,
        handler: Arc<S>,
    ) -> Result<Self, EmulatorError> {
        let port = Port::open(listen, tls.clone(), protocols, handler).await?;
        if let Some(routes) = &control.routes {
            routes.opened(port.address());
        }
        let control_port = match control_address {
            Some(address) => Some(http::ControlPort::open(address, control.clone()).await?),
            None => None,
        };
        Ok(Self { control, port, management_port: None, control_port, tls, credential: None })
    }

    /// Opens a second port, with the same certificate and HTTP/2 only.
    pub(crate) async fn open_management<S: ConnectionHandler>(
        &mut self,
        address: SocketAddr,
        handler: Arc<S>,
    ) -> Result<(), EmulatorError> {
        let port = Port::open(address, self.tls.clone(), Protocols::Http2, handler).await?;
        self.management_port = Some(port);
        Ok(())
    }

    /// Returns the address that the emulator listens on.
    pub fn addr(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the address of the port that manages the channels of APNs, if there is one.
    pub fn management_addr(&self) -> Option<SocketAddr> {
        self.management_port.as_ref().map(Port::address)
    }

    /// Returns the address of the control port, if there is one.
    pub fn control_addr(&self) -> Option<SocketAddr> {
        self.control_port.as_ref().map(http::ControlPort::address)
    }

    /// Returns the certificate that clients must trust, as PEM; `None` without TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.tls.ca_pem.as_deref()
    }

    /// Returns the URL for clients on this machine.
    pub fn url(&self) -> String {
        let address = self.addr();
        let host = match address.ip() {
            IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            host => host,
        };
        let scheme = if self.tls.config.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", SocketAddr::new(host, address.port()))
    }

    /// Returns the credential that the emulator has made, if its settings ask for one.
    pub fn credential(&self) -> Option<&EmulatorCredential> {
        self.credential.as_ref()
    }

    pub(crate) fn announce(&mut self, credential: EmulatorCredential) {
        self.credential = Some(credential);
    }

    /// Returns the counts per token.
    pub fn observer(&self) -> Option<&Arc<Observer>> {
        self.control.context.observer.as_ref()
    }

    /// Returns the counts of one token; zeros when it was never seen.
    pub fn counts(&self, token: &str) -> Counts {
        self.control.counts(token)
    }

    /// Returns the sums.
    pub fn sums(&self) -> Sums {
        self.control.sums()
    }

    /// Replaces the policy and releases stalled responses. Fails on errors that the service does not have.
    pub fn set_policy(&self, policy: Policy) -> Result<(), EmulatorError> {
        self.control.set_policy(policy)
    }

    /// Injects a fault at once.
    pub fn inject(&self, fault: InjectedFault) {
        self.control.context.faults.inject(fault);
    }

    /// Returns the device side.
    pub fn devices(&self) -> &Devices {
        &self.control.devices
    }

    /// Stops the emulator: closes its ports and every connection, and waits until they are gone.
    pub async fn stop(self) {
        self.port.close().await;
        if let Some(port) = &self.management_port {
            port.close().await;
        }
        if let Some(control_port) = &self.control_port {
            control_port.close().await;
        }
    }
}
