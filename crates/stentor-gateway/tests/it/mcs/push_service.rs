//! The hosts contacted by clients of GCM and FCM: HTTP at port 443 and MCS at 5228, both over TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use stentor_gateway::Gateway;
use stentor_gateway::mcs::{self, McsLimits, McsReply, McsWebCaller};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::namespace::NAMES;
use super::program::OneKey;

/// The servers for one client.
pub(super) struct PushService {
    pub(super) authority: PathBuf,
    breaks: CancellationToken,
    _folder: tempfile::TempDir,
}

impl PushService {
    pub(super) async fn start(gateway: &Gateway) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = folder.path().join("authority.pem");
        let acceptor = acceptor(&authority);
        let breaks = CancellationToken::new();
        let http = TcpListener::bind(("127.0.0.1", 443)).await.expect("a port");
        let mcs = TcpListener::bind(("127.0.0.1", 5_228)).await.expect("a port");
        tokio::spawn(answer(http, acceptor.clone(), gateway.clone()));
        tokio::spawn(serve(mcs, acceptor, gateway.clone(), breaks.clone()));
        Self { authority, breaks, _folder: folder }
    }

    /// Ends the first MCS connection.
    pub(super) fn end_first(&self) {
        self.breaks.cancel();
    }
}

fn acceptor(authority_file: &Path) -> TlsAcceptor {
    let (above, below) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.distinguished_name.push(DnType::CommonName, "an authority of one test");
    let pem = authority.self_signed(&above).expect("signed").pem();
    std::fs::write(authority_file, pem).expect("written");
    let names: Vec<String> = NAMES.iter().map(ToString::to_string).collect();
    let mut server = CertificateParams::new(names).expect("names");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.use_authority_key_identifier_extension = true;
    let certificate = server.signed_by(&below, &Issuer::from_params(&authority, &above)).expect("signed");
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(below.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config =
        config.expect("versions").with_no_client_auth().with_single_cert(chain, key).expect("a certificate");
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, gateway: Gateway, breaks: CancellationToken) {
    let mut stopping = breaks;
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(stream) = acceptor.accept(stream).await else { continue };
        tokio::spawn(mcs::serve(
            gateway.clone(),
            stream,
            stopping,
            CancellationToken::new(),
            McsLimits::default(),
        ));
        stopping = CancellationToken::new();
    }
}

async fn answer(listener: TcpListener, acceptor: TlsAcceptor, gateway: Gateway) {
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(stream) = acceptor.accept(stream).await else { continue };
        let gateway = gateway.clone();
        tokio::spawn(async move {
            let mut stream = BufReader::new(stream);
            let request = WebRequest::read(&mut stream).await;
            let reply = request.reply(&gateway).await;
            let head = format!(
                "HTTP/1.1 {} Said\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                reply.status,
                reply.content_type,
                reply.body.len()
            );
            stream.write_all(&[head.as_bytes(), &reply.body].concat()).await.expect("written");
            stream.shutdown().await.expect("ended");
        });
    }
}

/// The part of HTTP that these clients use.
#[derive(Default)]
struct WebRequest {
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl WebRequest {
    async fn read(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Self {
        let mut request = Self::default();
        let mut line = String::new();
        stream.read_line(&mut line).await.expect("a request line");
        request.path = line.split(' ').nth(1).expect("a path").to_owned();
        loop {
            line.clear();
            stream.read_line(&mut line).await.expect("a header");
            let Some((name, value)) = line.split_once(':') else { break };
            request.headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let length =
            request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
        request.body = vec![0; length];
        stream.read_exact(&mut request.body).await.expect("a body");
        request
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    async fn reply(&self, gateway: &Gateway) -> McsReply {
        let key = self.header("x-goog-api-key");
        let parts: Vec<&str> = self.path.trim_matches('/').split('/').collect();
        match parts[..] {
            ["checkin"] => mcs::check_in(gateway, &self.body),
            ["c2dm", "register3"] => {
                mcs::register(gateway, &OneKey, self.header("authorization"), &self.body).await
            }
            ["fcm", "connect", "subscribe"] => mcs::subscribe(gateway, &OneKey, &self.body).await,
            ["v1", "projects", app, "installations"] => {
                mcs::install(gateway, &OneKey, app, key, &self.body).await
            }
            ["v1", "projects", app, "registrations"] => {
                let caller = McsWebCaller { key, installation: None };
                mcs::register_web(gateway, &OneKey, app, caller, &self.body).await
            }
            _ => panic!("nobody asks for {}", self.path),
        }
    }
}
