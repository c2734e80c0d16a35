//! The listener: accepts connections with or without TLS, and serves HTTP/1.1 and HTTP/2 on one port.

mod certificate;
mod connection_task;
mod connections;
mod counted;
mod login_bytes;
mod preface_timeout;
mod scheme;
mod socket_counts;
mod tls_stream;
mod watched;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::shares::Shares;
pub(crate) use certificate::{Certificate, CertificateReload};
pub(crate) use connection_task::ConnectionTask;
use connections::Place;
pub(crate) use connections::{AtWork, ConnectionCounts, Connections};
use counted::Counted;
pub(crate) use counted::RequestConnection;
use login_bytes::LoginWatch;
use preface_timeout::PrefaceTimeout;
use scheme::SchemeRepair;
pub(crate) use socket_counts::SocketCounts;
use tls_stream::TlsStream;
pub(crate) use watched::WatchedStream;

/// Silence on an HTTP/2 connection after which a PING checks that the peer is alive.
const PING_INTERVAL: Duration = Duration::from_secs(60);
const STREAMS_MAX_COUNT: u32 = 256;
/// Bytes of a body that are accepted before it is read.
const STREAM_WINDOW_BYTES: u32 = 128 * 1_024;
/// Bytes of all bodies of a connection that are accepted before they are read. h2 ends a connection with ENHANCE_YOUR_CALM if the overhead
/// of its unread frames reaches half of this: 256 bytes each, less their payload. A stream of small messages must stay below that when it
/// fills its own window with frames of 28 bytes; the stream window is sixteen times smaller for this reason.
const CONNECTION_WINDOW_BYTES: u32 = 2 * 1_024 * 1_024;
/// Limit of the headers of an HTTP/2 request, each counted with 32 additional bytes (RFC 9113, section 6.5.2). A key, a trace and the
/// headers of proxies take a tenth of it. A request above the limit is refused with 431. One far above it ends the connection, even if its
/// compressed form is small; so does a header block with more CONTINUATION frames than the limit requires.
const HEADER_LIST_MAX_BYTES: u32 = 16 * 1_024;
/// Requests that a peer resets before they are processed. Each costs the server more than the peer, so a peer with more of them at once
/// loses its connection (CVE-2023-44487). A caller that gives up resets its requests in flight once.
const RESETS_UNSEEN_MAX_COUNT: usize = 20;
/// Streams that the server resets because of errors of the peer, over the life of a connection. One more ends it; otherwise a peer could
/// make the server write resets without limit (RUSTSEC-2024-0003). A correct peer causes none.
const RESETS_FOR_CAUSE_MAX_COUNT: usize = 1_024;
/// Buffer of an HTTP/1.1 connection for a request before it is processed: its headers at most.
const HTTP1_BUFFER_MAX_BYTES: usize = 64 * 1_024;
/// Time that a connection without requests has to close after a graceful shutdown begins.
const FAREWELL: Duration = Duration::from_secs(5);
/// A connection ends if data stays unacknowledged by the peer's system for this long. This detects a peer that vanished, and one that never
/// reads. By its default the system would continue for a quarter of an hour.
const UNCONFIRMED_MAX: Duration = Duration::from_secs(60);
/// Bytes of a TLS handshake that are not counted. A ClientHello with post-quantum keys takes half of it.
const HANDSHAKE_FREE_BYTES: usize = 4 * 1_024;
/// Wait after a failed accept, so that a lack of file descriptors causes no busy loop; idle connections are closed to free theirs.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The address of the peer of a request's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// State of the listener and the middleware; clones share it.
#[derive(Clone)]
pub(crate) struct ListenerState {
    /// The certificate, if there is one.
    pub(crate) certificate: Option<Arc<Certificate>>,
    /// Open connections.
    pub(crate) connections: Arc<Connections>,
    /// Requests being processed.
    pub(crate) requests: Arc<Shares>,
    /// Bytes of their bodies.
    pub(crate) bodies: Arc<Shares>,
    /// Bytes of replies that the peers have not read yet.
    pub(crate) replies: Arc<Shares>,
    /// Counters of the raw socket.
    pub(crate) socket: Arc<SocketCounts>,
}

/// Timeouts of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionTimeouts {
    /// For a TLS handshake, for the headers of a request, and until the first request.
    pub(crate) header: Duration,
    /// Without a request.
    pub(crate) idle: Duration,
}

/// An accepted connection.
pub(crate) struct Accepted {
    /// The address of the peer.
    pub(crate) peer: PeerAddress,
    /// Its place among all connections.
    pub(crate) place: Arc<Place>,
    /// Cancelled when the server stops.
    pub(crate) stopping: CancellationToken,
    /// Its timeouts.
    pub(crate) timeouts: ConnectionTimeouts,
}

/// The protocol of a listener's connections.
pub(crate) trait ConnectionProtocol: Clone + Send + Sync + 'static {
    /// Serves until the peer has disconnected, the connection was idle for too long, another needs its place, or the server stops.
    fn serve_connection<S>(self, stream: S, accepted: Accepted) -> ConnectionTask
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static;
}

/// Routes that each have limits. Implementors are responsible for that.
pub(crate) trait LimitedRoutes {
    /// Returns the router.
    fn into_router(self) -> Router;
}

