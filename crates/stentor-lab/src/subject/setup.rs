//! The effect of a cell's factors on the built-in subjects.

use super::store::PointStore;
use super::{SERVICE, SubjectError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The name in the certificate of the laboratory's server.
pub const TLS_NAME: &str = "lab";

/// Maximum of repetitions of a service.
const SERVICES_MAX: u32 = 100_000;

/// A stream of bytes, encrypted or not.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send + Sync {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync> Io for T {}
/// A boxed stream.
pub type Stream = Box<dyn Io>;

/// The parsed factors of a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectSetup {
    /// Factor `connection=fresh`: each exchange opens a connection and closes it.
    pub fresh: bool,
    /// Factor `request=url`: the payload travels in the path of a `GET`, if the dialect is REST with JSON.
    pub url: bool,
    /// Factor `tls=on`: files with the server's certificate and its key, `tls_certificate` and `tls_key`.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Factor `store`: the server reads points from rows of this file.
    pub store: Option<PathBuf>,
    /// Factor `insert`: the client stores points as rows of this file.
    pub insert: Option<PathBuf>,
    /// Factor `sync=resume`: the client continues at the page after the last one that it stored.
    pub resume: bool,
    /// Factor `service`: the server does the work of each request so many times.
    pub services: u32,
    /// All factors, for the operation.
    pub factors: BTreeMap<String, String>,
    /// The seed of contents.
    pub seed: u64,
}

impl SubjectSetup {
    /// Parses factors, and refuses a number of services that is not one of 1 to 100,000.
    pub fn of(factors: &BTreeMap<String, String>, seed: u64) -> Result<Self, SubjectError> {
        let is = |name: &str, level: &str| factors.get(name).is_some_and(|given| given == level);
        let path = |name: &str| factors.get(name).map(PathBuf::from);
        let services = factors.get(SERVICE).map_or(Ok(1), |level| services(level))?;
        Ok(Self {
            fresh: is("connection", "fresh"),
            url: is("request", "url"),
            tls: path("tls_certificate").zip(path("tls_key")).filter(|_| is("tls", "on")),
            store: path("store"),
            insert: path("insert"),
            resume: is("sync", "resume"),
            services,
            factors: factors.clone(),
            seed,
        })
    }

    /// Opens the rows of a client.
    pub(crate) fn rows(&self) -> Result<Option<PointStore>, SubjectError> {
        self.insert.as_deref().map(PointStore::open).transpose()
    }

    /// Returns the TLS connector of a client, if the cell is encrypted.
    pub(crate) fn connector(&self, protocol: &[u8]) -> Result<Option<TlsConnector>, SubjectError> {
        let Some((certificate, _)) = &self.tls else { return Ok(None) };
        let certificate = CertificateDer::from_pem_file(certificate).map_err(tls)?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(tls)?;
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        if !protocol.is_empty() {
            config.alpn_protocols = vec![protocol.to_vec()];
        }
        Ok(Some(TlsConnector::from(Arc::new(config))))
    }

    /// Connects to an address, encrypted if the cell requires it, without ALPN.
    pub async fn connect(&self, target: SocketAddr) -> Result<Stream, SubjectError> {
        connect(target, self.connector(b"")?.as_ref()).await
    }

    /// Returns the TLS acceptor of a server, if the cell is encrypted.
    pub(crate) fn acceptor(&self, protocol: &[u8]) -> Result<Option<TlsAcceptor>, SubjectError> {
        let Some((certificate, key)) = &self.tls else { return Ok(None) };
        let certificate = CertificateDer::from_pem_file(certificate).map_err(tls)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(tls)?;
        let config = ServerConfig::builder().with_no_client_auth();
        let mut config = config.with_single_cert(vec![certificate], key).map_err(tls)?;
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(Some(TlsAcceptor::from(Arc::new(config))))
    }
}

/// Connects to an address, encrypted if there is a connector.
pub(crate) async fn connect(
    target: SocketAddr,
    connector: Option<&TlsConnector>,
) -> Result<Stream, SubjectError> {
    let stream = TcpStream::connect(target).await;
    let stream = stream.map_err(SubjectError::io(format!("connecting to {target}")))?;
    stream.set_nodelay(true).map_err(SubjectError::io("setting up a connection"))?;
    let Some(connector) = connector else { return Ok(Box::new(stream)) };
    let stream = connector.connect(ServerName::try_from(TLS_NAME).map_err(tls)?, stream).await;
    Ok(Box::new(stream.map_err(SubjectError::io("agreeing on TLS"))?))
}

fn services(level: &str) -> Result<u32, SubjectError> {
    let times = level.parse().ok().filter(|times| (1..=SERVICES_MAX).contains(times));
    let wrong = || format!("factor {SERVICE} is {level:?}: a number from 1 to {SERVICES_MAX} was expected");
    times.ok_or_else(|| SubjectError::Exchange(wrong()))
}

fn tls(error: impl std::error::Error) -> SubjectError {
    SubjectError::Exchange(format!("TLS: {error}"))
}
