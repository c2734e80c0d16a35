//! Opening a connection: name, TCP, TLS, ALPN, HTTP/2 preface.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::connection;
use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::limits::Limits;
use crate::pool::Pool;
use crate::tls;
use crate::wire::{Gauge, Wire};

const STREAM_WINDOW_BYTES: u32 = 256 * 1_024;
const CONNECTION_WINDOW_BYTES: u32 = 8 * 1_024 * 1_024;
/// Addresses of a host that are surely tried within `connect_timeout_ms`.
const ADDRESSES_TRIED_COUNT: u32 = 3;
/// Streams that we reset and still recognize when the peer's late frames arrive.
const REMEMBERED_RESETS_MAX_STREAMS: usize = 4_096;

/// All that is needed to open connections to one endpoint.
#[derive(Debug)]
pub(crate) struct Dialer {
    host: String,
    port: u16,
    security: Option<(TlsConnectorConfig, ServerName<'static>)>,
}

type TlsConnectorConfig = Arc<ClientConfig>;

/// An HTTP/2 connection that has not heard from its peer yet.
pub(crate) struct Opened {
    pub(crate) requests: SendRequest<Bytes>,
    pub(crate) connection: Connection<Wire<Transport>, Bytes>,
    pub(crate) gauge: Arc<Gauge>,
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
        Ok(Self { host: endpoint.host.clone(), port: endpoint.port, security })
    }

    async fn dial(&self, limits: &Limits) -> Result<Opened, Fault> {
        let tcp =
            self.connect(limits.connect_timeout() / ADDRESSES_TRIED_COUNT).await.map_err(connect_fault)?;
        tcp.set_nodelay(true).map_err(connect_fault)?;
        let transport = match &self.security {
            None => Transport::Plain(tcp),
            Some((config, name)) => Transport::Tls(Box::new(secure(config, name, tcp).await?)),
        };
        let wire = Wire::new(transport);
        let gauge = wire.gauge();
        let (requests, connection) = builder(limits).handshake(wire).await.map_err(|e| Fault::lost(&e))?;
        Ok(Opened { requests, connection, gauge })
    }

    /// Tries the host's addresses one after the other, so that one that swallows packets does not take all the time.
    async fn connect(&self, patience: Duration) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        let addresses = tokio::net::lookup_host((self.host.as_str(), self.port)).await?;
        for address in addresses {
            match tokio::time::timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => return Ok(tcp),
                Ok(Err(cause)) => last = cause,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }
}

/// Opens one connection for the pool and runs it to its end.
pub(crate) async fn open(pool: Arc<Pool>, not_before: Option<Instant>) {
    if let Some(instant) = not_before {
        pool.pause_until(instant).await;
    }
    if pool.is_closed() {
        return pool.failed_to_open(&Fault::Closed);
    }
    let deadline = Instant::now() + pool.limits.connect_timeout();
    let dialed = tokio::time::timeout_at(deadline, pool.dialer().dial(&pool.limits)).await;
    match dialed.unwrap_or(Err(Fault::ConnectTimeout)) {
        Ok(opened) => connection::run(pool, opened, deadline).await,
        Err(fault) => {
            tracing::debug!(%fault, "no connection");
            pool.failed_to_open(&fault);
        }
    }
}

async fn secure(
    config: &Arc<ClientConfig>,
    name: &ServerName<'static>,
    tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, Fault> {
    let connector = TlsConnector::from(Arc::clone(config));
    let stream = connector.connect(name.clone(), tcp).await.map_err(tls_fault)?;
    let agreed = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    if agreed { Ok(stream) } else { Err(Fault::Alpn) }
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    // No stream before the peer's SETTINGS: it may allow only one.
    builder.initial_max_send_streams(0);
    builder.initial_window_size(STREAM_WINDOW_BYTES);
    builder.initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    builder.max_header_list_size(limits.max_reply_header_bytes);
    builder.max_concurrent_reset_streams(REMEMBERED_RESETS_MAX_STREAMS);
    builder.enable_push(false);
    builder
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

/// The stream under HTTP/2.
#[derive(Debug)]
pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
