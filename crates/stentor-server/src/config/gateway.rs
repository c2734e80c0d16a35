//! Settings of the gateway.

use std::net::SocketAddr;

use axum::http::Uri;
use serde::Deserialize;

use super::address_or_none;
use crate::arrival_limiter::ArrivalRate;

/// Longest address: with it the URL of a subscription keeps below 1,000 bytes.
const PUBLIC_URL_MAX_BYTES: usize = 300;

/// Settings of the gateway.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayConfig {
    /// Address of MCS; empty for none.
    #[serde(deserialize_with = "address_or_none")]
    pub mcs_listen: Option<SocketAddr>,
    /// Address of MQTT; empty for none.
    #[serde(deserialize_with = "address_or_none")]
    pub mqtt_listen: Option<SocketAddr>,
    /// Address of CCS, for app servers; empty for none.
    #[serde(deserialize_with = "address_or_none")]
    pub ccs_listen: Option<SocketAddr>,
    /// The server's address as devices and senders see it; empty for the host named by the request.
    pub public_url: String,
    /// Connections of devices held at once.
    pub connections_max_count: usize,
    /// Connections of one address held at once.
    pub connections_per_address_max_count: usize,
    /// Burst of devices of one app that register themselves.
    pub registrations_burst_max_count: u32,
    /// Sustained rate of the same.
    pub registrations_per_second_max_count: u32,
    /// Burst of check-ins of one address.
    pub check_ins_per_address_burst_max_count: u32,
    /// Sustained rate of the same.
    pub check_ins_per_address_per_second_max_count: u32,
}

impl GatewayConfig {
    /// Returns how many devices of one app may be connected.
    pub(crate) const fn app_sessions_max_count(&self) -> usize {
        // An eighth stays free for the devices of other apps.
        let max_count = self.connections_max_count;
        max_count - max_count / 8
    }

    /// Returns the server's address as devices and senders see it, when one is set.
    pub(crate) fn public_url(&self) -> Option<&str> {
        (!self.public_url.is_empty()).then_some(self.public_url.as_str())
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let wrong = self.public_url().filter(|url| !is_base(url));
        let problem =
            |_| "gateway.public_url: must be an address such as https://push.example.org".to_owned();
        wrong.map(problem).into_iter().collect()
    }

    /// Returns how fast devices of one app may register themselves.
    pub(crate) const fn joins(&self) -> ArrivalRate {
        ArrivalRate {
            burst_max_count: self.registrations_burst_max_count,
            per_second_max_count: self.registrations_per_second_max_count,
        }
    }

    /// Returns the rate limit of check-ins of one address; they need no key.
    pub(crate) const fn check_ins(&self) -> ArrivalRate {
        ArrivalRate {
            burst_max_count: self.check_ins_per_address_burst_max_count,
            per_second_max_count: self.check_ins_per_address_per_second_max_count,
        }
    }
}

/// Returns true if the text is a base URL to which a path can be appended.
fn is_base(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let has_scheme = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_host = uri
        .authority()
        .is_some_and(|authority| !authority.as_str().contains('@') && !authority.host().is_empty());
    has_scheme
        && has_host
        && uri.query().is_none()
        && !text.contains('#')
        && text.len() <= PUBLIC_URL_MAX_BYTES
}
