//! The certificate of the listener. It is reloaded when its files change, and stays in use until a better one is available.

#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use stentor_core::time::Timestamp;
use x509_cert::Certificate as X509Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Time before the end of a certificate at which a warning is logged.
const ENDS_SOON: Duration = Duration::from_secs(14 * 24 * 3_600);

/// The result of a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CertificateReload {
    /// The files hold the pair that is in use.
    Same,
    /// The files hold another pair, which is used from now on.
    Replaced,
    /// The files hold no usable pair; the former one stays in use.
    Refused(String),
}

/// Certificate chain and key of the listener, with their files.
pub(crate) struct Certificate {
    cert_file: PathBuf,
    key_file: PathBuf,
    provider: Arc<CryptoProvider>,
    current: RwLock<Pair>,
    /// Hash of the content refused last, so that each refusal is logged once.
    refused: Mutex<Option<blake3::Hash>>,
    said_that_it_ends: AtomicBool,
    replaced: AtomicU64,
    refusals: AtomicU64,
}

/// A chain with its key and its validity.
#[derive(Clone)]
struct Pair {
    key: Arc<CertifiedKey>,
    content: blake3::Hash,
    from: Timestamp,
    until: Timestamp,
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificate").field("cert_file", &self.cert_file).finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads both files. An error names the invalid file and the reason.
    pub(crate) fn read(cert_file: &Path, key_file: &Path) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let content = PemFiles::of(cert_file, key_file)?;
        let pair = content.pair(&provider).map_err(|error| format!("{}: {error}", cert_file.display()))?;
        Ok(Self {
            cert_file: cert_file.to_owned(),
            key_file: key_file.to_owned(),
            provider,
            current: RwLock::new(pair),
            refused: Mutex::default(),
            said_that_it_ends: AtomicBool::default(),
            replaced: AtomicU64::default(),
            refusals: AtomicU64::default(),
        })
    }

    /// Creates the TLS settings of a listener that always presents the pair in use.
    pub(crate) fn config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, String> {
        self.config_for(vec![b"h2".to_vec(), b"http/1.1".to_vec()])
    }

    /// The same for a listener without HTTP.
    pub(crate) fn bare_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, String> {
        self.config_for(Vec::new())
    }

    fn config_for(self: &Arc<Self>, alpn_protocols: Vec<Vec<u8>>) -> Result<Arc<ServerConfig>, String> {
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = alpn_protocols;
        Ok(Arc::new(config))
    }

    /// Reads the files and uses their pair if it is valid. Blocks while it reads.
    ///
    /// The files are written one after the other: a pair that does not match is refused now and checked again later.
    pub(crate) fn look(&self, now: Timestamp) -> CertificateReload {
        let content = match PemFiles::of(&self.cert_file, &self.key_file) {
            Ok(content) => content,
            Err(why) => return self.refuse(blake3::hash(why.as_bytes()), why),
        };
        let current = self.current();
        if content.hash() == current.content {
            // If the refused content comes again, it is logged again.
            *lock(&self.refused) = None;
            self.say_that_it_ends(current.until, now);
            return CertificateReload::Same;
        }
        match content.pair(&self.provider).and_then(|pair| better(pair, &current, now)) {
            Ok(pair) => self.replace(pair, now),
            Err(why) => self.refuse(content.hash(), format!("{}: {why}", self.cert_file.display())),
        }
    }

    /// Returns the remaining validity of the certificate in use, in seconds; negative after its end.
    pub(crate) fn seconds_left(&self, now: Timestamp) -> f64 {
        (self.current().until.as_millis() - now.as_millis()) as f64 / 1_000.0
    }

    /// Returns a name by which the certificate in use can be verified. Returns `None` if it contains the address itself, or no name of a
    /// single host.
    pub(crate) fn name_beside(&self, address: IpAddr) -> Option<String> {
        name_beside(self.current().key.end_entity_cert().ok()?, address)
    }

    /// Returns true if the certificate in use is valid for a host.
    pub(crate) fn is_for(&self, host: &str) -> bool {
        let current = self.current();
        current.key.end_entity_cert().is_ok_and(|leaf| stands_for(leaf, host))
    }

    /// Returns the number of replacements.
    pub(crate) fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// Returns the number of refused contents of the files.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    fn current(&self) -> Pair {
        self.current.read().clone()
    }

    fn replace(&self, pair: Pair, now: Timestamp) -> CertificateReload {
        let days_left = pair.until.since(now).as_secs() / 86_400;
        *self.current.write() = pair;
        *lock(&self.refused) = None;
        // The new certificate has its own end, for which a warning may be due.
        self.said_that_it_ends.store(false, Ordering::Relaxed);
        self.replaced.fetch_add(1, Ordering::Relaxed);
        tracing::info!(days_left, "a new certificate is in use; open connections go on with the former");
        CertificateReload::Replaced
    }

    fn refuse(&self, content: blake3::Hash, why: String) -> CertificateReload {
        if lock(&self.refused).replace(content) != Some(content) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%why, "the new certificate cannot be used, the former stays in use");
        }
        CertificateReload::Refused(why)
    }

    fn say_that_it_ends(&self, until: Timestamp, now: Timestamp) {
        if until <= now.plus(ENDS_SOON) && !self.said_that_it_ends.swap(true, Ordering::Relaxed) {
            let hours_left = until.since(now).as_secs() / 3_600;
            tracing::warn!(hours_left, "the certificate of the API ends soon: put a new one in its files");
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().key.clone())
    }
}

