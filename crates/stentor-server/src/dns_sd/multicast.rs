//! Announcements and searches over multicast DNS.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use mdns_sd::{IfKind, Receiver, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};

use super::{AnnouncedAddress, DnsSdError};

/// The service's name (RFC 6763, section 7).
const SERVICE: &str = "_stentor._tcp.local.";
/// Most servers that one search returns.
const FOUND_MAX_COUNT: usize = 64;
/// Letters of the fingerprint in the name of a server, by which names differ.
const NAME_LETTERS: usize = 12;
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);
/// Keys of the TXT record (RFC 6763, section 6).
const PATH_KEY: &str = "path";
const FINGERPRINT_KEY: &str = "fp";
const TLS_KEY: &str = "tls";
const HOST_KEY: &str = "host";
/// Longest host name (RFC 1035).
const HOST_MAX_BYTES: usize = 253;

impl From<mdns_sd::Error> for DnsSdError {
    fn from(error: mdns_sd::Error) -> Self {
        Self(error.to_string())
    }
}

/// An announcement of a server; it ends when this value is dropped.
pub struct Announcement {
    daemon: ServiceDaemon,
    name: String,
}

impl Announcement {
    /// Announces a server on the networks it listens on. A server on loopback is announced to this machine only.
    pub fn begin(server: &AnnouncedAddress, document: &str) -> Result<Self, DnsSdError> {
        let daemon = ServiceDaemon::new()?;
        let ip = server.address.ip();
        let networks = networks_of(ip);
        daemon.disable_interface(IfKind::All)?;
        daemon.enable_interface(networks.clone())?;
        let letters: String = server.fingerprint.chars().take(NAME_LETTERS).collect();
        let label: String =
            letters.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let host = format!("stentor-{}.local.", label.to_lowercase());
        let tls = if server.is_encrypted { "1" } else { "0" };
        let mut text = vec![(PATH_KEY, document), (FINGERPRINT_KEY, &server.fingerprint), (TLS_KEY, tls)];
        text.extend(server.host.as_deref().map(|name| (HOST_KEY, name)));
        let name = format!("Stentor {letters}");
        let addresses = if ip.is_unspecified() { String::new() } else { ip.to_string() };
        let mut info = ServiceInfo::new(SERVICE, &name, &host, addresses, server.address.port(), &text[..])?;
        if ip.is_unspecified() {
            info = info.enable_addr_auto();
        }
        info.set_interfaces(networks);
        let name = info.get_fullname().to_owned();
        daemon.register(info)?;
        Ok(Self { daemon, name })
    }
}

impl Drop for Announcement {
    /// Withdraws the announcement, so that clients do not find a server that is gone.
    fn drop(&mut self) {
        if let Ok(done) = self.daemon.unregister(&self.name) {
            let _ = done.recv_timeout(GOODBYE_LIMIT);
        }
        if let Ok(done) = self.daemon.shutdown() {
            let _ = done.recv_timeout(GOODBYE_LIMIT);
        }
    }
}

/// Searches for servers for the given time, on all networks of this machine and on loopback. Blocks. The announcements are not verified.
pub fn search(span: Duration) -> Result<Vec<AnnouncedAddress>, DnsSdError> {
    let daemon = ServiceDaemon::new()?;
    let events = daemon.browse(SERVICE)?;
    let found = gather(&events, Instant::now() + span);
    if let Ok(done) = daemon.shutdown() {
        let _ = done.recv_timeout(GOODBYE_LIMIT);
    }
    Ok(found)
}

fn gather(events: &Receiver<ServiceEvent>, end: Instant) -> Vec<AnnouncedAddress> {
    let (mut found, mut names) = (Vec::new(), BTreeSet::new());
    while found.len() < FOUND_MAX_COUNT {
        let left = end.saturating_duration_since(Instant::now());
        match events.recv_timeout(left) {
            Ok(ServiceEvent::ServiceResolved(service)) => {
                // A server is resolved once for each of its addresses; the first one is enough.
                if let Some(one) = read(&service).filter(|_| names.insert(service.fullname.clone())) {
                    found.push(one);
                }
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    found
}

/// Parses a resolved service. IPv4 is preferred, because a link-local IPv6 address is useless without its scope.
fn read(service: &ResolvedService) -> Option<AnnouncedAddress> {
    let mut addresses: Vec<IpAddr> = service.addresses.iter().map(mdns_sd::ScopedIp::to_ip_addr).collect();
    addresses.sort_by_key(|ip| (ip.is_ipv6(), *ip));
    let address = SocketAddr::new(*addresses.first()?, service.port);
    let is_encrypted = service.get_property_val_str(TLS_KEY) == Some("1");
    let fingerprint = service.get_property_val_str(FINGERPRINT_KEY)?.to_owned();
    let host = service.get_property_val_str(HOST_KEY).filter(|name| is_host_name(name)).map(str::to_owned);
    Some(AnnouncedAddress { address, is_encrypted, host, fingerprint })
}

/// Returns true if a text is a valid host name. An announcement is untrusted, and the name becomes part of a URL.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(letters)
    };
    text.len() <= HOST_MAX_BYTES && text.split('.').all(is_label)
}

fn networks_of(ip: IpAddr) -> Vec<IfKind> {
    match ip {
        ip if ip.is_unspecified() && ip.is_ipv4() => vec![IfKind::IPv4],
        ip if ip.is_unspecified() => vec![IfKind::All],
        IpAddr::V4(ip) if ip.is_loopback() => vec![IfKind::LoopbackV4],
        IpAddr::V6(ip) if ip.is_loopback() => vec![IfKind::LoopbackV6],
        ip => vec![IfKind::Addr(ip)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_announced_only_where_it_listens() {
        let kinds = |ip: &str| format!("{:?}", networks_of(ip.parse().expect("an address")));
        assert_eq!(kinds("127.0.0.1"), "[LoopbackV4]");
        assert_eq!(kinds("::1"), "[LoopbackV6]");
        assert_eq!(kinds("0.0.0.0"), "[IPv4]");
        assert_eq!(kinds("192.0.2.1"), "[Addr(192.0.2.1)]");
    }

    #[test]
    fn what_is_no_name_of_a_host_is_not_taken_for_one() {
        assert!(["localhost", "push.example.org", "a-1.b"].into_iter().all(is_host_name));
        let long = "a".repeat(HOST_MAX_BYTES + 1);
        let wrong =
            ["", ".", "a..b", "a/b", "a:1", "user@a", "a b", "*.example.org", "\u{e4}.example", &long];
        assert!(!wrong.into_iter().any(is_host_name));
    }
}
