//! The TLS configuration of a connection: roots, ALPN, and the crypto library.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{CipherSuite, ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::endpoint::Roots;
use crate::fault::Fault;

/// Builds the configuration shared by all connections to one endpoint.
pub(crate) fn client_config(roots: &Roots) -> Result<Arc<ClientConfig>, Fault> {
    let store = match roots {
        Roots::Native => native_roots()?,
        Roots::Pem(pem) => pem_roots(pem)?,
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(crypto()))
        .with_safe_default_protocol_versions()
        .map_err(|cause| endpoint_fault(&cause))?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

/// Returns the crypto provider with AES-128 first: as safe for this use, and the cheapest per request.
fn crypto() -> CryptoProvider {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider
}

fn native_roots() -> Result<RootCertStore, Fault> {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        return Err(Fault::Endpoint("the operating system has no trusted certificates".into()));
    }
    Ok(store)
}

fn pem_roots(pem: &[u8]) -> Result<RootCertStore, Fault> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|cause| endpoint_fault(&cause))?;
        store.add(certificate).map_err(|cause| endpoint_fault(&cause))?;
    }
    if store.is_empty() {
        return Err(Fault::Endpoint("the roots hold no certificate in PEM".into()));
    }
    Ok(store)
}

impl Roots {
    /// Fails if the PEM text has no certificates.
    pub fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Native => Ok(()),
            Self::Pem(pem) => pem_roots(pem).map(drop),
        }
    }
}

fn endpoint_fault(cause: &dyn std::fmt::Display) -> Fault {
    Fault::Endpoint(cause.to_string().into())
}
