//! Campaigns of a plan: apps and push services, the cells to run, and the questions that they answer.

use crate::rates::bound_per_second;
use crate::word::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum rate assumed when estimating durations, in pushes per second.
const EXPECTED_PER_SECOND_MAX: f64 = 10_000.0;
/// Duration of start and end of a run assumed when estimating durations, in seconds.
const EXPECTED_SECONDS: f64 = 1.0;

/// The number of waiting answers from which a latency grows: the paper's smallest count of consumers.
pub const GROWTH_FROM: u32 = 20;

/// The definition of a campaign study.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaigns {
    /// Devices of the apps.
    pub registry: Registry,
    /// Latency model of the push services.
    pub provider: ProviderModel,
    /// Background load.
    pub background: Background,
    /// The cells to run.
    pub cells: Vec<CampaignCell>,
    /// Questions that the paper leaves open.
    pub questions: Vec<OpenQuestion>,
}

/// Devices of the two apps at scale 1.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// Devices of the app for tests of one platform.
    pub one_platform: PlatformDevices,
    /// Devices of the app for tests of both platforms.
    pub both_platforms: PlatformDevices,
}

/// Devices by platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlatformDevices {
    /// Devices with Android.
    pub gcm: u64,
    /// Devices of Apple.
    pub apns: u64,
}

/// Latency of push services: lognormal.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderModel {
    /// Median latency, in milliseconds.
    pub latency_median_ms: f64,
    /// Standard deviation of the logarithm.
    pub latency_sigma: f64,
}

/// Background requests, independent of the scale.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Registrations of devices.
    pub device_saves_per_second: u32,
    /// Registrations of users.
    pub user_saves_per_second: u32,
}

words! {
    /// The platforms that pushes go to.
    #[derive(Default)]
    pub enum PlatformMix {
        /// Android only.
        Gcm = "gcm",
        /// Apple only.
        Apns = "apns",
        /// Half of each, using the other app.
        #[default]
        Both = "gcm+apns",
        /// Android only, by the protocol that GCM had, using an app of its own.
        LegacyGcm = "legacy-gcm",
    }
}

/// A question beyond the paper, answered by cells.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenQuestion {
    /// Short name.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// The question, the counterpart of the paper's factor here, and the statement of the paper.
    pub text: String,
}

/// One combination of levels; unspecified levels are those of the study's tests, or the server's defaults.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CampaignCell {
    /// Its name.
    pub id: String,
    /// The question that it belongs to; empty for the study's own tests.
    pub question: String,
    /// The platforms.
    pub mix: PlatformMix,
    /// Requests in flight at each provider, over all apps; if absent, the server decides.
    pub consumers: Option<u32>,
    /// If set, connections are kept open.
    pub pooled: bool,
    /// Constant latency of the push services, in milliseconds; if absent, the study's distribution.
    pub latency_ms: Option<f64>,
    /// Exponent by which the latency of a push service grows with the answers that wait at it, from [`GROWTH_FROM`] on; if absent, it does
    /// not grow.
    pub latency_growth: Option<f64>,
    /// Share of unregistered tokens, in percent; such runs have devices of their own.
    pub unregistered_percent: Option<u32>,
    /// If set, a few tokens are dead and a few responses are transient errors, as in the demo.
    pub some_errors: bool,
    /// Apps that send concurrently, each with a queue and a producer for each provider.
    pub apps: u32,
    /// Campaigns of one app that share an audience of one platform; each has a producer.
    pub producers: u32,
    /// Devices of a chunk, the unit of queued work.
    pub chunk_devices: Option<u32>,
    /// Chunks that a producer makes in one transaction.
    pub expand_chunks: Option<u32>,
    /// Workers that take chunks from the queue; if absent, as many as requests in flight.
    pub workers: Option<u32>,
    /// Connections that the requests in flight are distributed over; if absent, as many as requests in flight.
    pub connections: Option<u32>,
    /// CPU limit of the server, in percent of one core.
    pub cpu_percent: Option<u32>,
    /// Memory limit of the server.
    pub memory_mib: Option<u32>,
    /// Devices and users saved concurrently, per second for each kind.
    pub saves_per_second: Option<u32>,
    /// A remark.
    pub note: String,
}

