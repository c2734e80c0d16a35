//! Accepts connections and serves HTTP/1.1 and HTTP/2 on one port, with or without TLS.

mod certificate;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::prompt::Prompt;
use crate::shares::Shares;
pub(crate) use certificate::{Certificate, Look};

/// Longest wait for the headers of a request, and for the TLS handshake.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Silence on an HTTP/2 connection after which a PING asks whether it lives.
const PING_INTERVAL: Duration = Duration::from_secs(60);
const STREAMS_MAX_COUNT: u32 = 1_024;
/// Wait after accepting failed, so that a lack of file handles does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the listener and the front know of themselves; clones share it.
#[derive(Clone)]
pub(crate) struct ListenerState {
    /// The certificate, when there is one.
    pub(crate) certificate: Option<Arc<Certificate>>,
    /// Requests at work.
    pub(crate) requests: Arc<Shares>,
    /// Bytes of their bodies.
    pub(crate) bodies: Arc<Shares>,
}

/// A listener that is bound and not yet serving.
pub(crate) struct Door {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    places: Arc<Semaphore>,
}

impl Door {
    /// Binds the address.
    pub(crate) async fn bind(
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        connections_max_count: usize,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let places = Arc::new(Semaphore::new(connections_max_count.min(Semaphore::MAX_PERMITS)));
        Ok(Self { listener, tls: tls.map(TlsAcceptor::from), places })
    }

    /// Gives the bound address.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`, then lets every connection finish what it is at.
    pub(crate) async fn serve(self, router: Router, stop: impl Future<Output = ()>) {
        let open = GracefulShutdown::new();
        tokio::pin!(stop);
        loop {
            let next = async {
                let place = self.places.clone().acquire_owned().await.ok();
                (place, self.listener.accept().await)
            };
            tokio::select! {
                biased;
                () = &mut stop => break,
                (place, accepted) = next => match accepted {
                    Ok((stream, _)) => self.welcome(stream, place, &router, &open),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(self.listener);
        open.shutdown().await;
    }

    fn welcome(
        &self,
        stream: TcpStream,
        place: Option<OwnedSemaphorePermit>,
        router: &Router,
        open: &GracefulShutdown,
    ) {
        let (tls, router, watcher) = (self.tls.clone(), router.clone(), open.watcher());
        let _unset_is_slower_not_wrong = stream.set_nodelay(true);
        tokio::spawn(async move {
            let _place = place;
            match tls {
                None => converse(stream, router, watcher).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(HEADER_TIMEOUT, tls.accept(stream)).await {
                        converse(stream, router, watcher).await;
                    }
                }
            }
        });
    }
}

async fn converse<S>(stream: S, router: Router, watcher: hyper_util::server::graceful::Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX_COUNT)
        .keep_alive_interval(PING_INTERVAL)
        .adaptive_window(true);
    let service = TowerToHyperService::new(router);
    let connection =
        builder.serve_connection(TokioIo::new(Prompt::new(stream, HEADER_TIMEOUT)), service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection broke");
    }
}