/// Contents of both files.
struct PemFiles {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl PemFiles {
    fn of(cert_file: &Path, key_file: &Path) -> Result<Self, String> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| said(path, &error));
        let (cert, key) = (read(cert_file)?, read(key_file)?);
        PrivateKeyDer::from_pem_slice(&key).map_err(|error| said(key_file, &error))?;
        Ok(Self { cert, key })
    }

    fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for part in [&self.cert, &self.key] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize()
    }

    fn pair(&self, provider: &CryptoProvider) -> Result<Pair, String> {
        let chain = CertificateDer::pem_slice_iter(&self.cert).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| error.to_string())?;
        let leaf = chain.first().ok_or("there is no certificate in it")?;
        let (from, until) = validity(leaf)?;
        let key = CertifiedKey::from_der(chain, key, provider).map_err(|error| error.to_string())?;
        Ok(Pair { key: Arc::new(key), content: self.hash(), from, until })
    }
}

/// Refuses a pair that is not valid now, unless the one in use ended before it.
fn better(pair: Pair, current: &Pair, now: Timestamp) -> Result<Pair, String> {
    if pair.from > now {
        return Err("the certificate is not valid yet".to_owned());
    }
    if pair.until <= now && pair.until <= current.until {
        return Err("the certificate has ended".to_owned());
    }
    Ok(pair)
}

fn validity(leaf: &CertificateDer<'_>) -> Result<(Timestamp, Timestamp), String> {
    let parsed = X509Certificate::from_der(leaf).map_err(|error| error.to_string())?;
    let validity = parsed.tbs_certificate.validity;
    let [from, until] = [validity.not_before, validity.not_after].map(|time| time.to_unix_duration());
    let at = |span: Duration| Timestamp::from_millis(i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
    Ok((at(from), at(until)))
}

/// Returns true if a host is among a certificate's names. A wildcard matches one label (RFC 9525, section 6.3).
fn stands_for(leaf: &CertificateDer<'_>, host: &str) -> bool {
    let Ok(name) = ServerName::try_from(host) else { return false };
    ParsedCertificate::try_from(leaf).is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

fn name_beside(leaf: &CertificateDer<'_>, address: IpAddr) -> Option<String> {
    let parsed = X509Certificate::from_der(leaf).ok()?;
    let (_, SubjectAltName(names)) = parsed.tbs_certificate.get().ok()??;
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    if names.iter().any(|name| matches!(name, GeneralName::IpAddress(given) if given.as_bytes() == octets)) {
        return None;
    }
    names.iter().find_map(|name| match name {
        GeneralName::DnsName(name) if !name.as_str().contains('*') => Some(name.to_string()),
        _ => None,
    })
}

fn said(path: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", path.display())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