impl Default for CampaignCell {
    fn default() -> Self {
        Self {
            id: String::new(),
            question: String::new(),
            mix: PlatformMix::Both,
            consumers: None,
            pooled: true,
            latency_ms: None,
            latency_growth: None,
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

impl Campaigns {
    /// Returns the devices of an app at a scale, at least two of each platform.
    #[must_use]
    pub fn devices(&self, mix: PlatformMix, scale: f64) -> PlatformDevices {
        let full =
            if mix == PlatformMix::Both { self.registry.both_platforms } else { self.registry.one_platform };
        let scaled = |count: u64| ((count as f64 * scale).round() as u64).max(2);
        PlatformDevices { gcm: scaled(full.gcm), apns: scaled(full.apns) }
    }

    /// Returns the number of pushes of a test with this mix at a scale.
    #[must_use]
    pub fn pushes(&self, mix: PlatformMix, scale: f64) -> u64 {
        let PlatformDevices { gcm, apns } = self.devices(mix, scale);
        match mix {
            PlatformMix::Gcm | PlatformMix::LegacyGcm => gcm,
            PlatformMix::Apns => apns,
            PlatformMix::Both => gcm + apns,
        }
    }

    /// Returns the estimated duration of a cell's run at a scale, in seconds.
    #[must_use]
    pub fn expected_seconds(&self, cell: &CampaignCell, scale: f64) -> f64 {
        let mean_seconds = cell.latency(self.provider).mean_ms() / 1000.0 * cell.growth();
        let places = cell.inflight_requests().filter(|_| mean_seconds > 0.0);
        let bound = places.map(|places| bound_per_second(f64::from(places), mean_seconds));
        let rate = bound.unwrap_or(f64::INFINITY).min(EXPECTED_PER_SECOND_MAX);
        self.pushes(cell.mix, scale) as f64 / rate + EXPECTED_SECONDS
    }
}

impl ProviderModel {
    /// Returns a model with constant latency, in milliseconds.
    #[must_use]
    pub const fn fixed(latency_ms: f64) -> Self {
        Self { latency_median_ms: latency_ms, latency_sigma: 0.0 }
    }

    /// Returns the mean, in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.latency_median_ms * (self.latency_sigma * self.latency_sigma / 2.0).exp()
    }
}

impl CampaignCell {
    /// Returns the latency model of the cell.
    #[must_use]
    pub fn latency(&self, usual: ProviderModel) -> ProviderModel {
        self.latency_ms.map_or(usual, ProviderModel::fixed)
    }

    /// Returns the maximum of requests in flight over all providers, if it is fixed.
    #[must_use]
    pub fn inflight_requests(&self) -> Option<u32> {
        let providers = if self.mix == PlatformMix::Both { 2 } else { 1 };
        self.consumers.map(|consumers| consumers * providers)
    }

    /// Returns the factor by which the latency grows if all requests of a provider are in flight.
    fn growth(&self) -> f64 {
        let load = f64::from(self.consumers.unwrap_or(GROWTH_FROM)) / f64::from(GROWTH_FROM);
        self.latency_growth.map_or(1.0, |exponent| load.max(1.0).powf(exponent))
    }

    /// Returns true if tokens become invalid in the run, so that no other run may use the same devices.
    #[must_use]
    pub const fn needs_own_devices(&self) -> bool {
        self.unregistered_percent.is_some() || self.some_errors
    }

    /// Lists its levels by factor for a record: mix and pooling, and every level that differs from the study's tests.
    #[must_use]
    pub fn levels(&self) -> BTreeMap<String, String> {
        let (own, usual) = (serde_json::json!(self), serde_json::json!(Self::default()));
        let named = own.as_object().into_iter().flatten().filter(|(name, level)| match name.as_str() {
            "id" | "question" | "note" => false,
            "mix" | "pooled" => true,
            _ => usual[name.as_str()] != **level,
        });
        let text =
            |level: &serde_json::Value| level.as_str().map_or_else(|| level.to_string(), str::to_owned);
        named.map(|(name, level)| (name.clone(), text(level))).collect()
    }

    /// Describes the levels that differ from the study's tests, for a table.
    #[must_use]
    pub fn levels_text(&self) -> String {
        let said = |name: &str, level: Option<u32>| level.map(|level| format!("{name} {level}"));
        let several = |name: &str, level: u32| (level > 1).then(|| format!("{name} {level}"));
        let levels = [
            self.latency_ms.map(|latency| format!("latency {latency} ms")),
            self.latency_growth
                .map(|exponent| format!("latency grows with (waiting / {GROWTH_FROM})^{exponent}")),
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

#[cfg(test)]
mod tests;
