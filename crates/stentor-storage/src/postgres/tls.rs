//! TLS to the server, on the one crypto provider of the process.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault::refused_file;
use crate::sql::{Done, unavailable};

/// The verification of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verification {
    /// None: an eavesdropper reads nothing, but an impostor in the server's place is accepted.
    Nothing,
    /// A trusted authority has issued it, for the requested host name.
    Full,
}

/// Creates the TLS connector. The authorities are those of the file, or the system's.
pub(super) fn connector(verification: Verification, roots: Option<&Path>) -> Done<MakeRustlsConnect> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let config = config.map_err(|error| unavailable(error.to_string()))?;
    let config = match verification {
        Verification::Full => config.with_root_certificates(authorities(roots)?),
        Verification::Nothing => {
            config.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
        }
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

fn authorities(file: Option<&Path>) -> Done<RootCertStore> {
    let mut store = RootCertStore::empty();
    let Some(path) = file else {
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        return if store.is_empty() { Err(unavailable("the system has no authorities")) } else { Ok(store) };
    };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| refused_file(path, &error))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| refused_file(path, &error))?;
        store.add(certificate).map_err(|error| refused_file(path, &error))?;
    }
    if store.is_empty() { Err(refused_file(path, &"there are none")) } else { Ok(store) }
}

/// Accepts every certificate; the signatures of the handshake must still be valid.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
