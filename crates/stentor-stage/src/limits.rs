//! The limits in force while a campaign is measured: a rate says little without them.

use crate::child_process::without_settings;
use crate::failure::CommandFailure;
use crate::programs::Program;
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// Limits of how much is sent, kept in flight and kept in memory.
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
    let mut command = Command::new(Program::Product.find()?);
    command.args(["--json", "config", "explain"]).args(config);
    without_settings(&mut command);
    let output = command.output().context("the settings in force cannot be read")?;
    if !output.status.success() {
        let sentence = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        return Err(
            CommandFailure::not_done(format!("the settings in force cannot be read: {sentence}")).into()
        );
    }
    let text = String::from_utf8_lossy(&output.stdout);
    named(&serde_json::from_str(text.lines().last().unwrap_or_default())?)
}

/// Picks them from all settings. The text of each value is TOML, of which numbers are JSON too.
fn named(explained: &Value) -> anyhow::Result<Value> {
    let mut limits = Map::from_iter([("quota".to_owned(), json!("none"))]);
    for setting in explained["settings"].as_array().into_iter().flatten() {
        let (key, value) = (setting["setting"].as_str(), setting["value"].as_str());
        if let Some((key, value)) = key.zip(value).filter(|(key, _)| NAMED.contains(key)) {
            limits.insert(key.to_owned(), serde_json::from_str(value)?);
        }
    }
    Ok(limits.into())
}

/// Returns the most deliveries that are sent and not yet settled.
pub fn max_unsettled(limits: &Value) -> u64 {
    limits["pipeline.max_unsettled_deliveries"].as_u64().unwrap_or_default()
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
    fn the_limits_are_picked_from_all_settings_and_named_in_a_line() {
        let explained = json!({"settings": [
            {"setting": "sender.connections_max_count", "value": "3", "from": "stentor.toml"},
            {"setting": "pipeline.max_unsettled_deliveries", "value": "200000", "from": "default"},
            {"setting": "api.listen", "value": "\"127.0.0.1:8686\"", "from": "default"},
        ]});
        let limits = named(&explained).unwrap();
        assert_eq!(limits["sender.connections_max_count"], 3);
        assert_eq!((limits.as_object().unwrap().len(), max_unsettled(&limits)), (3, 200_000));
        let line = describe(&limits);
        assert_eq!(line, "max_unsettled_deliveries 200000, quota none, connections_max_count 3");
    }
}
