//! Settings of the connections to push services. Every credential has connections of its own.

use serde::Deserialize;
use stentor_core::error::Invalid;
use stentor_providers::Limits;

/// Settings of the connections of one credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderConfig {
    /// Most connections open at once; a credential's `max_connections` wins.
    pub connections_max_count: usize,
    /// Most requests in flight on one connection, even if the push service allows more.
    pub connection_max_inflight_requests: usize,
    /// Requests after which a connection is closed and another opened.
    pub connection_max_requests: u32,
    /// Lower limit of the adaptive number of requests in flight.
    pub inflight_min_requests: usize,
    /// Upper limit of the same, over all connections.
    pub inflight_max_requests: usize,
}

impl SenderConfig {
    /// Returns the limits of an adapter.
    #[must_use]
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        let most = self.inflight_max_requests;
        Limits {
            max_connections: self.connections_max_count,
            max_streams_per_connection: self.connection_max_inflight_requests,
            max_requests_per_connection: self.connection_max_requests,
            min_inflight_requests: self.inflight_min_requests,
            initial_inflight_requests: usual
                .initial_inflight_requests
                .clamp(self.inflight_min_requests.min(most), most),
            max_inflight_requests: most,
            ..usual
        }
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let zero = [
            ("connections_max_count", self.connections_max_count == 0),
            ("connection_max_inflight_requests", self.connection_max_inflight_requests == 0),
            ("connection_max_requests", self.connection_max_requests == 0),
            ("inflight_min_requests", self.inflight_min_requests == 0),
            ("inflight_max_requests", self.inflight_max_requests == 0),
        ];
        let zero = zero.iter().filter(|(_, is_zero)| *is_zero);
        let mut problems: Vec<Invalid> =
            zero.map(|(key, _)| Invalid::new(format!("sender.{key}"), "must be at least 1")).collect();
        if self.inflight_min_requests > self.inflight_max_requests {
            let problem = "must be at most sender.inflight_max_requests";
            problems.push(Invalid::new("sender.inflight_min_requests", problem));
        }
        problems.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, FormatChecks, load_with};
    use super::*;

    fn with(settings: &[(&str, &str)]) -> Result<Config, super::super::ConfigError> {
        let variables =
            settings.iter().map(|(key, value)| (format!("STENTOR__SENDER__{key}"), (*value).to_owned()));
        load_with(None, variables, &FormatChecks::NONE)
    }

    #[test]
    fn the_embedded_file_tells_the_limits_that_adapters_have_anyway() {
        let limits = Config::embedded().expect("readable").sender.limits();
        assert_eq!(format!("{limits:?}"), format!("{:?}", Limits::default()));
    }

    #[test]
    fn as_many_requests_in_flight_as_consumers_is_a_matter_of_two_settings() {
        let fixed = with(&[("INFLIGHT_MIN_REQUESTS", "20"), ("INFLIGHT_MAX_REQUESTS", "20")]);
        let limits = fixed.expect("readable").sender.limits();
        let inflight =
            [limits.min_inflight_requests, limits.initial_inflight_requests, limits.max_inflight_requests];
        assert_eq!(inflight, [20; 3]);
    }

    #[test]
    fn settings_with_which_nothing_is_sent_are_refused_by_name() {
        for (settings, named) in [
            (&[("CONNECTION_MAX_REQUESTS", "0")][..], "sender.connection_max_requests"),
            (&[("INFLIGHT_MAX_REQUESTS", "2")][..], "sender.inflight_min_requests"),
        ] {
            let error = with(settings).expect_err("refused").to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
