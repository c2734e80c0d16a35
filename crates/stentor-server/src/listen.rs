//! Accepts connections and serves HTTP/1.1 and HTTP/2 on one port, with or without TLS.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::prompt::Prompt;

/// Longest wait for the headers of a request, and for the TLS handshake.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Silence on an HTTP/2 connection after which a PING asks whether it lives.
const PING_INTERVAL: Duration = Duration::from_secs(60);
const STREAMS_MAX_COUNT: u32 = 1_024;
/// Wait after accepting failed, so that a lack of file handles does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Who is at the other end of a request's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer(pub(crate) SocketAddr);

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
                    Ok((stream, peer)) => self.welcome((stream, Peer(peer)), place, &router, &open),
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
        (stream, peer): (TcpStream, Peer),
        place: Option<OwnedSemaphorePermit>,
        router: &Router,
        open: &GracefulShutdown,
    ) {
        let (tls, router, watcher) = (self.tls.clone(), router.clone(), open.watcher());
        let _unset_is_slower_not_wrong = stream.set_nodelay(true);
        tokio::spawn(async move {
            let _place = place;
            match tls {
                None => converse((stream, peer), router, watcher).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(HEADER_TIMEOUT, tls.accept(stream)).await {
                        converse((stream, peer), router, watcher).await;
                    }
                }
            }
        });
    }
}

async fn converse<S>(
    (stream, peer): (S, Peer),
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
) where
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
    let service = TowerToHyperService::new(router.map_request(move |request| told(request, peer)));
    let connection =
        builder.serve_connection(TokioIo::new(Prompt::new(stream, HEADER_TIMEOUT)), service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Tells a request who is at the other end.
fn told<B>(mut request: axum::http::Request<B>, peer: Peer) -> axum::http::Request<B> {
    request.extensions_mut().insert(peer);
    request
}

/// Reads certificate chain and key.
pub(crate) fn tls_config(cert_file: &Path, key_file: &Path) -> Result<Arc<ServerConfig>, String> {
    let said = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let chain = CertificateDer::pem_file_iter(cert_file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| said(cert_file, &error))?;
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| said(key_file, &error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| said(cert_file, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
