//! The backlog: messages that are accepted and not begun, and how much of the writer's time their beginning may take.
//!
//! Accepting only appends. Beginning a message costs several times as much, and both want the one thread that writes. While
//! few callers wait for a 202, what is accepted is begun at once. While many wait they go first, as long as the backlog is
//! small: the larger it is, the sooner and the more of it is begun, so that callers who never stop are slowed down by it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::AppId;
use stentor_core::ports::store::Started;
use stentor_core::time::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::admission::BacklogSize;

/// Callers at once up to which all are answered as fast as if their messages were begun elsewhere.
const FEW_CALLERS_MAX_COUNT: usize = 8;
/// More callers than that count as many for this long: whoever shares a commit is answered at once, and calls again at once.
const MANY_CALLERS_FOR: Duration = Duration::from_millis(20);
/// Time between two looks whether there are still many callers.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Messages from which on they are begun without waiting for callers.
const FULL_MESSAGES: u64 = 128 * 1_024;
/// Longest wait for callers while the backlog is less than a batch.
const WAIT_MAX: Duration = Duration::from_millis(60);
/// The same once a batch waits: who comes then waits for those before it anyway.
const BATCH_WAIT_MAX: Duration = Duration::from_millis(160);
/// Messages that are begun in one transaction, and how many more when the backlog is full: few together cost twice as much
/// each, for every step of theirs is a commit.
const BATCH_MESSAGES: usize = 128;
const BATCH_MORE_MESSAGES: f64 = 256.0;

/// How many callers wait, and how much is left to be begun.
#[derive(Debug)]
pub struct Backlog {
    began: Instant,
    callers: AtomicUsize,
    /// Until when there are many callers, in microseconds since the beginning.
    many_until_us: AtomicU64,
    messages: AtomicU64,
    /// The same by app, about.
    by_app: Mutex<HashMap<AppId, u64>>,
    /// The latest due time of the backlog, in milliseconds: a clock that goes back must not hold it up.
    due_ms: AtomicI64,
    arrived: Notify,
}

/// A caller who waits for a message to be accepted.
#[derive(Debug)]
pub struct AcceptGuard(Arc<Backlog>);

impl Default for Backlog {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            callers: AtomicUsize::new(0),
            many_until_us: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            by_app: Mutex::default(),
            due_ms: AtomicI64::new(0),
            arrived: Notify::new(),
        }
    }
}

impl Backlog {
    /// Counts a caller, for as long as the guard lives.
    #[must_use]
    pub fn accepting(self: &Arc<Self>) -> AcceptGuard {
        if self.callers.fetch_add(1, Relaxed) >= FEW_CALLERS_MAX_COUNT {
            self.many_until_us.store(self.now_us() + MANY_CALLERS_FOR.as_micros() as u64, Relaxed);
        }
        AcceptGuard(self.clone())
    }

    /// Counts the messages.
    fn messages(&self) -> u64 {
        self.messages.load(Relaxed)
    }

    /// Returns how much of it is one app's.
    pub(super) fn size(&self, app: AppId) -> BacklogSize {
        let of_all = self.messages();
        let of_app = if of_all == 0 { 0 } else { self.by_app().get(&app).copied().unwrap_or_default() };
        BacklogSize { of_all, of_app }
    }

    fn by_app(&self) -> MutexGuard<'_, HashMap<AppId, u64>> {
        self.by_app.lock()
    }

    /// Waits until something has arrived.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    fn has_many_callers(&self) -> bool {
        self.now_us() < self.many_until_us.load(Relaxed)
    }

    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Waits until callers leave time, or until the backlog has waited long enough.
    pub(super) async fn turn(&self, now: Timestamp) -> StarterTurn {
        let asked = Instant::now();
        while self.messages() > 0 && self.has_many_callers() && asked.elapsed() < wait_max(self.messages()) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let messages = self.messages();
        let batch = if self.has_many_callers() { batch(messages) } else { BATCH_MESSAGES };
        StarterTurn { batch, by: now.max(Timestamp::from_millis(self.due_ms.load(Relaxed))), messages }
    }

    /// Notes what was begun in a turn.
    pub(super) fn note_started(&self, turn: &StarterTurn, started: &Started) {
        if turn.messages == 0 {
            return;
        }
        // Without more, nothing of what was there is left, whatever the counts say.
        let gone = if started.has_more { started.begun.len() as u64 } else { turn.messages };
        // `Relaxed`: the counts say when and how much is begun, the store says what.
        let _ = self.messages.fetch_update(Relaxed, Relaxed, |count| Some(count.saturating_sub(gone)));
        let mut by_app = self.by_app();
        // Locked to the end: what is accepted between the look at zero and the clearing would be lost.
        for app in &started.begun {
            if let Some(count) = by_app.get_mut(app) {
                *count -= 1;
                if *count == 0 {
                    by_app.remove(app);
                }
            }
        }
        if self.messages() == 0 {
            by_app.clear();
            // What comes next is due by its own time: with that of before, a clock that went back would hold it up as long.
            self.due_ms.store(0, Relaxed);
        }
    }
}

/// One turn of beginning what waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StarterTurn {
    /// Most messages to begin.
    pub(super) batch: usize,
    /// Due by when.
    pub(super) by: Timestamp,
    /// The backlog before it.
    messages: u64,
}

impl AcceptGuard {
    /// Notes that a message that is due was accepted.
    pub fn accepted(&self, app: AppId, due_at: Timestamp) {
        // All under the lock, under which an empty backlog forgets by when it was due: between the two it would forget this message's.
        let mut by_app = self.0.by_app();
        self.0.due_ms.fetch_max(due_at.as_millis(), Relaxed);
        *by_app.entry(app).or_default() += 1;
        self.0.messages.fetch_add(1, Relaxed);
        drop(by_app);
        // After the counts: who is woken finds it. The permit stays if nobody waits yet.
        self.0.arrived.notify_one();
    }
}

impl Drop for AcceptGuard {
    fn drop(&mut self) {
        self.0.callers.fetch_sub(1, Relaxed);
    }
}

/// Returns how long callers go first.
fn wait_max(messages: u64) -> Duration {
    let longest = if messages < BATCH_MESSAGES as u64 { WAIT_MAX } else { BATCH_WAIT_MAX };
    longest.mul_f64(1.0 - fullness(messages))
}

/// Returns how many are begun while many callers wait.
fn batch(messages: u64) -> usize {
    BATCH_MESSAGES + (BATCH_MORE_MESSAGES * fullness(messages)) as usize
}

/// Returns the backlog as a part of the full one, squared: the first messages are the callers', the last are not.
fn fullness(messages: u64) -> f64 {
    (messages as f64 / FULL_MESSAGES as f64).min(1.0).powi(2)
}

#[cfg(test)]
mod tests;
