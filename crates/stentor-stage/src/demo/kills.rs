//! When is killed, and who: moments spread over the campaign, each drawn by chance around its share, and each while
//! deliveries are on their way.

use crate::ledger::LedgerTotals;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::time::{Duration, Instant};

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KillTarget {
    /// The server.
    Server,
    /// One of the emulators, in turn.
    Emulator,
    /// Both emulators: they are not killed but stop for a while.
    Stalled,
    /// The server, which is not killed: what is below it is in trouble.
    Troubled,
}

impl KillTarget {
    /// Returns in a word what was done to it.
    pub(super) const fn participle(self) -> &'static str {
        match self {
            Self::Server | Self::Emulator => "killed",
            Self::Stalled => "stopped",
            Self::Troubled => "troubled",
        }
    }
}

/// How many kills hit the server, and how many the emulators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kills {
    /// How often the server is killed.
    pub server: u32,
    /// How often an emulator is killed.
    pub emulators: u32,
    /// How often the emulators stop for a while.
    pub stalls: u32,
    /// How often what is below the server is in trouble.
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
    /// It is due as well when nothing was seen to move for so long: small campaigns move in few steps.
    /// Not before anything has ended at all.
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
    /// Plans so many kills of each.
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

    /// Returns whether kills are still to come.
    pub(super) fn is_pending(&self) -> bool {
        self.next.is_some()
    }

    /// Looks at a campaign to so many devices and returns who is to be killed now, if anybody: nobody before the first
    /// delivery has ended, and nobody while none is leased.
    pub(super) fn due(&mut self, totals: &LedgerTotals, devices: u64) -> Option<KillTarget> {
        self.due_at(totals.ended(), totals.sending, devices)
    }

    /// The same where so many deliveries are `done` and so many on their way.
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

    /// Begins to wait anew, after whoever was killed is back.
    pub(super) fn is_back(&mut self) {
        self.moved_at = Instant::now();
    }
}

#[cfg(test)]
mod tests;
