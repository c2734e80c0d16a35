//! Dialing: name resolution, TCP, TLS, ALPN.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;

use crate::addresses::Addresses;
use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::limits::Limits;
use crate::tls;
use crate::transport::{Session, Transport};

/// Number of a host's addresses that are certainly tried within `connect_timeout_ms`.
const ADDRESSES_TRIED_COUNT: u32 = 3;

/// The parameters for opening connections to one endpoint.
#[derive(Debug)]
pub(crate) struct Dialer {
    host: String,
    port: u16,
    security: Option<(TlsConnectorConfig, ServerName<'static>)>,
    addresses: Arc<dyn Addresses>,
    /// True if the refusal of all addresses has been logged.
    is_logged: AtomicBool,
}

type TlsConnectorConfig = Arc<ClientConfig>;

/// A connection before its first byte of HTTP/2 from this side.
pub(crate) struct Opened {
    pub(crate) transport: Transport,
    /// Bytes that the peer has already sent.
    pub(crate) plain: Vec<u8>,
}

impl Dialer {
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, Fault> {
        let security = if endpoint.cleartext {
            None
        } else {
            let name = ServerName::try_from(endpoint.name().to_owned())
                .map_err(|cause| Fault::Endpoint(cause.to_string().into()))?;
            Some((tls::client_config(&endpoint.roots)?, name))
        };
        Ok(Self {
            host: endpoint.host.clone(),
            port: endpoint.port,
            security,
            addresses: endpoint.addresses.clone(),
            is_logged: AtomicBool::new(false),
        })
    }

    /// Opens a connection up to its first byte of HTTP/2.
    pub(crate) async fn dial(&self, limits: &Limits) -> Result<Opened, Fault> {
        let tcp = self.connect(limits.connect_timeout() / ADDRESSES_TRIED_COUNT).await?;
        // Requests are already gathered for one write; the kernel would delay its last part.
        tcp.set_nodelay(true).map_err(connect_fault)?;
        match &self.security {
            None => Ok(Opened { transport: Transport::plain(tcp), plain: Vec::new() }),
            Some((config, name)) => secure(config, name, tcp).await,
        }
    }

    /// Tries the host's addresses one after the other, each with a time limit, so that an address that drops packets does not use all the
    /// time.
    ///
    /// The host is resolved once, and each connection goes to an address that was checked just before.
    async fn connect(&self, patience: Duration) -> Result<TcpStream, Fault> {
        let addresses = self.addresses.look_up(&self.host, self.port).await.map_err(connect_fault)?;
        let (mut last, mut refused) = (None, None);
        for address in addresses {
            // Each address is checked just before it is used. A check of the name alone could be evaded by a different DNS response.
            if let Err(why) = self.addresses.check(address) {
                refused.get_or_insert(why);
                continue;
            }
            match tokio::time::timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => {
                    // Two tasks that fail at the same moment may both log it; no decision depends on the flag.
                    self.is_logged.store(false, Relaxed);
                    return Ok(tcp);
                }
                Ok(Err(cause)) => last = Some(cause),
                Err(_) => last = Some(io::ErrorKind::TimedOut.into()),
            }
        }
        match (last, refused) {
            (Some(cause), _) => Err(connect_fault(cause)),
            (None, Some(why)) => Err(self.refused(&why)),
            (None, None) => Err(Fault::Connect("the host has no address".into())),
        }
    }

    /// Logs that no address is allowed, once until the next connection succeeds; returns the fault.
    fn refused(&self, why: &str) -> Fault {
        if !self.is_logged.swap(true, Relaxed) {
            tracing::warn!(
                host = self.host,
                port = self.port,
                why,
                "no address of the host may be connected to"
            );
        }
        Fault::AddressRefused(why.into())
    }
}

async fn secure(
    config: &Arc<ClientConfig>,
    name: &ServerName<'static>,
    tcp: TcpStream,
) -> Result<Opened, Fault> {
    let session = Session::new(config, name).map_err(|cause| Fault::Tls(cause.to_string().into()))?;
    let mut plain = Vec::new();
    let transport = Transport::secure(tcp, session, &mut plain).await.map_err(tls_fault)?;
    let agreed = transport.protocol() == Some(b"h2");
    if agreed { Ok(Opened { transport, plain }) } else { Err(Fault::Alpn) }
}

fn connect_fault(cause: io::Error) -> Fault {
    Fault::Connect(cause.to_string().into())
}

fn tls_fault(cause: io::Error) -> Fault {
    let refused = cause.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match refused {
        Some(rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)) => Fault::Alpn,
        _ => Fault::Tls(cause.to_string().into()),
    }
}
