//! The backlog: messages that are accepted and not begun. This module decides when they are begun, and how many at a time.
//!
//! Accepting a message only appends it. Beginning a message costs several times as much, and both need the one writer thread. While few
//! callers wait for a 202, accepted messages are begun at once. While many callers wait, accepting has precedence as long as the backlog is
//! small. As the backlog grows, messages are begun sooner and in larger batches, so that callers that never stop are slowed down.

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

/// Up to this number of concurrent callers, messages are begun at once without slowing the callers down.
const FEW_CALLERS_MAX_COUNT: usize = 8;
/// More callers than that count as many for this long: callers that share a commit are answered at the same time and call again at once.
const MANY_CALLERS_FOR: Duration = Duration::from_millis(20);
/// Interval for checking if there are still many callers.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// From this number of messages on, messages are begun without waiting for callers.
const FULL_MESSAGES: u64 = 128 * 1_024;
/// Longest wait for callers while the backlog is smaller than a batch.
const WAIT_MAX: Duration = Duration::from_millis(60);
/// Longest wait for callers once the backlog fills a batch: a later message would wait behind that batch anyway.
const BATCH_WAIT_MAX: Duration = Duration::from_millis(160);
/// Messages begun in one transaction, and the number added when the backlog is full. Small batches cost twice as much per message, because
/// each of their steps is a commit.
const BATCH_MESSAGES: usize = 128;
const BATCH_MORE_MESSAGES: f64 = 256.0;

/// The number of waiting callers and of messages that are not begun.
#[derive(Debug)]
pub(crate) struct Backlog {
    began: Instant,
    callers: AtomicUsize,
    /// Time until which there are many callers, in microseconds since `began`.
    many_until_us: AtomicU64,
    messages: AtomicU64,
    /// The approximate number of messages per app.
    by_app: Mutex<HashMap<AppId, u64>>,
    /// The latest due time of the backlog, in milliseconds, so that a clock set back does not delay these messages.
    due_ms: AtomicI64,
    arrived: Notify,
}

/// A caller that waits for a message to be accepted.
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
    /// Counts a caller for as long as the guard lives.
    #[must_use]
    pub(crate) fn accepting(self: &Arc<Self>) -> AcceptGuard {
        if self.callers.fetch_add(1, Relaxed) >= FEW_CALLERS_MAX_COUNT {
            self.many_until_us.store(self.now_us() + MANY_CALLERS_FOR.as_micros() as u64, Relaxed);
        }
        AcceptGuard(self.clone())
    }

    /// Returns the number of messages in the backlog.
    fn messages(&self) -> u64 {
        self.messages.load(Relaxed)
    }

    /// Returns the size of the backlog, in total and of one app.
    pub(super) fn size(&self, app: AppId) -> BacklogSize {
        let of_all = self.messages();
        let of_app = if of_all == 0 { 0 } else { self.by_app().get(&app).copied().unwrap_or_default() };
        BacklogSize { of_all, of_app }
    }

    fn by_app(&self) -> MutexGuard<'_, HashMap<AppId, u64>> {
        self.by_app.lock()
    }

    /// Waits until a message arrives.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    fn has_many_callers(&self) -> bool {
        self.now_us() < self.many_until_us.load(Relaxed)
    }

    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Waits until few callers are left, or until the longest wait is over, and returns the next turn.
    pub(super) async fn turn(&self, now: Timestamp) -> StarterTurn {
        let started_at = Instant::now();
        while self.messages() > 0
            && self.has_many_callers()
            && started_at.elapsed() < wait_max(self.messages())
        {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let messages = self.messages();
        let batch = if self.has_many_callers() { batch(messages) } else { BATCH_MESSAGES };
        StarterTurn { batch, by: now.max(Timestamp::from_millis(self.due_ms.load(Relaxed))), messages }
    }

    /// Subtracts the messages that were begun in a turn.
    pub(super) fn note_started(&self, turn: &StarterTurn, started: &Started) {
        if turn.messages == 0 {
            return;
        }
        // If the store has no more, all messages of the turn are gone, even if the counts differ.
        let gone = if started.has_more { started.begun.len() as u64 } else { turn.messages };
        // `Relaxed`: the counts only decide when and how many messages are begun; the store decides which.
        let _ = self.messages.fetch_update(Relaxed, Relaxed, |count| Some(count.saturating_sub(gone)));
        let mut by_app = self.by_app();
        // Locked until the end: otherwise a message accepted between the check for zero and the clearing would be lost.
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
            // The next message has its own due time. Keeping the former one would delay it if the clock was set back.
            self.due_ms.store(0, Relaxed);
        }
    }
}

/// One batch of messages to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StarterTurn {
    /// The most messages to begin.
    pub(super) batch: usize,
    /// Messages due by this time are begun.
    pub(super) by: Timestamp,
    /// The size of the backlog before the turn.
    messages: u64,
}

impl AcceptGuard {
    /// Records that a message that is due was accepted.
    pub fn accepted(&self, app: AppId, due_at: Timestamp) {
        // All of this is done under the lock. `note_started` clears the due time under the same lock when the backlog is empty, and could
        // otherwise clear the due time of this message.
        let mut by_app = self.0.by_app();
        self.0.due_ms.fetch_max(due_at.as_millis(), Relaxed);
        *by_app.entry(app).or_default() += 1;
        self.0.messages.fetch_add(1, Relaxed);
        drop(by_app);
        // After the counts, so that the woken task sees the message. The permit is kept if no task waits yet.
        self.0.arrived.notify_one();
    }
}

impl Drop for AcceptGuard {
    fn drop(&mut self) {
        self.0.callers.fetch_sub(1, Relaxed);
    }
}

/// Returns the longest time for which callers have precedence.
fn wait_max(messages: u64) -> Duration {
    let longest = if messages < BATCH_MESSAGES as u64 { WAIT_MAX } else { BATCH_WAIT_MAX };
    longest.mul_f64(1.0 - fullness(messages))
}

/// Returns the number of messages to begin while many callers wait.
fn batch(messages: u64) -> usize {
    BATCH_MESSAGES + (BATCH_MORE_MESSAGES * fullness(messages)) as usize
}

/// Returns the fullness of the backlog from 0 to 1, squared: while it is small, callers keep precedence.
fn fullness(messages: u64) -> f64 {
    (messages as f64 / FULL_MESSAGES as f64).min(1.0).powi(2)
}

#[cfg(test)]
mod tests;
