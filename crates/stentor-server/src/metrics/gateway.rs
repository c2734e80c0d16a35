//! Metrics of the gateway.

use prometheus_client::encoding::DescriptorEncoder;
use stentor_gateway::GatewayStats;

use super::{Labels, Written, counters, gauges};

/// Writes the gateway's metrics.
pub(super) fn encode(stats: &GatewayStats, to: &mut DescriptorEncoder<'_>) -> Written {
    let sessions = stats.sessions.iter();
    let sessions =
        sessions.map(|(protocol, count)| (vec![("protocol", (*protocol).to_owned())], *count as f64));
    gauges(to, "gateway_sessions", "Devices that are connected", sessions)?;
    let lag = [(Labels::new(), stats.receipt_lag.as_secs_f64())];
    gauges(to, "gateway_receipt_lag_seconds", "Duration of the last write of receipts", lag)?;
    let counts = [
        ("gateway_deliveries", "Messages given to connected devices", stats.deliveries),
        ("gateway_look_ups", "Reads of all deliveries that wait for a device", stats.look_ups),
        ("gateway_receipts", "Receipts of devices that were written", stats.receipts),
        (
            "gateway_receipts_void",
            "Receipts without a delivery that awaited one",
            stats.receipts_without_change,
        ),
        ("gateway_receipts_given_up", "Receipts that the store does not take", stats.receipts_given_up),
        ("gateway_dropped", "Deliveries dropped: a newer one came, or too many waited", stats.dropped),
        ("gateway_logins_refused", "Logins with a wrong token or secret", stats.refused_logins),
        ("gateway_upstream", "Messages of devices that were kept", stats.upstream),
    ];
    for (name, help, count) in counts {
        counters(to, name, help, [(Labels::new(), count)])?;
    }
    let failures = stats.autopush_failures.iter();
    let failures = failures.map(|(code, count)| (vec![("code", (*code).to_owned())], *count));
    counters(
        to,
        "gateway_autopush_nacks",
        "Messages that a page failed to handle after its browser received them",
        failures,
    )
}
