//! Enforces the operator's outbound policy on each address of each connection of the adapters.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use stentor_core::outbound::{OutboundPolicy, Refused};
use stentor_core::outcome::Reason;
use stentor_http2::{Addresses, AllAddresses, Endpoint};

/// The policy and the name resolver.
#[derive(Debug, Clone)]
pub struct Outbound {
    policy: Arc<OutboundPolicy>,
    names: Arc<dyn Addresses>,
}

impl Outbound {
    /// Applies the policy to the addresses found by the system's resolver.
    #[must_use]
    pub fn new(policy: OutboundPolicy) -> Self {
        Self::with_names(policy, Arc::new(AllAddresses))
    }

    /// Applies the policy to the addresses found by another resolver.
    #[must_use]
    pub fn with_names(policy: OutboundPolicy, names: Arc<dyn Addresses>) -> Self {
        Self { policy: Arc::new(policy), names }
    }

    /// Fails if a host is refused without a lookup.
    pub fn check_host(&self, host: &str) -> Result<(), Refused> {
        check_host(&self.policy, host)
    }
}

impl Addresses for Outbound {
    fn look_up(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        self.names.look_up(host, port)
    }

    fn check(&self, address: SocketAddr) -> Result<(), String> {
        self.policy.check(address.ip()).map_err(|refused| refused.to_string())
    }
}

/// Resolves a name to its permitted addresses for an HTTP library, which does not call it for literal addresses.
impl Resolve for Outbound {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let addresses = this.names.look_up(name.as_str(), 0).await?;
            let permitted: Addrs = Box::new(this.policy.permitted(addresses)?.into_iter());
            Ok(permitted)
        })
    }
}

/// The route to one host, before a connection is opened.
#[derive(Debug)]
pub(crate) struct HostRoute {
    host: String,
    port: u16,
    outbound: Outbound,
}

impl HostRoute {
    pub(crate) fn new(endpoint: &Endpoint, outbound: &Outbound) -> Self {
        Self { host: endpoint.host.clone(), port: endpoint.port, outbound: outbound.clone() }
    }

    /// Returns a reason if all addresses of the host are refused.
    pub(crate) async fn closed(&self) -> Option<Reason> {
        let found = self.outbound.names.look_up(&self.host, self.port).await;
        // A failed lookup is not a refusal: the connection attempt will report it.
        let refused = found.is_ok_and(|addresses| self.outbound.policy.permitted(addresses).is_err());
        refused.then_some(Reason::AddressRefused)
    }
}

/// Fails if a host is refused without a lookup: an address in any spelling, or the local machine by its name.
pub(crate) fn check_host(policy: &OutboundPolicy, host: &str) -> Result<(), Refused> {
    match address_of(host) {
        Some(address) => policy.check(address),
        None if is_this_machine(host) => policy
            .check(IpAddr::V6(Ipv6Addr::LOCALHOST))
            // One of the two suffices: a connection tries each address.
            .or_else(|_| policy.check(IpAddr::V4(Ipv4Addr::LOCALHOST))),
        None => Ok(()),
    }
}

/// Parses an address like a URL host (WHATWG), including the spellings that systems accept: short, octal, hexadecimal.
fn address_of(host: &str) -> Option<IpAddr> {
    let bare = bare(host);
    // A zone names the interface, not the address (RFC 4007, section 11).
    let without_zone = bare.split('%').next().unwrap_or(bare);
    without_zone.parse().ok().or_else(|| {
        let url = Url::parse(&format!("http://{bare}/")).ok()?;
        self::bare(url.host_str()?).parse().ok()
    })
}

/// Returns true if a name always denotes the local machine (RFC 6761).
fn is_this_machine(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allowed: &[&str]) -> OutboundPolicy {
        OutboundPolicy::new(allowed.iter().map(|text| text.parse().expect(text)).collect())
    }

    #[test]
    fn r17_every_spelling_of_an_address_is_read() {
        for host in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0x7f000001",
            "0X7F.0.0.1",
            "2130706433",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "[::1]",
            "::1",
            "[::ffff:127.0.0.1]",
            "::ffff:7f00:1",
            "localhost",
            "localhost.",
            "LocalHost",
            "a.localhost",
            "127。0。0。1",
            "１２７.0.0.1",
            "%31%32%37.0.0.1",
            "64:ff9b::7f00:1",
        ] {
            let refused = check_host(&policy(&[]), host).expect_err(host);
            assert_eq!(refused.allowance().to_string(), "loopback", "{host}");
            assert_eq!(check_host(&policy(&["loopback"]), host), Ok(()), "{host}");
        }
        for host in [
            "0",
            "0.0.0.0",
            "[::]",
            "fe80::1%eth0",
            "[fe80::1%25eth0]",
            "0xa9fea9fe",
            "2852039166",
            "169.254.43518",
        ] {
            assert!(check_host(&policy(&["loopback", "private"]), host).is_err(), "{host}");
        }
    }

    #[test]
    fn names_and_public_addresses_are_not_refused_by_their_looks() {
        for host in [
            "fcm.googleapis.com",
            "localhost.example",
            "8.8.8.8",
            "0x08.8.8.8",
            "2001:4860:4860::8888",
            "a_b",
            "",
        ] {
            assert_eq!(check_host(&policy(&[]), host), Ok(()), "{host}");
        }
    }

    #[test]
    fn this_machine_by_name_is_allowed_with_either_of_its_addresses() {
        for network in ["127.0.0.0/8", "::1", "loopback"] {
            assert_eq!(check_host(&policy(&[network]), "localhost"), Ok(()), "{network}");
        }
    }
}
