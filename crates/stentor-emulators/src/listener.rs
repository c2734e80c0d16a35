//! A listening port: accepts connections, secures them, and passes them to the right protocol.

use crate::error::EmulatorError;
use crate::frames;
use crate::prefetch::Prefetch;
use crate::tls::ServerTls;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const TLS_HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
const PEEK_PAUSE: Duration = Duration::from_millis(1);
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const HTTP2_PREFACE_START: &[u8; 3] = b"PRI";

/// The protocols that a port speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocols {
    Http2,
    Http2And1,
    Xmpp,
}

impl Protocols {
    pub(crate) fn alpn(self) -> &'static [&'static [u8]] {
        match self {
            Self::Http2 => &[b"h2"],
            Self::Http2And1 => &[b"h2", b"http/1.1"],
            // Its clients were built before there was a name for it, and offer none.
            Self::Xmpp => &[],
        }
    }
}

/// A byte stream that a protocol can run on.
pub(crate) trait HttpIo: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<IO: AsyncRead + AsyncWrite + Unpin + Send + 'static> HttpIo for IO {}

/// Serves the connections of a port. A connection in an unsupported protocol ends at once.
pub(crate) trait ConnectionHandler: Send + Sync + 'static {
    /// Serves an HTTP/2 connection to its end, or until it is stopped.
    fn http2(self: Arc<Self>, _io: impl HttpIo, _stop: CancellationToken) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Serves an HTTP/1.1 connection to its end.
    fn http1(self: Arc<Self>, _io: impl HttpIo) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Serves an XMPP stream to its end.
    fn xmpp(self: Arc<Self>, _io: impl HttpIo) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// A running port. Dropping it stops the port and closes its connections.
pub(crate) struct Port {
    address: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Port {
    /// Binds the address and starts to serve.
    pub(crate) async fn open<S: ConnectionHandler>(
        address: SocketAddr,
        tls: ServerTls,
        protocols: Protocols,
        handler: Arc<S>,
    ) -> Result<Self, EmulatorError> {
        let fail = |source| EmulatorError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let port = Self { address, stop: CancellationToken::new(), tasks: TaskTracker::new() };
        let acceptor = tls.config.map(TlsAcceptor::from);
        let accepting = EmulatorListener {
            acceptor,
            protocols,
            handler,
            stop: port.stop.clone(),
            tasks: port.tasks.clone(),
        };
        port.tasks.spawn(port.stop.clone().run_until_cancelled_owned(accepting.accept_all(listener)));
        Ok(port)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening, closes every connection and waits until they are gone.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct EmulatorListener<S> {
    acceptor: Option<TlsAcceptor>,
    protocols: Protocols,
    handler: Arc<S>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl<S: ConnectionHandler> EmulatorListener<S> {
    async fn accept_all(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.admit(stream),
                // Out of file descriptors, most likely: let some connections end.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn admit(&self, stream: TcpStream) {
        // The client has gone already.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let connection = ServedConnection {
            handler: Arc::clone(&self.handler),
            protocols: self.protocols,
            stop: self.stop.clone(),
        };
        let acceptor = self.acceptor.clone();
        self.tasks.spawn(async move {
            match acceptor {
                Some(acceptor) => connection.serve_tls(acceptor, stream).await,
                None => connection.serve_plain(stream).await,
            }
        });
    }
}

/// One connection and its handler.
struct ServedConnection<S> {
    handler: Arc<S>,
    protocols: Protocols,
    stop: CancellationToken,
}

impl<S: ConnectionHandler> ServedConnection<S> {
    async fn serve_tls(self, acceptor: TlsAcceptor, stream: TcpStream) {
        let stream = Prefetch::new(stream, frames::READ_BYTES);
        let handshake = tokio::time::timeout(TLS_HANDSHAKE_LIMIT, acceptor.accept(stream));
        let Some(Ok(Ok(stream))) = self.stop.run_until_cancelled(handshake).await else { return };
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        // A port with a single protocol needs no negotiation.
        let http2 = http2 || self.protocols == Protocols::Http2;
        self.serve_protocol(http2, stream).await;
    }

    async fn serve_plain(self, stream: TcpStream) {
        let http2 = self.protocols == Protocols::Http2
            || self.protocols == Protocols::Http2And1
                && self.stop.run_until_cancelled(begins_with_preface(&stream)).await == Some(true);
        self.serve_protocol(http2, stream).await;
    }

    async fn serve_protocol(self, http2: bool, stream: impl HttpIo) {
        if self.protocols == Protocols::Xmpp {
            self.stop.run_until_cancelled(self.handler.xmpp(stream)).await;
        } else if http2 {
            self.handler.http2(stream, self.stop).await;
        } else {
            self.stop.run_until_cancelled(self.handler.http1(stream)).await;
        }
    }
}

/// Returns an HTTP/2 client with prior knowledge from an HTTP/1.1 client by its first bytes.
async fn begins_with_preface(stream: &TcpStream) -> bool {
    let look = async {
        let mut start = [0; HTTP2_PREFACE_START.len()];
        loop {
            let seen = stream.peek(&mut start).await.unwrap_or(0);
            if seen == 0 || start[..seen] != HTTP2_PREFACE_START[..seen] || seen == start.len() {
                return seen == start.len() && start == *HTTP2_PREFACE_START;
            }
            // `peek` returns at once with the bytes that it has shown before: it cannot wait for more.
            tokio::time::sleep(PEEK_PAUSE).await;
        }
    };
    tokio::time::timeout(TLS_HANDSHAKE_LIMIT, look).await.unwrap_or(false)
}
