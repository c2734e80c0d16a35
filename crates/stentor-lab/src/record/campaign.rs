//! What came of one campaign: rates, proof, and what the server and the emulators took.

use serde::{Deserialize, Serialize};

/// Figures and proof of one run of a cell of campaigns; times are seconds unless the name says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CampaignRecord {
    /// What the two arms were really sent as.
    pub sent_as: String,
    /// Devices of the audience.
    pub pushes: u64,
    /// From the 202 to the settled ledger.
    pub wall_seconds: f64,
    /// Pushes answered for good, over the wall time.
    pub pushes_per_second: f64,
    /// The rate of the middle half.
    pub middle_pushes_per_second: Option<f64>,
    /// Mean latency of the push services, as modelled.
    pub latency_mean_ms: f64,
    /// Deliveries accepted, by the ledger.
    pub accepted: u64,
    /// Deliveries refused, by the ledger.
    pub rejected: u64,
    /// Devices of which the emulators have seen nothing though the ledger says sent, or that are in no book.
    pub lost: u64,
    /// Deliveries without a final state.
    pub stuck: u64,
    /// Pushes accepted beyond the first of each device.
    pub duplicates: u64,
    /// Attempts, by the ledger.
    pub attempts: u64,
    /// Whether the books balanced at every look.
    pub ledger_balanced: bool,
    /// Listening devices that got the push, and how many listened.
    pub known_devices_reached: [u32; 2],
    /// Device and user saves that were answered meanwhile.
    pub saves: u64,
    /// Saves that were refused.
    pub saves_failed: u64,
    /// Half of the saves took no longer, in milliseconds.
    pub saves_p50_ms: Option<f64>,
    /// 99 in 100 saves took no longer, in milliseconds.
    pub saves_p99_ms: Option<f64>,
    /// Time until half of the deliveries had ended.
    pub p50_seconds: Option<f64>,
    /// Time until 95 in 100 had ended.
    pub p95_seconds: Option<f64>,
    /// Time until 99 in 100 had ended.
    pub p99_seconds: Option<f64>,
    /// Most requests in flight at any look.
    pub inflight_max: u64,
    /// Requests in flight on average, but at the start and the end.
    pub inflight_mean: Option<f64>,
    /// Most connections open at any look.
    pub connections_max: u64,
    /// Connections that spoke HTTP, by the emulators' count; with those that fetched an access token.
    pub connections_opened: u64,
    /// Processor time of the server.
    pub server_cpu_seconds: f64,
    /// Most resident memory of the server.
    pub server_peak_rss_bytes: u64,
    /// Processor time of both emulators.
    pub emulators_cpu_seconds: f64,
    /// How evenly several apps at once shared the rate: Jain's index over their rates to the end.
    pub fairness: Option<f64>,
    /// Jain's index over what each app had when half of all was sent.
    pub fairness_midway: Option<f64>,
    /// How late a sleeping thread of the laboratory was woken in the worst of 20 cases, in milliseconds.
    pub lateness_p95_ms: Option<f64>,
    /// What else is to be known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl CampaignRecord {
    /// Returns whether nothing was lost, left over or doubled, and every listening device was reached.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        let nothing_amiss = self.lost + self.stuck + self.duplicates == 0 && self.ledger_balanced;
        nothing_amiss && self.known_devices_reached[0] == self.known_devices_reached[1]
    }
}
