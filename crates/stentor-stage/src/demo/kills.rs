//! The schedule of kills: moments spread over the campaign, each drawn at random around its share, and each while deliveries are on their
//! way. Each kill has a target.

use crate::ledger::LedgerTotals;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::time::{Duration, Instant};

/// The target of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KillTarget {
    /// The server.
    Server,
    /// One of the emulators, in turn.
    Emulator,
    /// Both emulators: they are not killed but stop for a while.
    Stalled,
    /// The server, which is not killed: the layer below it is in trouble.
    Troubled,
}

impl KillTarget {
    /// Returns the participle for reports.
    pub(super) const fn participle(self) -> &'static str {
        match self {
            Self::Server | Self::Emulator => "killed",
            Self::Stalled => "stopped",
            Self::Troubled => "troubled",
        }
    }
}

/// The numbers of kills by target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kills {
    /// The number of kills of the server.
    pub server: u32,
    /// The number of kills of an emulator.
    pub emulators: u32,
    /// The number of pauses of the emulators.
    pub stalls: u32,
    /// The number of troubles below the server.
    pub troubles: u32,
}

impl Kills {
    /// Adds all of them.
    pub const fn all(self) -> u32 {
        self.server + self.emulators + self.stalls + self.troubles
    }
}

/// A kill to come.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ScheduledKill {
    target: KillTarget,
    /// The share of the campaign that is done when it is due.
    share: f64,
    /// The kill is due as well after this time without progress, because small campaigns move in few steps. Not before the first delivery
    /// has ended.
    impatient_after: Duration,
}

/// The share of a campaign in which all kills are due: a look that comes late still finds deliveries on their way.
const ALL_WITHIN: f64 = 0.9;

/// All kills to come.
pub(super) struct KillSchedule {
    scheduled: std::vec::IntoIter<ScheduledKill>,
    next: Option<ScheduledKill>,
    done: u64,
    moved_at: Instant,
}

impl KillSchedule {
    /// Plans these kills.
    pub(super) fn new(kills: Kills, seconds_per_kill: f64, seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let mut targets = vec![KillTarget::Server; kills.server as usize];
        targets.resize(targets.len() + kills.emulators as usize, KillTarget::Emulator);
        targets.resize(targets.len() + kills.stalls as usize, KillTarget::Stalled);
        targets.resize(targets.len() + kills.troubles as usize, KillTarget::Troubled);
        targets.shuffle(&mut dice);
        let shares = (targets.len() as f64 + 1.0) / ALL_WITHIN;
        let kill = |(index, target): (usize, KillTarget)| ScheduledKill {
            target,
            // Anywhere around its place, but a fifth of a place after the one before: two kills at once are one.
            share: (index as f64 + 0.6 + 0.8 * dice.random::<f64>()) / shares,
            // Within the time that the campaign has for each kill, and not the same for all.
            impatient_after: Duration::from_secs_f64(seconds_per_kill * (0.2 + 0.6 * dice.random::<f64>())),
        };
        let scheduled: Vec<ScheduledKill> = targets.into_iter().enumerate().map(kill).collect();
        let mut scheduled = scheduled.into_iter();
        Self { next: scheduled.next(), scheduled, done: 0, moved_at: Instant::now() }
    }

    /// Returns true if kills are still to come.
    pub(super) fn is_pending(&self) -> bool {
        self.next.is_some()
    }

    /// Returns the target to kill now, if a kill is due in a campaign to `devices` devices. None is due before the first delivery has
    /// ended, or while no delivery is leased.
    pub(super) fn due(&mut self, totals: &LedgerTotals, devices: u64) -> Option<KillTarget> {
        self.due_at(totals.ended(), totals.sending, devices)
    }

    /// The same, given the numbers of deliveries that are done and on their way.
    pub(super) fn due_at(&mut self, done: u64, on_the_way: u64, devices: u64) -> Option<KillTarget> {
        if done != self.done {
            self.done = done;
            self.moved_at = Instant::now();
        }
        let kill = self.next?;
        let reached = done as f64 >= kill.share * devices as f64;
        let impatient = self.moved_at.elapsed() >= kill.impatient_after;
        if done == 0 || on_the_way == 0 || !(reached || impatient) {
            return None;
        }
        self.next = self.scheduled.next();
        Some(kill.target)
    }

    /// Restarts the wait after the killed process is back.
    pub(super) fn is_back(&mut self) {
        self.moved_at = Instant::now();
    }
}

#[cfg(test)]
mod tests;
