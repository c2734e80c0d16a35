//! Campaigns while everything is killed and troubled that can be, and a proof at the end of each.

mod report;

use crate::demo::{self, DemoOptions, DemoReport, GatewayDemoOptions};
use crate::devices::StagedServices;
use crate::reporter::Reporter;
use crate::troubles::Trouble;
pub use report::{KillReport, PhaseReport};
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of devices of a campaign in trouble: the trouble matters there, not the size, and the disk is small.
const TROUBLED_MAX_DEVICES: u64 = 20_000;
/// Fewest devices for a kill at full speed, or the campaign would end before all kills had happened.
const FAST_MIN_DEVICES_PER_KILL: u64 = 10_000;

/// Most devices of the gateway's campaign: each is a connection of this process, and of the server's.
const GATEWAY_MAX_DEVICES: u64 = 20_000;
/// The time without a change after which the gateway's campaign is given up although receipts are missing.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);

/// The options of a kill suite.
#[derive(Clone, Debug)]
pub struct KillOptions {
    /// The number of devices, dealt out to the push services.
    pub devices: u64,
    /// The push services.
    pub providers: StagedServices,
    /// The number of kills of the server, of kills of an emulator, and of pauses of both emulators.
    pub kills: u32,
    /// The phases, in their order.
    pub phases: Vec<KillPhase>,
    /// The seed of tokens, responses and moments.
    pub seed: u64,
}

/// A campaign of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillPhase {
    /// All that can be killed is, and emulators stop.
    Kills,
    /// The server is killed while nothing slows it down.
    FullSpeed,
    /// The disk is full for a while.
    DiskFull,
    /// Every sync fails for a while.
    FsyncError,
    /// The clock jumps.
    ClockJump,
    /// The server is killed while devices of our own gateway are connected and confirm.
    Gateway,
}

impl KillPhase {
    /// All phases, in the order in which they are run.
    pub const ALL: [Self; 6] =
        [Self::Kills, Self::FullSpeed, Self::DiskFull, Self::FsyncError, Self::ClockJump, Self::Gateway];

    /// Its name on the command line and in the report.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kills => "kills",
            Self::FullSpeed => "full-speed",
            Self::DiskFull => "disk-full",
            Self::FsyncError => "fsync-error",
            Self::ClockJump => "clock-jump",
            Self::Gateway => "gateway",
        }
    }

    /// Returns its description for the help of the command line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Kills => "All that can be killed is, and emulators stop",
            Self::FullSpeed => "The server is killed while nothing slows it down",
            Self::DiskFull => "The disk is full for a while",
            Self::FsyncError => "Every sync fails for a while",
            Self::ClockJump => "The clock jumps",
            Self::Gateway => {
                "The server is killed while devices of our own gateway are connected and confirm"
            }
        }
    }

    const fn trouble(self) -> Option<Trouble> {
        match self {
            Self::Kills | Self::FullSpeed | Self::Gateway => None,
            Self::DiskFull => Some(Trouble::DiskFull),
            Self::FsyncError => Some(Trouble::FsyncError),
            Self::ClockJump => Some(Trouble::ClockJump),
        }
    }
}

impl KillOptions {
    async fn play(&self, phase: KillPhase, reporter: &Arc<dyn Reporter>) -> anyhow::Result<DemoReport> {
        match phase {
            KillPhase::Gateway => demo::run_gateway(&self.gateway_demo(), reporter).await,
            _ => demo::run(&self.demo(phase).through(self.providers), reporter).await,
        }
    }

    fn gateway_demo(&self) -> GatewayDemoOptions {
        GatewayDemoOptions {
            devices: self.devices.min(GATEWAY_MAX_DEVICES),
            kills: self.kills,
            seed: self.seed,
            keep: None,
            latency: None,
            give_up_after: GIVE_UP_AFTER,
        }
    }

    fn demo(&self, phase: KillPhase) -> DemoOptions {
        let fast_devices = self.devices.max(FAST_MIN_DEVICES_PER_KILL * u64::from(self.kills));
        match phase.trouble() {
            None if phase == KillPhase::FullSpeed => {
                DemoOptions::killed_at_full_speed(fast_devices, self.kills, self.seed)
            }
            None => DemoOptions::under_fire(self.devices, self.kills, self.seed),
            Some(trouble) => {
                DemoOptions::in_trouble(self.devices.min(TROUBLED_MAX_DEVICES), trouble, self.seed)
            }
        }
    }
}

/// Runs the phases one after the other; one that breaks off does not keep the next from running.
pub async fn run(options: &KillOptions, reporter: &Arc<dyn Reporter>) -> KillReport {
    let mut report = KillReport::default();
    for phase in &options.phases {
        let word = phase.word();
        if let Some(reason) = phase.trouble().and_then(|trouble| trouble.obstacle(reporter)) {
            reporter.line(&format!("skipped: {word}: {reason}"));
            report.skip(word, reason);
            continue;
        }
        reporter.line(&format!("phase: {word}"));
        report.note(word, options.play(*phase, reporter).await);
    }
    report
}
