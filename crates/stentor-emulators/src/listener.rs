//! A listening port: accepts connections, secures them, and hands them to the right protocol.

use crate::error::EmulatorError;
use crate::service::Service;
use crate::tls::ServerTls;
use crate::{connection, http1};
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

/// Which protocols a port speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocols {
    Http2,
    Http2And1,
}

impl Protocols {
    pub(crate) fn alpn(self) -> &'static [&'static [u8]] {
        match self {
            Self::Http2 => &[b"h2"],
            Self::Http2And1 => &[b"h2", b"http/1.1"],
        }
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
    pub(crate) async fn open<S: Service>(
        address: SocketAddr,
        tls: ServerTls,
        protocols: Protocols,
        service: Arc<S>,
    ) -> Result<Self, EmulatorError> {
        let fail = |source| EmulatorError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let port = Self { address, stop: CancellationToken::new(), tasks: TaskTracker::new() };
        let acceptor = tls.config.map(TlsAcceptor::from);
        let door = Door { acceptor, protocols, service, stop: port.stop.clone(), tasks: port.tasks.clone() };
        port.tasks.spawn(port.stop.clone().run_until_cancelled_owned(door.accept_all(listener)));
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

struct Door<S> {
    acceptor: Option<TlsAcceptor>,
    protocols: Protocols,
    service: Arc<S>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl<S: Service> Door<S> {
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
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let (service, protocols) = (Arc::clone(&self.service), self.protocols);
        let acceptor = self.acceptor.clone();
        let serve = async move {
            match acceptor {
                Some(acceptor) => serve_tls(service, protocols, acceptor, stream).await,
                None => serve_plain(service, protocols, stream).await,
            }
        };
        self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(serve));
    }
}

async fn serve_tls<S: Service>(
    service: Arc<S>,
    protocols: Protocols,
    acceptor: TlsAcceptor,
    stream: TcpStream,
) {
    let handshake = tokio::time::timeout(TLS_HANDSHAKE_LIMIT, acceptor.accept(stream));
    let Ok(Ok(stream)) = handshake.await else { return };
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    serve_http(service, http2 || protocols == Protocols::Http2, stream).await;
}

async fn serve_plain<S: Service>(service: Arc<S>, protocols: Protocols, stream: TcpStream) {
    let http2 = protocols == Protocols::Http2 || begins_with_preface(&stream).await;
    serve_http(service, http2, stream).await;
}

/// Tells an HTTP/2 client with prior knowledge from an HTTP/1.1 client by its first bytes.
async fn begins_with_preface(stream: &TcpStream) -> bool {
    let look = async {
        let mut start = [0; HTTP2_PREFACE_START.len()];
        loop {
            let seen = stream.peek(&mut start).await.unwrap_or(0);
            if seen == 0 || start[..seen] != HTTP2_PREFACE_START[..seen] || seen == start.len() {
                return seen == start.len() && start == *HTTP2_PREFACE_START;
            }
            tokio::time::sleep(PEEK_PAUSE).await;
        }
    };
    tokio::time::timeout(TLS_HANDSHAKE_LIMIT, look).await.unwrap_or(false)
}

async fn serve_http<S, IO>(service: Arc<S>, http2: bool, stream: IO)
where
    S: Service,
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if http2 {
        connection::serve(service, stream).await;
    } else {
        http1::serve(service, stream).await;
    }
}
