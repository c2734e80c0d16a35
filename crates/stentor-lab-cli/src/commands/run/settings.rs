//! The server's configuration for a cell: the paper's factors in settings that every operator has.

use std::fmt::Write as _;
use stentor_lab::plan::CampaignCell;

/// Devices per chunk if the number of consumers is fixed: enough chunks for all of them, even at a small scale.
const CHUNK_DEVICES: u32 = 50;

/// Writes the configuration; settings that are not in it have their defaults.
pub(super) fn of(cell: &CampaignCell) -> String {
    let (pipeline, sender) = (pipeline(cell), sender(cell));
    let mut text = String::new();
    for (section, settings) in [("pipeline", pipeline), ("sender", sender)] {
        let _ = writeln!(text, "[{section}]");
        for (name, value) in settings.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} = {value}");
        }
    }
    text
}

type OwnSettings = Vec<(&'static str, Option<u32>)>;

fn pipeline(cell: &CampaignCell) -> OwnSettings {
    let mut settings = vec![
        ("chunk_max_devices", cell.chunk_devices.or(cell.consumers.map(|_| CHUNK_DEVICES))),
        ("expand_max_chunks", cell.expand_chunks),
    ];
    if let Some(consumers) = cell.consumers {
        settings.push(("consumers_max", Some(cell.workers.unwrap_or(consumers))));
        settings.push(("consumer_max_batches", Some(1)));
        settings.push(("urgent_share_percent", Some(0)));
        // Connections are a factor here: none may be open in advance without a consumer.
        settings.push(("ready_max_credentials", Some(0)));
    }
    settings
}

/// Settings of the sender. Each app has connections of its own, so that a fixed number of consumers is divided among the apps.
fn sender(cell: &CampaignCell) -> OwnSettings {
    let Some(consumers) = cell.consumers else { return Vec::new() };
    let inflight = (consumers / cell.apps).max(1);
    let connections = cell.connections.unwrap_or(inflight).clamp(1, inflight);
    vec![
        ("connections_max_count", Some(connections)),
        ("connection_max_inflight_requests", Some(inflight.div_ceil(connections))),
        ("inflight_min_requests", Some(inflight)),
        ("inflight_max_requests", Some(inflight)),
        ("connection_max_requests", (!cell.pooled).then_some(1)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_of_the_paper_is_a_connection_with_one_request_in_flight() {
        let text = of(&CampaignCell { consumers: Some(20), pooled: false, ..CampaignCell::default() });
        assert_eq!(
            text,
            "[pipeline]\nchunk_max_devices = 50\nconsumers_max = 20\nconsumer_max_batches = 1\n\
             urgent_share_percent = 0\nready_max_credentials = 0\n[sender]\nconnections_max_count = 20\n\
             connection_max_inflight_requests = 1\ninflight_min_requests = 20\ninflight_max_requests = 20\n\
             connection_max_requests = 1\n"
        );
    }

    #[test]
    fn apps_and_connections_share_the_requests_in_flight() {
        let cell =
            CampaignCell { consumers: Some(100), apps: 4, connections: Some(5), ..CampaignCell::default() };
        let text = of(&cell);
        for line in [
            "connections_max_count = 5",
            "connection_max_inflight_requests = 5",
            "inflight_max_requests = 25",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn the_server_decides_what_is_not_fixed() {
        assert_eq!(of(&CampaignCell::default()), "[pipeline]\n[sender]\n");
        let cell = CampaignCell { expand_chunks: Some(1), chunk_devices: Some(1), ..CampaignCell::default() };
        assert_eq!(of(&cell), "[pipeline]\nchunk_max_devices = 1\nexpand_max_chunks = 1\n[sender]\n");
    }
}
