//! Metrics, gathered when they are asked for.

use std::sync::atomic::Ordering;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::board::Board;
use crate::service::Service;

/// Writes all metrics as text.
pub async fn render(service: &Service, board: &Board) -> String {
    let mut registry = Registry::with_prefix("stentor");
    count_services(&mut registry, service);
    let ready = board.readiness().await;
    registry.register(
        "queue_ready_chunks",
        "Chunks due and not leased",
        ConstGauge::new(ready.ready_chunks as i64),
    );
    let mut text = String::new();
    let _writing_to_a_string_cannot_fail = encode(&mut text, &registry);
    text
}

fn count_services(registry: &mut Registry, service: &Service) {
    let counters = service.counters();
    let all = [
        ("messages_accepted", "Messages kept and answered with 202", &counters.messages_accepted),
        ("idempotent_replays", "Requests answered again from their idempotency key", &counters.replayed),
        ("devices_created", "Devices made known", &counters.devices_created),
        ("devices_updated", "Devices registered again", &counters.devices_updated),
        ("import_lines_failed", "Import lines refused", &counters.import_lines_failed),
    ];
    for (name, help, counter) in all {
        registry.register(name, help, ConstCounter::new(counter.load(Ordering::Relaxed)));
    }
}
