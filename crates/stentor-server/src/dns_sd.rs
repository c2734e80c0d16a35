//! Discovery on the local network: DNS-SD (RFC 6763) over multicast DNS (RFC 6762).
//!
//! An announcement consists of an address and the fingerprint of the key that signs the service document, which holds everything else. Any
//! machine on the network can send any announcement: a client must read the document, check its signature, and know the fingerprint.

use std::net::SocketAddr;

#[cfg(not(feature = "mdns"))]
mod absent;
#[cfg(feature = "mdns")]
mod multicast;

#[cfg(not(feature = "mdns"))]
pub use absent::{Announcement, search};
#[cfg(feature = "mdns")]
pub use multicast::{Announcement, search};

/// The reason why multicast DNS does not work here.
#[derive(Debug, thiserror::Error)]
#[error("multicast DNS: {0}")]
pub struct DnsSdError(String);

/// The content of an announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedAddress {
    /// The address it listens on.
    pub address: SocketAddr,
    /// True if the server uses TLS.
    pub is_encrypted: bool,
    /// The name to connect to over TLS, if the certificate holds names and not this address.
    pub host: Option<String>,
    /// The thumbprint of its key (RFC 7638).
    pub fingerprint: String,
}

impl AnnouncedAddress {
    /// Returns the address as a URL; over TLS with the name that is in the certificate.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.host {
            _ if !self.is_encrypted => format!("http://{}", self.address),
            Some(host) => format!("https://{host}:{}", self.address.port()),
            None => format!("https://{}", self.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_tls_a_server_is_asked_by_the_name_that_it_announces() {
        let url = |is_encrypted, host: Option<&str>| {
            let (address, host) = ("10.0.0.7:8686".parse().expect("an address"), host.map(str::to_owned));
            AnnouncedAddress { address, is_encrypted, host, fingerprint: String::new() }.url()
        };
        assert_eq!(url(true, Some("push.example.org")), "https://push.example.org:8686");
        assert_eq!(url(true, None), "https://10.0.0.7:8686");
        assert_eq!(url(false, Some("push.example.org")), "http://10.0.0.7:8686");
    }
}
