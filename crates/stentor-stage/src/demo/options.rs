//! What a demo is asked for: a stage, a campaign through it, and what happens meanwhile.

use super::kills::Kills;
use crate::devices::DevicePopulation;
use crate::engines::{StageQueue, StageStore};
use crate::policy::AnswerPolicy;
use crate::stage::{PushServices, StageOptions};
use crate::troubles::{self, Trouble};
use std::path::PathBuf;
use std::time::Duration;

/// How long the campaign should last at least, for every kill, so that all of them fall into it.
pub(super) const SECONDS_PER_KILL: f64 = 0.5;
/// How many requests a provider may have in flight when it begins.
const USUAL_INFLIGHT_REQUESTS: f64 = 4_096.0;
/// A small campaign is in flight as a whole; it must not be answered before the next kill can come.
const MAX_LATENCY_MS: f64 = 1000.0 * SECONDS_PER_KILL;

/// The campaign that is to be sent, and what happens to it.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// What it is sent through.
    pub stage: StageOptions,
    /// What is killed, stopped and troubled on the way, and how often.
    pub kills: Kills,
    /// When to stop although deliveries are open: after so long without a change.
    pub give_up_after: Duration,
}

impl DemoOptions {
    /// A campaign through this stage, with these kills; where no latency is asked for it is one at which the campaign lasts
    /// long enough for all of them.
    pub fn new(mut stage: StageOptions, mut kills: Kills, give_up_after: Duration) -> Self {
        kills.troubles = if stage.trouble.is_some() { troubles::TIMES } else { 0 };
        stage.latency_ms = stage.latency_ms.or_else(|| latency_for(kills.all(), stage.devices));
        Self { stage, kills, give_up_after }
    }

    /// A campaign through sinks, without kills: what the pipeline alone can do.
    pub fn through_sinks(
        devices: u64,
        latency_ms: Option<f64>,
        keep: Option<PathBuf>,
        (store, queue): (StageStore, StageQueue),
    ) -> Self {
        let stage = StageOptions { latency_ms, keep, store, queue, ..StageOptions::with_sinks(devices) };
        Self::new(stage, Kills::default(), Duration::from_secs(60))
    }

    /// A campaign through emulators in which all that can be killed is, so often each, and emulators stop as often.
    pub fn under_fire(devices: u64, kills: u32, seed: u64) -> Self {
        Self::through_emulators(
            devices,
            Kills { server: kills, emulators: kills, stalls: kills, ..Kills::default() },
            seed,
            None,
        )
    }

    /// A campaign through sinks that answer at once, while the server is killed so often.
    pub fn killed_at_full_speed(devices: u64, kills: u32, seed: u64) -> Self {
        let stage = StageOptions { latency_ms: Some(0.0), seed, ..StageOptions::with_sinks(devices) };
        Self::new(stage, Kills { server: kills, ..Kills::default() }, Duration::from_secs(60))
    }

    /// A campaign through emulators while a trouble comes again and again below the server, which nobody kills.
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
        DevicePopulation::new(self.stage.devices, self.stage.seed)
    }
}

/// Returns a latency at which a campaign lasts long enough for so many kills, if there are any.
fn latency_for(kills: u32, devices: u64) -> Option<f64> {
    let devices_per_provider = devices as f64 / 2.0;
    let seconds = SECONDS_PER_KILL * f64::from(kills);
    let ms = 1000.0 * seconds * USUAL_INFLIGHT_REQUESTS / devices_per_provider;
    (kills > 0).then(|| ms.clamp(1.0, MAX_LATENCY_MS))
}
