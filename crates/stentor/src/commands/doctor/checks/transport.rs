//! Checks external servers that carry chunk ids.

use super::{FindingHealth, ServerFinding};
use crate::client::ApiClient;
use serde_json::Value;
use std::path::Path;
use stentor_server::config::QueueEngine;

const SUBJECT: &str = "NATS";
/// Path at which a nats-server reports the configuration of its JetStream.
const JETSTREAM: &str = "/jsz";
const NANOSECONDS_PER_SECOND: f64 = 1e9;
const ADVICE: &str = "set `sync_interval: always` in the block `jetstream` of each nats-server: without it a server acknowledges entries \
                      before they are on its disk, and a power cut or a kernel crash loses them. No message is lost by that, \
                      because the store has it: the lost entries wait until they are published again, for \
                      pipeline.republish_interval_ms at most";

/// Checks that JetStream syncs acknowledged data, if the queue is there. JetStream reports this at its http port only, not to its clients.
pub(in crate::commands::doctor) async fn look(
    config: Option<&Path>,
    monitor: Option<&str>,
) -> Option<ServerFinding> {
    let config = crate::commands::config::load(config).ok()?;
    if config.queue.engine != QueueEngine::Nats {
        return None;
    }
    let Some(monitor) = monitor else {
        let detail = "a nats-server does not report to its clients whether it syncs before it acknowledges (sync_interval)";
        let advice = format!(
            "give --nats-monitor http://HOST:8222, its http port, so that the doctor can query it; or {ADVICE}"
        );
        return Some(ServerFinding::bad(SUBJECT, FindingHealth::Doubtful, detail, advice));
    };
    Some(match ask(monitor).await {
        Ok(response) => judge(&response),
        Err(error) => {
            let detail = format!("{monitor} cannot be queried: {error:#}");
            ServerFinding::bad(SUBJECT, FindingHealth::Doubtful, detail, ADVICE)
        }
    })
}

async fn ask(monitor: &str) -> anyhow::Result<Value> {
    let (status, response) = ApiClient::new(monitor, None, None)?.probe(JETSTREAM).await?;
    anyhow::ensure!(status.is_success(), "it replies {status}");
    Ok(response)
}

fn judge(jetstream: &Value) -> ServerFinding {
    let config = &jetstream["config"];
    if config["sync_always"] == true {
        return ServerFinding::good(SUBJECT, "JetStream syncs before it acknowledges");
    }
    let detail = match config["sync_interval"].as_f64() {
        Some(nanoseconds) => {
            format!("JetStream syncs only every {:.0} s", nanoseconds / NANOSECONDS_PER_SECOND)
        }
        None => "that server has no JetStream".to_owned(),
    };
    ServerFinding::bad(SUBJECT, FindingHealth::Doubtful, detail, ADVICE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_that_syncs_now_and_then_is_warned_of_and_one_that_always_does_is_fine() {
        let finding_of = |config: Value| judge(&json!({"config": config}));
        assert_eq!(finding_of(json!({"sync_interval": 1, "sync_always": true})).health, FindingHealth::Good);
        let seldom = finding_of(json!({"sync_interval": 120_000_000_000_u64}));
        assert_eq!(seldom.health, FindingHealth::Doubtful);
        assert_eq!(seldom.detail, "JetStream syncs only every 120 s");
        assert_eq!(judge(&json!({"disabled": true})).health, FindingHealth::Doubtful);
    }
}
