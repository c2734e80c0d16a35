//! One combination of levels: what one run is made of, in the paper or beyond it.

use serde::{Deserialize, Serialize};

use super::{Mix, ProviderModel};

/// No run is expected to be faster, in pushes per second, when it is planned how long all will take.
const EXPECTED_PER_SECOND_MAX: f64 = 10_000.0;
/// Start and end of a run, in seconds, when it is planned how long all will take.
const EXPECTED_SECONDS: f64 = 1.0;

/// A question beyond the paper, which cells answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Short name.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What is asked, what stands for the paper's factor here, and what the paper says.
    pub text: String,
}

/// What one run is made of; what is not said is as in the study's tests, or the server's default.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cell {
    /// Its name.
    pub id: String,
    /// The question that it belongs to; empty for the study's own tests.
    pub group: String,
    /// Whom the pushes go to.
    pub mix: Mix,
    /// Requests in flight at each provider, over all apps; the server decides when absent.
    pub consumers: Option<u32>,
    /// Whether connections are kept.
    pub pooled: bool,
    /// Time that every answer of the push services takes, in milliseconds; the study's distribution when absent.
    pub latency_ms: Option<f64>,
    /// Of 100 tokens, so many are not registered; such runs have devices of their own.
    pub unregistered_percent: Option<u32>,
    /// Whether a few tokens are dead and a few answers are passing errors, as in the demo.
    pub some_errors: bool,
    /// Apps that send at once, each with a queue and a producer for each provider.
    pub apps: u32,
    /// Campaigns of one app that share an audience of one platform; each has a producer.
    pub producers: u32,
    /// Devices of a chunk, the unit of queued work.
    pub chunk_devices: Option<u32>,
    /// Chunks that a producer makes in one transaction.
    pub expand_chunks: Option<u32>,
    /// Workers that take chunks from the queue; as many as requests in flight when absent.
    pub workers: Option<u32>,
    /// Connections that the requests in flight are spread over; as many as requests in flight when absent.
    pub connections: Option<u32>,
    /// Processor time of the server: 100 is one core.
    pub cpu_percent: Option<u32>,
    /// Memory of the server.
    pub memory_mib: Option<u32>,
    /// Devices and users saved meanwhile, of each so many a second.
    pub saves_per_second: Option<u32>,
    /// What else is to be known.
    pub note: String,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            id: String::new(),
            group: String::new(),
            mix: Mix::Both,
            consumers: None,
            pooled: true,
            latency_ms: None,
            unregistered_percent: None,
            some_errors: false,
            apps: 1,
            producers: 1,
            chunk_devices: None,
            expand_chunks: None,
            workers: None,
            connections: None,
            cpu_percent: None,
            memory_mib: None,
            saves_per_second: None,
            note: String::new(),
        }
    }
}

impl Cell {
    /// Returns how long the push services take.
    #[must_use]
    pub fn latency(&self, usual: ProviderModel) -> ProviderModel {
        self.latency_ms.map_or(usual, ProviderModel::fixed)
    }

    /// Counts the requests that may be in flight over all providers, if that is fixed.
    #[must_use]
    pub fn inflight_requests(&self) -> Option<u32> {
        self.consumers.map(|consumers| consumers * self.mix.providers())
    }

    /// Returns whether tokens die, so that no other run may meet the same devices.
    #[must_use]
    pub const fn needs_own_devices(&self) -> bool {
        self.unregistered_percent.is_some() || self.some_errors
    }

    /// Returns about how long a run with so many pushes will take, in seconds.
    #[must_use]
    pub fn expected_seconds(&self, usual: ProviderModel, pushes: u64) -> f64 {
        let mean_seconds = self.latency(usual).mean_ms() / 1000.0;
        let bound = self.inflight_requests().filter(|_| mean_seconds > 0.0);
        let bound = bound.map(|places| crate::rates::bound_per_second(f64::from(places), mean_seconds));
        pushes as f64 / bound.unwrap_or(f64::INFINITY).min(EXPECTED_PER_SECOND_MAX) + EXPECTED_SECONDS
    }

    /// Names the levels that are not as in the study's tests, for a table.
    #[must_use]
    pub fn levels(&self) -> String {
        let said = |name: &str, level: Option<u32>| level.map(|level| format!("{name} {level}"));
        let several = |name: &str, level: u32| (level > 1).then(|| format!("{name} {level}"));
        let levels = [
            self.latency_ms.map(|latency| format!("latency {latency} ms")),
            self.unregistered_percent.map(|percent| format!("unregistered {percent} %")),
            self.some_errors.then(|| "some tokens dead, some passing errors".to_owned()),
            several("apps", self.apps),
            several("producers", self.producers),
            said("devices per queue entry", self.chunk_devices),
            said("entries per transaction", self.expand_chunks),
            said("workers", self.workers),
            said("connections", self.connections),
            self.cpu_percent.map(|percent| format!("processor {percent} % of a core")),
            self.memory_mib.map(|mib| format!("memory {mib} MiB")),
            said("saves per second, of each kind,", self.saves_per_second),
        ];
        levels.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}
