//! The certificate of a run: self-signed, made once, and trusted by our clients only.

use super::SubjectError;
use super::setup::TLS_NAME;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "tls";
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// Makes a certificate in the directory of a run, unless one exists.
pub(crate) fn make(run: &Path) -> Result<(), SubjectError> {
    make_named(run, TLS_NAME)
}

/// Makes a certificate for a server name, unless one exists.
pub(crate) fn make_named(run: &Path, name: &str) -> Result<(), SubjectError> {
    let [certificate, key] = files(run);
    if certificate.exists() && key.exists() {
        return Ok(());
    }
    let directory = run.join(DIRECTORY);
    let wrong = |source| SubjectError::Io { what: directory.display().to_string(), source };
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]);
    let made = made.map_err(|error| wrong(std::io::Error::other(error.to_string())))?;
    std::fs::create_dir_all(&directory).map_err(wrong)?;
    std::fs::write(certificate, made.cert.pem()).map_err(wrong)?;
    std::fs::write(key, made.signing_key.serialize_pem()).map_err(wrong)
}

/// Adds the paths of the certificate and key to the factors of cells with TLS.
pub(crate) fn add(factors: &mut BTreeMap<String, String>, run: &Path) {
    if factors.get("tls").is_some_and(|level| level == "on") {
        let [certificate, key] = files(run).map(|path| path.display().to_string());
        factors.insert("tls_certificate".into(), certificate);
        factors.insert("tls_key".into(), key);
    }
}

fn files(run: &Path) -> [PathBuf; 2] {
    [CERTIFICATE, KEY].map(|name| run.join(DIRECTORY).join(name))
}
