//! What came of one run: figures, proof, and whether they count.

use crate::record::Environment;
use serde::{Deserialize, Serialize};

/// What came of one run of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// The cell's name.
    pub id: String,
    /// Which of the repetitions, from 1.
    pub repetition: u32,
    /// Requests in flight at each provider; absent when the server decides.
    pub consumers: Option<u32>,
    /// Whom the pushes went to.
    pub mix: String,
    /// Whether connections were kept.
    pub pooled: bool,
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
    /// The paper's rate.
    pub published_pushes_per_second: Option<f64>,
    /// Ours over the paper's.
    pub ratio: Option<f64>,
    /// What Little's law allows for the modelled latency.
    pub bound_pushes_per_second: Option<f64>,
    /// Measured over allowed.
    pub share_of_bound: Option<f64>,
    /// How long a push held its place, by Little's law from the measured rate.
    pub held_ms: Option<f64>,
    /// The same for the paper's rate.
    pub published_held_ms: Option<f64>,
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
    /// Time until half of the deliveries had ended, in seconds.
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
    /// Why this run does not count; empty when it does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub invalid: String,
    /// Why it was not made: what the machine or the rights do not allow; empty when it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skipped: String,
    /// How the server ended before its time; empty when it did not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ended: String,
    /// What else is to be known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Machine, load and program of this run; absent in runs of older versions, and where several are summed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Environment>,
}

impl Row {
    /// Fills in what follows from the rate, the requests in flight and the latency.
    pub fn derive(&mut self, inflight_requests: Option<u32>, published: Option<f64>) {
        let ratio = |a: f64, b: f64| (b > 0.0).then(|| a / b);
        self.published_pushes_per_second = published;
        self.ratio = published.and_then(|published| ratio(self.pushes_per_second, published));
        let Some(inflight) = inflight_requests.map(f64::from) else { return };
        self.held_ms = held_ms(inflight, self.pushes_per_second);
        self.published_held_ms = published.and_then(|published| held_ms(inflight, published));
        if self.latency_mean_ms > 0.0 {
            let bound = crate::rates::bound_per_second(inflight, self.latency_mean_ms / 1000.0);
            self.bound_pushes_per_second = Some(bound);
            self.share_of_bound = ratio(self.pushes_per_second, bound);
        }
    }

    /// Returns whether its figures count.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.invalid.is_empty() && self.was_made() && self.ended.is_empty()
    }

    /// Returns whether it was made at all.
    #[must_use]
    pub fn was_made(&self) -> bool {
        self.skipped.is_empty()
    }

    /// Returns whether nothing was lost, left over or doubled, and every listening device was reached. A run that was not
    /// made, or whose server was ended by the limit that it was given, proves nothing and spoils nothing.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        if !self.was_made() || !self.ended.is_empty() {
            return true;
        }
        let nothing_amiss = self.lost + self.stuck + self.duplicates == 0 && self.ledger_balanced;
        nothing_amiss && self.known_devices_reached[0] == self.known_devices_reached[1]
    }
}

fn held_ms(inflight: f64, rate: f64) -> Option<f64> {
    (rate > 0.0).then(|| 1000.0 * crate::rates::mean_seconds(inflight, rate))
}
