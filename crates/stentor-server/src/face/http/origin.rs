//! Origin of a request: the request id, and the address of the peer or the one reported by a trusted proxy.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::request::Parts;
use ipnet::IpNet;
use stentor_core::person::Person;

use super::middleware::RequestId;
use crate::face::Api;
use crate::listen::PeerAddress;
use crate::owner::SourceNetwork;
use crate::service::Origin;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Returns the origin of a request. Authentication has put the person into the extensions, if there is one.
pub(crate) fn origin_of(parts: &Parts, api: &Api) -> Origin {
    let peer = parts.extensions.get::<PeerAddress>().map(|PeerAddress(peer)| peer.ip());
    let address = peer.map(|peer| caller(peer, &parts.headers, api.trusted_proxies()));
    let request_id = parts.extensions.get::<RequestId>().map(|RequestId(id)| id.to_string());
    let person = parts.extensions.get::<Person>().cloned();
    Origin { address, request_id: request_id.unwrap_or_default(), person }
}

/// Returns the network of the caller, which shares the limits for requests without a key.
pub(super) fn network_of(parts: &Parts, api: &Api) -> SourceNetwork {
    let peer = parts.extensions.get::<PeerAddress>().map(|PeerAddress(peer)| peer.ip());
    peer.map_or(SourceNetwork::UNKNOWN, |peer| caller(peer, &parts.headers, api.trusted_proxies()).into())
}

/// Returns the caller's address behind trusted proxies. Each proxy appends the address of its own peer.
fn caller(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let mut address = peer.to_canonical();
    let lines = headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok());
    let hops: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
    for hop in hops.into_iter().rev() {
        match read(hop.trim()).filter(|_| is_trusted(address)) {
            Some(before) => address = before,
            None => break,
        }
    }
    address
}

fn read(hop: &str) -> Option<IpAddr> {
    let with_port = || hop.parse::<SocketAddr>().ok().map(|address| address.ip());
    hop.parse::<IpAddr>().ok().or_else(with_port).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(peer: &str, lines: &[&'static str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, axum::http::HeaderValue::from_static(line));
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|text| text.parse().expect("a network")).collect();
        caller(peer.parse().expect("an address"), &headers, &trusted).to_string()
    }

    #[test]
    fn nobody_is_believed_unless_the_operator_says_so() {
        assert_eq!(found("192.0.2.1", &["198.51.100.7"], &[]), "192.0.2.1");
        assert_eq!(found("192.0.2.1", &["198.51.100.7"], &["10.0.0.0/8"]), "192.0.2.1");
    }

    #[test]
    fn the_last_hop_that_is_not_a_known_proxy_is_the_caller_whatever_stands_before_it() {
        let trusted = ["10.0.0.0/8", "2001:db8::/32"];
        assert_eq!(found("10.0.0.1", &["203.0.113.9, 198.51.100.7"], &trusted), "198.51.100.7");
        assert_eq!(
            found("::ffff:10.0.0.1", &["203.0.113.9", "198.51.100.7:4711, 10.2.0.1"], &trusted),
            "198.51.100.7"
        );
        assert_eq!(found("2001:db8::1", &["[2001:db9::2]:80"], &trusted), "2001:db9::2");
        assert_eq!(found("10.0.0.1", &["nonsense"], &trusted), "10.0.0.1");
        assert_eq!(found("10.0.0.1", &["203.0.113.9, nonsense"], &trusted), "10.0.0.1");
    }
}
