//! The limits in force while a campaign is measured: a rate says little without them.

use serde_json::{Map, Value, json};
use std::path::Path;
use stentor_server::config::explain;

/// What bounds how much is sent, kept in flight and kept in memory.
const NAMED: [&str; 11] = [
    "pipeline.chunk_max_devices",
    "pipeline.consumers_max",
    "pipeline.consumer_max_batches",
    "pipeline.max_queued_chunks",
    "pipeline.max_unsettled_deliveries",
    "pipeline.producer_max_queued_deliveries",
    "pipeline.urgent_share_percent",
    "sender.connection_max_inflight_requests",
    "sender.connections_max_count",
    "sender.inflight_max_requests",
    "sender.inflight_min_requests",
];

/// Returns each with its value, as the server reads them from this file, and the quota of the demo's credentials.
pub fn in_force(config: Option<&Path>) -> anyhow::Result<Value> {
    let mut limits = Map::from_iter([("quota".to_owned(), json!("none"))]);
    for setting in explain(config)?.into_iter().filter(|setting| NAMED.contains(&&*setting.key)) {
        limits.insert(setting.key, serde_json::from_str(&setting.value)?);
    }
    Ok(limits.into())
}

/// Returns them in a line.
pub fn describe(limits: &Value) -> String {
    let said = |(key, value): (&String, &Value)| {
        format!("{} {}", key.rsplit('.').next().unwrap_or(key), value.to_string().trim_matches('"'))
    };
    limits.as_object().into_iter().flatten().map(said).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_in_force_are_those_of_the_servers_file_and_the_default() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("stentor.toml");
        std::fs::write(&file, "[sender]\nconnections_max_count = 3\n").unwrap();
        let limits = in_force(Some(&file)).unwrap();
        assert_eq!(limits["sender.connections_max_count"], 3);
        assert_eq!(limits["pipeline.chunk_max_devices"], 1_000);
        assert_eq!(limits.as_object().unwrap().len(), NAMED.len() + 1, "{limits}");
        assert!(describe(&limits).contains("connections_max_count 3, "), "{}", describe(&limits));
        assert!(describe(&limits).ends_with("quota none") || describe(&limits).contains("quota none, "));
    }
}
