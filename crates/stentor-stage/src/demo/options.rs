//! The options of a demo: a stage, a campaign through it, and its disturbances.

use super::kills::Kills;
use crate::devices::{DevicePopulation, StagedService, StagedServices};
use crate::engines::{StageQueue, StageStore};
use crate::policy::AnswerPolicy;
use crate::stage::{PushServices, StageOptions};
use crate::troubles::{self, Trouble};
use std::path::PathBuf;
use std::time::Duration;

/// The minimum duration of the campaign per kill, so that all kills fall into it.
pub(super) const SECONDS_PER_KILL: f64 = 0.5;
/// The same for every trouble, which lasts a few seconds itself.
const SECONDS_PER_TROUBLE: f64 = 4.0;
/// The number of requests in flight: a part of a small audience, and for a large one no more than the sender begins with. After a crash it
/// is smaller; the larger number would give a latency at which the campaign lasts needlessly long.
const INFLIGHT_PART: f64 = 16.0;
const INFLIGHT_MAX_REQUESTS: f64 = 8_192.0;
const CAREFUL_PART: f64 = 100.0;
const CAREFUL_MAX_REQUESTS: f64 = 2_000.0;
/// The smallest chunk of each push service.
const INFLIGHT_MIN_REQUESTS: f64 = 50.0;
/// Responses that take longer would be treated as lost.
const MAX_LATENCY_MS: f64 = 1000.0 * SECONDS_PER_KILL;

/// The campaign to be sent, with its disturbances.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// The stage that it is sent through.
    pub stage: StageOptions,
    /// The numbers of kills, pauses and troubles on the way.
    pub kills: Kills,
    /// The time without a change after which the campaign is given up although deliveries are open.
    pub give_up_after: Duration,
}

impl DemoOptions {
    /// A campaign through this stage, with these kills. If no latency is given, it is chosen so that the campaign lasts long enough for all
    /// of them.
    pub fn new(mut stage: StageOptions, mut kills: Kills, give_up_after: Duration) -> Self {
        kills.troubles = if stage.trouble.is_some() { troubles::TIMES } else { 0 };
        stage.latency_ms = stage.latency_ms.or_else(|| latency_for(kills, stage.devices));
        Self { stage, kills, give_up_after }
    }

    /// A campaign through sinks, without kills: the speed of the pipeline alone.
    pub fn through_sinks(
        devices: u64,
        latency_ms: Option<f64>,
        keep: Option<PathBuf>,
        store: StageStore,
        queue: StageQueue,
    ) -> Self {
        let stage = StageOptions { latency_ms, keep, store, queue, ..StageOptions::with_sinks(devices) };
        Self::new(stage, Kills::default(), Duration::from_secs(60))
    }

    /// A campaign through emulators with this number of kills of the server, of kills of emulators, and of pauses of the emulators.
    pub fn under_fire(devices: u64, kills: u32, seed: u64) -> Self {
        let kills = Kills { server: kills, emulators: kills, stalls: kills, ..Kills::default() };
        Self::through_emulators(devices, kills, seed, None)
    }

    /// The same campaign through other push services. Sinks understand the usual ones only: they give way to emulators that accept all.
    #[must_use]
    pub fn through(mut self, providers: StagedServices) -> Self {
        let is_usual = providers.as_slice().iter().all(|service| StagedService::USUAL.contains(service));
        self.stage.providers = providers;
        if self.stage.services.are_sinks() && !is_usual {
            self.stage.services = PushServices::Emulators(AnswerPolicy::AcceptAll);
        }
        self
    }

    /// A campaign through sinks that answer at once, with this number of kills of the server.
    pub fn killed_at_full_speed(devices: u64, kills: u32, seed: u64) -> Self {
        let stage = StageOptions { latency_ms: Some(0.0), seed, ..StageOptions::with_sinks(devices) };
        Self::new(stage, Kills { server: kills, ..Kills::default() }, Duration::from_secs(60))
    }

    /// A campaign through emulators with a repeated trouble below the server, and without kills.
    pub fn in_trouble(devices: u64, trouble: Trouble, seed: u64) -> Self {
        Self::through_emulators(devices, Kills::default(), seed, Some(trouble))
    }

    fn through_emulators(devices: u64, kills: Kills, seed: u64, trouble: Option<Trouble>) -> Self {
        let services = PushServices::Emulators(AnswerPolicy::Realistic);
        let stage = StageOptions { services, seed, trouble, ..StageOptions::with_emulators(devices) };
        Self::new(stage, kills, Duration::from_secs(300))
    }

    /// The devices that it is sent to.
    pub fn devices(&self) -> DevicePopulation {
        self.stage.population()
    }
}

/// Returns a latency at which a campaign lasts long enough for these kills, if there are any.
fn latency_for(kills: Kills, devices: u64) -> Option<f64> {
    let (part, most) = match kills.server {
        0 => (INFLIGHT_PART, INFLIGHT_MAX_REQUESTS),
        _ => (CAREFUL_PART, CAREFUL_MAX_REQUESTS),
    };
    let devices = devices.max(1) as f64;
    let inflight = (devices / part).clamp(INFLIGHT_MIN_REQUESTS, most);
    let troubles = f64::from(kills.troubles);
    let seconds = SECONDS_PER_KILL * (f64::from(kills.all()) - troubles) + SECONDS_PER_TROUBLE * troubles;
    (kills.all() > 0).then(|| (1000.0 * seconds * inflight / devices).clamp(1.0, MAX_LATENCY_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_leaves_each_kill_its_time_with_what_is_in_flight_then() {
        let server = |kills| Kills { server: kills, ..Kills::default() };
        assert_eq!(latency_for(server(0), 1_000), None);
        assert_eq!(latency_for(server(5), 20_000), Some(25.0));
        assert_eq!(latency_for(server(5), 1_000_000), Some(5.0));
        assert_eq!(latency_for(server(5), 100_000_000), Some(1.0));
        assert_eq!(latency_for(Kills { emulators: 4, ..Kills::default() }, 3_200), Some(125.0));
        assert_eq!(latency_for(Kills { troubles: 1, ..Kills::default() }, 3_200), Some(250.0));
    }
}
