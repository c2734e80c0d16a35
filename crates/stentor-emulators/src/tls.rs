//! Certificates: an authority of our own, and a server certificate that bears the push services' names.

use crate::error::EmulatorError;
use crate::files;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const AUTHORITY_FILE: &str = "emulator-authority.pem";
const CERTIFICATE_FILE: &str = "ca.pem";

/// The names in every certificate that is made here: this machine's, and those that clients have built in.
const NAMES: &[&str] = &[
    "localhost",
    "127.0.0.1",
    "::1",
    "fcm.googleapis.com",
    "fcm.mtls.googleapis.com",
    "android.googleapis.com",
    "gcm-http.googleapis.com",
    "gcm.googleapis.com",
    "gcm-xmpp.googleapis.com",
    "gcm-preprod.googleapis.com",
    "gcm-staging.googleapis.com",
    "fcm-xmpp.googleapis.com",
    "oauth2.googleapis.com",
    "www.googleapis.com",
    "accounts.google.com",
    "iid.googleapis.com",
    "iamcredentials.googleapis.com",
    "api.push.apple.com",
    "api.sandbox.push.apple.com",
    "api.development.push.apple.com",
    "api-manage-broadcast.push.apple.com",
    "api-manage-broadcast.sandbox.push.apple.com",
    "web.push.apple.com",
    "updates.push.services.mozilla.com",
    "*.notify.windows.com",
    "login.microsoftonline.com",
    "login.live.com",
    "push-api.cloud.huawei.com",
    "oauth-login.cloud.huawei.com",
];

/// The TLS setup of an emulator's port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TlsConfig {
    /// No TLS: HTTP/2 with prior knowledge, and HTTP/1.1 where the service has it.
    Plaintext,
    /// A certificate from an authority of our own.
    Authority {
        /// The directory of the authority and of `ca.pem`; if absent, the authority lives in memory only.
        #[serde(default)]
        directory: Option<PathBuf>,
    },
    /// A certificate chain and key given as PEM files.
    Files {
        /// The chain, the server's own certificate first.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self::Authority { directory: None }
    }
}

/// A port's TLS settings, and the certificate that clients need to trust them.
#[derive(Clone)]
pub(crate) struct ServerTls {
    pub(crate) config: Option<Arc<ServerConfig>>,
    pub(crate) ca_pem: Option<String>,
}

/// Builds the settings of one port that offers these ALPN protocols.
pub(crate) fn server(tls: &TlsConfig, alpn: &[&[u8]], listen: IpAddr) -> Result<ServerTls, EmulatorError> {
    let (chain, key, ca_pem) = match tls {
        TlsConfig::Plaintext => return Ok(ServerTls { config: None, ca_pem: None }),
        TlsConfig::Authority { directory } => issue(directory.as_deref(), listen)?,
        TlsConfig::Files { certificate, key } => read_files(certificate, key)?,
    };
    // Named explicitly, so that no provider has to be installed for the whole process.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(certificate_error)?;
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(ServerTls { config: Some(Arc::new(config)), ca_pem: Some(ca_pem) })
}

type TlsIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, String);

fn read_files(certificate: &Path, key: &Path) -> Result<TlsIdentity, EmulatorError> {
    let pem = fs::read_to_string(certificate).map_err(|source| EmulatorError::file(certificate, source))?;
    let chain = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(certificate_error)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(certificate_error)?;
    Ok((chain, key, pem))
}

fn issue(directory: Option<&Path>, listen: IpAddr) -> Result<TlsIdentity, EmulatorError> {
    let authority = match directory {
        Some(directory) => keep_authority(directory)?,
        None => make_authority()?,
    };
    let key = KeyPair::generate().map_err(certificate_error)?;
    let mut names = NAMES.iter().map(ToString::to_string).collect::<Vec<_>>();
    let own = listen.to_string();
    if !listen.is_unspecified() && !names.contains(&own) {
        names.push(own);
    }
    let mut params = CertificateParams::new(names).map_err(certificate_error)?;
    params.distinguished_name.push(DnType::CommonName, "Stentor emulator");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let issuer = Issuer::from_params(&authority.params, &authority.key);
    let certificate = params.signed_by(&key, &issuer).map_err(certificate_error)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(certificate_error)?;
    Ok((vec![certificate.der().clone()], key, authority.certificate_pem))
}

struct Authority {
    params: CertificateParams,
    key: KeyPair,
    certificate_pem: String,
}

fn make_authority() -> Result<Authority, EmulatorError> {
    let key = KeyPair::generate().map_err(certificate_error)?;
    let params = authority_params();
    let certificate_pem = params.self_signed(&key).map_err(certificate_error)?.pem();
    Ok(Authority { params, key, certificate_pem })
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "Stentor emulator authority");
    params
}

/// Loads the authority of a directory, or makes it; emulators that start together agree on one.
fn keep_authority(directory: &Path) -> Result<Authority, EmulatorError> {
    fs::create_dir_all(directory).map_err(|source| EmulatorError::file(directory, source))?;
    let path = directory.join(AUTHORITY_FILE);
    if !path.exists() {
        let made = make_authority()?;
        let both = format!("{}{}", made.key.serialize_pem(), made.certificate_pem);
        publish_first(&path, both.as_bytes())?;
    }
    // Read back in every case: of emulators that start together, all take the authority of the first.
    let pem = fs::read_to_string(&path).map_err(|source| EmulatorError::file(&path, source))?;
    let key = KeyPair::from_pem(&pem).map_err(certificate_error)?;
    let certificate_pem = pem
        .find("-----BEGIN CERTIFICATE-----")
        .map(|start| pem[start..].to_owned())
        .ok_or_else(|| EmulatorError::Certificate(format!("{} holds no certificate", path.display())))?;
    files::replace(&directory.join(CERTIFICATE_FILE), certificate_pem.as_bytes(), 0o644)?;
    Ok(Authority { params: authority_params(), key, certificate_pem })
}

/// Publishes the authority, unless another emulator has done so.
fn publish_first(path: &Path, bytes: &[u8]) -> Result<(), EmulatorError> {
    // The authority's key is its owner's alone.
    let published = files::write_draft(path, bytes, 0o600).and_then(|draft| {
        // A link fails if the file exists; a rename would replace it.
        let linked = fs::hard_link(&draft, path);
        fs::remove_file(&draft)?;
        match linked {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    });
    published.map_err(|source| EmulatorError::file(path, source))
}

fn certificate_error(error: impl std::fmt::Display) -> EmulatorError {
    EmulatorError::Certificate(error.to_string())
}
