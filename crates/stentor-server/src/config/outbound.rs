//! Settings of the outbound policy: the addresses to which the server connects for its tenants.

use serde::{Deserialize, Deserializer};
use stentor_core::outbound::{Allowance, OutboundPolicy};

use super::ConfigError;

/// Addresses to which the server may connect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutboundConfig {
    /// Networks that are allowed beside the public internet.
    #[serde(deserialize_with = "allowances")]
    pub allowed_networks: Vec<Allowance>,
}

impl OutboundConfig {
    /// Allows one network more, as the setting writes it.
    pub fn allow(&mut self, network: &str) -> Result<(), ConfigError> {
        let read = network.parse().map_err(|invalid: stentor_core::error::Invalid| {
            ConfigError::one(format!("outbound.allowed_networks: {}", invalid.problem))
        });
        self.allowed_networks.push(read?);
        Ok(())
    }

    /// Returns the policy that decides about each address.
    #[must_use]
    pub fn policy(&self) -> OutboundPolicy {
        OutboundPolicy::new(self.allowed_networks.clone())
    }
}

/// Reads networks as the setting writes them.
pub(super) fn allowances<'de, D: Deserializer<'de>>(given: D) -> Result<Vec<Allowance>, D::Error> {
    let texts: Vec<String> = Vec::deserialize(given)?;
    let read = texts.iter().map(|text| text.parse::<Allowance>());
    read.collect::<Result<_, _>>().map_err(|invalid| serde::de::Error::custom(invalid.problem))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{Config, FormatChecks, explain::explain_with, load_with};
    use super::*;

    const VARIABLE: &str = "STENTOR__OUTBOUND__ALLOWED_NETWORKS";

    fn shown(config: &Config) -> Vec<String> {
        config.outbound.allowed_networks.iter().map(ToString::to_string).collect()
    }

    fn from_variable(text: &str) -> Result<Config, ConfigError> {
        load_with(None, [(VARIABLE.to_owned(), text.to_owned())], &FormatChecks::NONE)
    }

    #[test]
    fn nothing_is_allowed_unless_it_is_set() {
        assert_eq!(Config::embedded().expect("readable").outbound, OutboundConfig::default());
    }

    #[test]
    fn networks_come_from_a_file() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let text = b"[outbound]\nallowed_networks = [\"private\", \"192.0.2.7\", \"fd12::/32\"]\n";
        file.write_all(text).expect("written");
        let config = load_with(Some(file.path()), [], &FormatChecks::NONE).expect("readable");
        assert_eq!(shown(&config), ["private", "192.0.2.7/32", "fd12::/32"]);
    }

    #[test]
    fn networks_come_from_a_variable_with_and_without_brackets() {
        for text in [
            "loopback,10.0.0.0/8",
            "loopback, 10.0.0.0/8",
            "loopback 10.0.0.0/8",
            "[\"loopback\", \"10.0.0.0/8\"]",
        ] {
            let config = from_variable(text).expect(text);
            assert_eq!(shown(&config), ["loopback", "10.0.0.0/8"], "{text}");
        }
        assert_eq!(shown(&from_variable("192.0.2.7").expect("readable")), ["192.0.2.7/32"]);
        assert_eq!(shown(&from_variable("").expect("readable")), [""; 0]);
    }

    #[test]
    fn what_is_no_network_is_refused_by_name() {
        for (text, wrong) in [("locahost", "locahost"), ("loopback,10.0.0.0/33", "10.0.0.0/33"), ("[7]", "7")]
        {
            let error = from_variable(text).expect_err(text).to_string();
            assert!(error.contains("outbound.allowed_networks") && error.contains(wrong), "{error}");
        }
        let mut outbound = OutboundConfig::default();
        let error = outbound.allow("everything").expect_err("refused").to_string();
        assert!(error.contains("outbound.allowed_networks") && error.contains("everything"), "{error}");
    }

    #[test]
    fn the_networks_in_force_are_explained_as_toml() {
        let all = explain_with(None, [(VARIABLE.to_owned(), "loopback,::1".to_owned())]).expect("readable");
        let one = all.iter().find(|one| one.key == "outbound.allowed_networks").expect("listed");
        assert_eq!((one.value.as_str(), one.origin.as_str()), ("[\"loopback\", \"::1\"]", VARIABLE));
    }
}
