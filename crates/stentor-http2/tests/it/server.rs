//! A conforming server: the `h2` crate's, with or without TLS.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use stentor_http2::{Client, Endpoint, Limits, Roots};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::frames::listen;

/// Serves every connection without TLS; `answer` receives each request with its complete body.
pub(crate) async fn start<F>(answer: F) -> u16
where
    F: Fn(http::Request<()>, Bytes, SendResponse<Bytes>) + Clone + Send + 'static,
{
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(serve(tcp, answer.clone()));
        }
    });
    port
}

/// Starts an echo server with few streams and small windows that leaves each connection gracefully after `leave_after` requests. Returns
/// the port and the counter of processed requests.
pub(crate) async fn start_leaving(leave_after: usize) -> (u16, Arc<AtomicUsize>) {
    let (listener, port) = listen().await;
    let processed = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&processed);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(serve_and_leave(tcp, leave_after, Arc::clone(&counter)));
        }
    });
    (port, processed)
}

async fn serve_and_leave(tcp: TcpStream, leave_after: usize, processed: Arc<AtomicUsize>) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(10).initial_window_size(1_000);
    let Ok(mut connection) = builder.handshake(tcp).await else { return };
    let mut taken = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        taken += 1;
        if taken == leave_after {
            connection.graceful_shutdown();
        }
        let processed = Arc::clone(&processed);
        tokio::spawn(async move {
            let (head, body) = request.into_parts();
            let body = read(body).await;
            processed.fetch_add(1, Ordering::Relaxed);
            echo(http::Request::from_parts(head, ()), body, respond);
        });
    }
}

async fn serve<T, F>(io: T, answer: F)
where
    T: AsyncRead + AsyncWrite + Unpin,
    F: Fn(http::Request<()>, Bytes, SendResponse<Bytes>) + Clone + Send + 'static,
{
    let Ok(mut connection) = h2::server::handshake(io).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let answer = answer.clone();
        tokio::spawn(async move {
            let (head, body) = request.into_parts();
            let body = read(body).await;
            answer(http::Request::from_parts(head, ()), body, respond);
        });
    }
}

async fn read(mut body: RecvStream) -> Bytes {
    let mut all = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        all.extend(data);
    }
    all.into()
}

/// Responds with 200 and the request's own body.
pub(crate) fn echo(_: http::Request<()>, body: Bytes, mut respond: SendResponse<Bytes>) {
    let head = http::Response::new(());
    let mut stream = respond.send_response(head, false).expect("open");
    stream.send_data(body, true).expect("open");
}

/// A certificate for `localhost`, and the server side of TLS with it.
pub(crate) struct Tls {
    pub(crate) pem: String,
    acceptor: TlsAcceptor,
}

impl Tls {
    pub(crate) fn new(alpn: &[&str]) -> Self {
        Self::speaking(alpn, rustls::ALL_VERSIONS)
    }

    /// Creates a server side with these ALPN protocols and versions of TLS only.
    pub(crate) fn speaking(alpn: &[&str], versions: &[&'static rustls::SupportedProtocolVersion]) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a key");
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Self { pem: cert.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) }
    }

    /// Echoes over TLS.
    pub(crate) fn serve(&self, listener: TcpListener) {
        let acceptor = self.acceptor.clone();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(tls) = acceptor.accept(tcp).await {
                        serve(tls, echo).await;
                    }
                });
            }
        });
    }

    /// Completes the TLS handshake with every client and then sends no HTTP/2.
    pub(crate) fn hold(&self, listener: TcpListener) {
        let acceptor = self.acceptor.clone();
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((tcp, _)) = listener.accept().await {
                held.push(acceptor.accept(tcp).await);
            }
        });
    }

    pub(crate) fn client(&self, port: u16, limits: Limits) -> Client {
        let mut endpoint = Endpoint::new("127.0.0.1", port);
        endpoint.server_name = Some("localhost".into());
        endpoint.roots = Roots::Pem(self.pem.clone().into());
        Client::new(&endpoint, limits).expect("usable endpoint")
    }
}
