//! The result of one campaign: rates, proof of delivery, and the resource use of server and emulators.

use serde::{Deserialize, Serialize};

/// Figures and proof of one run of a campaign cell; times are seconds unless the name states another unit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CampaignRecord {
    /// The actual form in which the two arms were sent.
    pub sent_as: String,
    /// Devices of the audience.
    pub pushes: u64,
    /// Time from the 202 to the settled ledger.
    pub wall_seconds: f64,
    /// Finally answered pushes divided by the wall time.
    pub pushes_per_second: f64,
    /// The rate of the middle half.
    pub middle_pushes_per_second: Option<f64>,
    /// Mean latency of the push services, as modelled.
    pub latency_mean_ms: f64,
    /// Accepted deliveries, by the ledger.
    pub accepted: u64,
    /// Rejected deliveries, by the ledger.
    pub rejected: u64,
    /// Devices unknown to the emulators although the ledger has them as sent, or that are in no book.
    pub lost: u64,
    /// Deliveries without a final state.
    pub stuck: u64,
    /// Pushes accepted beyond the first of each device.
    pub duplicates: u64,
    /// Attempts, by the ledger.
    pub attempts: u64,
    /// True if the books balanced in every sample.
    pub ledger_balanced: bool,
    /// Listening devices reached by the push, and their total number.
    pub known_devices_reached: [u32; 2],
    /// Device and user saves answered during the campaign.
    pub saves: u64,
    /// Rejected saves.
    pub saves_failed: u64,
    /// Median duration of a save, in milliseconds.
    pub saves_p50_ms: Option<f64>,
    /// 99th percentile of the duration of a save, in milliseconds.
    pub saves_p99_ms: Option<f64>,
    /// Time until half of the deliveries had ended.
    pub p50_seconds: Option<f64>,
    /// Time until 95 in 100 had ended.
    pub p95_seconds: Option<f64>,
    /// Time until 99 in 100 had ended.
    pub p99_seconds: Option<f64>,
    /// Maximum of sampled requests in flight.
    pub inflight_max: u64,
    /// Mean of requests in flight, without the start and the end.
    pub inflight_mean: Option<f64>,
    /// Maximum of sampled open connections.
    pub connections_max: u64,
    /// Connections that used HTTP, as counted by the emulators; includes those that fetched an access token.
    pub connections_opened: u64,
    /// Processor time of the server.
    pub server_cpu_seconds: f64,
    /// Peak resident memory of the server.
    pub server_peak_rss_bytes: u64,
    /// Processor time of both emulators.
    pub emulators_cpu_seconds: f64,
    /// Fairness between concurrent apps: Jain's index over their rates to the end.
    pub fairness: Option<f64>,
    /// Jain's index over the apps' progress when half of all pushes were sent.
    pub fairness_midway: Option<f64>,
    /// 95th percentile of the laboratory's wake-up lateness, in milliseconds.
    pub lateness_p95_ms: Option<f64>,
    /// A remark.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl CampaignRecord {
    /// Returns true if nothing was lost, stuck or duplicated, and every listening device was reached.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        let nothing_amiss = self.lost + self.stuck + self.duplicates == 0 && self.ledger_balanced;
        nothing_amiss && self.known_devices_reached[0] == self.known_devices_reached[1]
    }
}
