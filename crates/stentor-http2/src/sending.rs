//! A batch being sent, as seen by its caller.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::batch::{Part, Replies};
use crate::fault::Fault;
use crate::pool::Pool;
use crate::work::Work;

/// Most replies have come when at most one in this number is missing.
const MISSING_PART: usize = 3;
/// Shortest time without a reply after which the missing ones are late. The caller has a window full of such waiting batches: at 20 ms a
/// campaign of 20,000 with one late response in a hundred had a third of its speed, at 5 ms nearly all.
const STALL_MIN: Duration = Duration::from_millis(5);
/// The same time as a multiple of the shortest latency.
const STALL_LATENCIES: u32 = 4;
/// The interval between two checks is at least the age of the batch divided by this, so that a slow peer does not cause constant checks.
const STALL_PART: u32 = 8;
/// Resolution of the runtime's timers.
const RECHECK_MIN: Duration = Duration::from_millis(1);

/// A batch whose requests are being sent. Requests that have no stream when it is dropped are never sent.
pub struct Sending<'a> {
    pool: &'a Arc<Pool>,
    work: Arc<Work>,
}

impl<'a> Sending<'a> {
    pub(crate) const fn new(pool: &'a Arc<Pool>, work: Arc<Work>) -> Self {
        Self { pool, work }
    }

    /// Waits for all replies, or for `cut`. After `cut` it returns the replies received so far, and the others as [`Client::send_until`]
    /// does.
    ///
    /// [`Client::send_until`]: crate::Client::send_until
    pub async fn all(self, cut: impl Future<Output = ()>) -> Replies {
        tokio::select! {
            // Biased, so that completed replies take precedence over a simultaneous cut, which would report them as abandoned.
            biased;
            () = self.work.done() => {}
            () = cut => self.pool.withdraw(&self.work, &Fault::Abandoned),
            never = self.give_up() => match never {},
        }
        self.work.replies()
    }

    /// Waits until two in three replies have come, every request has its stream and no reply comes for a while. Returns the replies so far.
    /// Returns `None` if all have come, or if `cut` came first.
    ///
    /// It then drops the requests, because a few late ones must not retain the memory of all. A late request that the peer has not
    /// processed is therefore not sent again.
    pub async fn most(&self, cut: impl Future<Output = ()>) -> Option<Part> {
        tokio::select! {
            // Biased as above: a completed batch is not partial.
            biased;
            () = self.work.done() => return None,
            () = cut => return None,
            () = self.stall() => {}
            never = self.give_up() => match never {},
        }
        self.work.forget_requests();
        Some(self.work.part())
    }

    async fn stall(&self) {
        let (began, count) = (Instant::now(), self.work.count as usize);
        let mut wait = STALL_MIN;
        loop {
            tokio::time::sleep(wait).await;
            let shortest = STALL_MIN.max(self.pool.latency.min_rtt() * STALL_LATENCIES);
            // Read before the silence: a reply that brings the batch near its end then also ends the silence.
            let is_nearly_done = self.work.left() * MISSING_PART <= count;
            let silent = self.work.silent();
            if is_nearly_done && silent >= shortest && !self.pool.has_queued(&self.work) {
                return;
            }
            wait = shortest.saturating_sub(silent).max(began.elapsed() / STALL_PART).max(RECHECK_MIN);
        }
    }

    /// Removes the requests without a stream from the queue at their deadline. While the peer permits no stream, no connection checks them.
    async fn give_up(&self) -> Infallible {
        tokio::time::sleep_until(self.work.give_up_at).await;
        self.pool.withdraw(&self.work, &Fault::QueueTimeout);
        std::future::pending().await
    }
}

impl fmt::Debug for Sending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("left", &self.work.left()).finish_non_exhaustive()
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.work.abandon();
    }
}