/// HTTP/1.1 and HTTP/2, served only by routes with limits.
#[derive(Clone)]
pub(crate) struct Http(Router);

/// A listener that is bound and not yet serving.
pub(crate) struct Listener {
    socket: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    connections: Arc<Connections>,
    timeouts: ConnectionTimeouts,
}

impl Listener {
    /// Binds the address.
    pub(crate) async fn bind(
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        connections: Arc<Connections>,
        timeouts: ConnectionTimeouts,
    ) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        Ok(Self { socket, tls, connections, timeouts })
    }

    /// Returns the bound address.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the open connections.
    pub(crate) const fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Serves until `stop`, then lets each connection finish its requests.
    pub(crate) async fn serve<P: ConnectionProtocol>(self, protocol: P, stop: impl Future<Output = ()>) {
        let (served_tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
        tokio::pin!(stop);
        loop {
            let next = async {
                // Before accepting: a connection without a place waits in the system's backlog and costs this process nothing.
                self.connections.room().await;
                self.socket.accept().await
            };
            tokio::select! {
                // The stop first: otherwise a listener under constant load would not notice it.
                biased;
                () = &mut stop => break,
                accepted = next => match accepted {
                    Ok((stream, peer)) => if let Some(place) = self.connections.admit(peer.ip()) {
                        let connection = self.accept(stream, PeerAddress(peer), place, &protocol, &stopping);
                        drop(served_tasks.spawn(connection));
                    },
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        self.connections.relieve();
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        // Before waiting for the connections: new ones are refused at once and may try another server.
        drop(self.socket);
        stopping.cancel();
        // After the last one was spawned; otherwise the wait would not end.
        served_tasks.close();
        served_tasks.wait().await;
    }

    fn accept<P: ConnectionProtocol>(
        &self,
        stream: TcpStream,
        peer: PeerAddress,
        place: Place,
        protocol: &P,
        stopping: &CancellationToken,
    ) -> ConnectionTask {
        let (tls, timeouts) = (self.tls.clone(), self.timeouts);
        let (protocol, stopping) = (protocol.clone(), stopping.clone());
        let _unset_is_slower_not_wrong = stream.set_nodelay(true);
        let milliseconds = UNCONFIRMED_MAX.as_millis() as u32;
        let _unset_is_later_not_wrong = sockopt::set_tcp_user_timeout(&stream, milliseconds);
        let accepted = Accepted { peer, place: Arc::new(place), stopping, timeouts };
        let Some(tls) = tls else { return protocol.serve_connection(stream, accepted) };
        ConnectionTask::new(async move {
            let (stream, accepted) = greet(tls, stream, accepted).await?;
            Some(protocol.serve_connection(stream, accepted))
        })
    }
}

/// Performs the TLS handshake. Returns `None` if it fails, takes too long, or another connection needs the place.
async fn greet(
    tls: Arc<ServerConfig>,
    stream: TcpStream,
    accepted: Accepted,
) -> Option<(Box<TlsStream<WatchedStream<TcpStream, LoginWatch>>>, Accepted)> {
    let room = accepted.place.login_room();
    let stream = WatchedStream::new(stream, room.watch(HANDSHAKE_FREE_BYTES));
    let stream = tokio::select! {
        greeted = timeout(accepted.timeouts.header, TlsStream::accept(tls, stream)) => greeted.ok()?.ok()?,
        () = accepted.place.replaced() => return None,
    };
    room.free();
    Some((stream, accepted))
}

impl ConnectionProtocol for Http {
    fn serve_connection<S>(self, stream: S, accepted: Accepted) -> ConnectionTask
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        ConnectionTask::only(self.serve(stream, accepted))
    }
}

impl Http {
    /// Creates the protocol from routes with limits.
    pub(crate) fn new(routes: impl LimitedRoutes) -> Self {
        Self(routes.into_router())
    }

    async fn serve<S>(self, stream: S, accepted: Accepted)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self(router) = self;
        let service = TowerToHyperService::new(Counted::new(router, &accepted));
        let Accepted { place, stopping, timeouts, .. } = accepted;
        let stream = TokioIo::new(WatchedStream::new(
            WatchedStream::new(stream, PrefaceTimeout::new(timeouts.header)),
            SchemeRepair::new(),
        ));
        let builder = builder(timeouts.header);
        let mut connection = pin!(builder.serve_connection_with_upgrades(stream, service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = place.replaced() => return,
            () = place.idle(timeouts.header, timeouts.idle) => {
                connection.as_mut().graceful_shutdown();
                let farewell = async { tokio::join!(sleep(FAREWELL), place.at_rest()) };
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = place.replaced() => return,
                    _ = farewell => return,
                }
            }
            () = stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        }
    }
}

fn builder(header_wait: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_wait)
        .max_buf_size(HTTP1_BUFFER_MAX_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX_COUNT)
        .keep_alive_interval(PING_INTERVAL)
        .max_header_list_size(HEADER_LIST_MAX_BYTES)
        .max_pending_accept_reset_streams(RESETS_UNSEEN_MAX_COUNT)
        .max_local_error_reset_streams(RESETS_FOR_CAUSE_MAX_COUNT)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    builder
}
