//! The server to which requests go.

use std::sync::Arc;

use bytes::Bytes;
use http::uri::{Authority, InvalidUri, Scheme};
use rustls::pki_types::ServerName;

use crate::addresses::{Addresses, AllAddresses};

/// Trusted root certificates.
#[derive(Clone)]
pub enum Roots {
    /// The certificates of the operating system.
    Native,
    /// The certificates in this PEM text, and no others.
    Pem(Bytes),
}

impl std::fmt::Debug for Roots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Native => f.write_str("Native"),
            Self::Pem(bytes) => write!(f, "Pem({} bytes)", bytes.len()),
        }
    }
}

/// One HTTP/2 server.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Name or address to connect to.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Name in the certificate and in `:authority`; `None` for the host.
    pub server_name: Option<String>,
    /// Root certificates that must vouch for the peer.
    pub roots: Roots,
    /// True for HTTP/2 without TLS, by prior knowledge (RFC 9113, section 3.3).
    pub cleartext: bool,
    /// Name resolution and address check, called for each connection.
    pub addresses: Arc<dyn Addresses>,
}

impl Endpoint {
    /// Describes a server with a certificate that the operating system trusts, without restriction of its addresses.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            server_name: None,
            roots: Roots::Native,
            cleartext: false,
            addresses: Arc::new(AllAddresses),
        }
    }

    /// Returns the name required in the peer's certificate.
    #[must_use]
    pub fn name(&self) -> &str {
        self.server_name.as_deref().unwrap_or(&self.host)
    }

    /// Returns true if a certificate can be for the name.
    #[must_use]
    pub fn has_valid_name(&self) -> bool {
        ServerName::try_from(self.name()).is_ok()
    }

    pub(crate) fn scheme(&self) -> Scheme {
        if self.cleartext { Scheme::HTTP } else { Scheme::HTTPS }
    }

    pub(crate) fn authority(&self) -> Result<Authority, InvalidUri> {
        let usual = if self.cleartext { 80 } else { 443 };
        let name = self.name();
        let name = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
        if self.port == usual { name.parse() } else { format!("{name}:{}", self.port).parse() }
    }
}
