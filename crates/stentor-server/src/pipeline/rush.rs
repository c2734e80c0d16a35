//! Rushes: when many callers wait for their 202 at once, messages are kept first and begun behind.
//!
//! Beginning a message costs several times what keeping it costs, and both want the one thread that writes. So in a rush
//! a message is only kept (it is then on disk, and due), and the scheduler begins what waits whenever the callers leave
//! it time, and the more of it the more waits: a rush that lasts is slowed down by what it has left behind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stentor_core::chunk::Ticket;
use stentor_core::id::AppId;
use stentor_core::time::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

/// More callers than this at once are a rush.
const CALM_MAX_CALLERS: usize = 8;
/// A crowd makes a rush for this long: whoever shares a commit is answered at once, and asks again at once.
const RUSH: Duration = Duration::from_millis(20);
/// Time between two looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Messages behind from which on they are begun without waiting for the callers.
const BEHIND_MAX_MESSAGES: u64 = 128 * 1_024;
/// Longest wait for the callers before what waits is begun, while it is less than a batch.
const PATIENCE: Duration = Duration::from_millis(60);
/// The same once a batch waits: who comes then waits for those before it anyway.
const BATCH_PATIENCE: Duration = Duration::from_millis(160);
/// Messages behind up to which nobody asks whose they are.
const ANYBODYS_MAX_MESSAGES: u64 = 1_024;
/// Messages that are begun in one transaction, and how many more when most wait: few together cost twice as much each, for
/// every step of theirs is a commit.
const BATCH_MESSAGES: usize = 128;
const BATCH_MORE_MESSAGES: f64 = 256.0;

/// How many ask, and how much is left to be begun.
#[derive(Debug)]
pub struct Rush {
    began: Instant,
    asking: AtomicUsize,
    /// Until when there is a rush, in microseconds since the beginning.
    until_us: AtomicU64,
    behind: AtomicU64,
    /// The same by app, about.
    behind_by_app: Mutex<HashMap<AppId, u64>>,
    /// The latest due time of what is behind, in milliseconds: a clock that goes back must not hold it up.
    due_ms: AtomicI64,
    waiting: Notify,
}

/// A caller who waits for a message to be kept.
#[derive(Debug)]
pub struct Asking(Arc<Rush>);

impl Default for Rush {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            asking: AtomicUsize::new(0),
            until_us: AtomicU64::new(0),
            behind: AtomicU64::new(0),
            behind_by_app: Mutex::default(),
            due_ms: AtomicI64::new(0),
            waiting: Notify::new(),
        }
    }
}

impl Rush {
    /// Notes a caller, for as long as the guard lives.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Asking {
        if self.asking.fetch_add(1, Relaxed) >= CALM_MAX_CALLERS {
            self.until_us.store(self.now_us() + RUSH.as_micros() as u64, Relaxed);
        }
        Asking(self.clone())
    }

    /// Counts the messages that are kept and not begun.
    #[must_use]
    pub fn behind(&self) -> u64 {
        self.behind.load(Relaxed)
    }

    /// Counts those of one app.
    pub(super) fn behind_of(&self, app: AppId) -> u64 {
        if self.behind() == 0 { 0 } else { self.by_app().get(&app).copied().unwrap_or_default() }
    }

    fn by_app(&self) -> MutexGuard<'_, HashMap<AppId, u64>> {
        self.behind_by_app.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is left behind.
    pub(super) async fn something_waits(&self) {
        self.waiting.notified().await;
    }

    fn is_on(&self) -> bool {
        self.now_us() < self.until_us.load(Relaxed)
    }

    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Waits until the callers leave time, or until what waits has waited long enough; returns how many to begin, and by
    /// which time.
    pub(super) async fn lull(&self, now: Timestamp) -> (usize, Timestamp) {
        let behind = self.behind();
        if behind == 0 {
            return (BATCH_MESSAGES, now);
        }
        let asked = Instant::now();
        while self.is_on() && asked.elapsed() < patience(self.behind()) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let behind = self.behind();
        let count = if self.is_on() { share(behind) } else { BATCH_MESSAGES };
        (count, now.max(Timestamp::from_millis(self.due_ms.load(Relaxed))))
    }

    /// Notes that up to `wanted` were begun, and which; fewer than wanted are all there were.
    pub(super) fn note_begun(&self, wanted: usize, begun: &[Ticket], behind_before: u64) {
        if behind_before == 0 {
            return;
        }
        let gone = if begun.len() < wanted { behind_before } else { begun.len() as u64 };
        let _ = self.behind.fetch_update(Relaxed, Relaxed, |behind| Some(behind.saturating_sub(gone)));
        let mut by_app = self.by_app();
        for ticket in begun {
            if let Some(count) = by_app.get_mut(&ticket.lane.app) {
                *count -= 1;
                if *count == 0 {
                    by_app.remove(&ticket.lane.app);
                }
            }
        }
        if self.behind() == 0 {
            by_app.clear();
        }
    }
}

impl Asking {
    /// Returns whether the message is better begun behind.
    #[must_use]
    pub fn in_a_rush(&self) -> bool {
        self.0.is_on()
    }

    /// Returns whether a message of the app is better begun behind: not where it would wait behind those of others only, of
    /// which there are many.
    #[must_use]
    pub fn is_begun_behind(&self, app: AppId) -> bool {
        let behind = self.0.behind();
        if behind < ANYBODYS_MAX_MESSAGES {
            return true;
        }
        let by_app = self.0.by_app();
        let own = by_app.get(&app).copied().unwrap_or_default();
        4 * own.saturating_mul(by_app.len() as u64) >= behind
    }

    /// Notes that it was kept and not begun.
    pub fn left_behind(&self, app: AppId, due_at: Timestamp) {
        self.0.due_ms.fetch_max(due_at.as_millis(), Relaxed);
        *self.0.by_app().entry(app).or_default() += 1;
        self.0.behind.fetch_add(1, Relaxed);
        self.0.waiting.notify_one();
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Relaxed);
    }
}

/// Returns how long callers go first.
fn patience(behind: u64) -> Duration {
    let patience = if behind < BATCH_MESSAGES as u64 { PATIENCE } else { BATCH_PATIENCE };
    patience.mul_f64(1.0 - burden(behind))
}

/// Returns how many are begun while callers wait.
fn share(behind: u64) -> usize {
    BATCH_MESSAGES + (BATCH_MORE_MESSAGES * burden(behind)) as usize
}

/// Returns what is behind as a part of the most, squared: the beginning of a rush is the callers', its end is not.
fn burden(behind: u64) -> f64 {
    (behind as f64 / BEHIND_MAX_MESSAGES as f64).min(1.0).powi(2)
}

#[cfg(test)]
mod tests;
