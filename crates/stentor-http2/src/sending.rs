//! A batch on its way, as its caller sees it.

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

/// Most replies are there when at most one in so many is missing.
const MISSING_PART: usize = 3;
/// Shortest time without a reply after which the missing ones are late. Who waits has a window full of such batches: at
/// 20 ms a campaign of 20,000 with one late answer in a hundred had a third of its speed, at 5 ms nearly all.
const STALL_MIN: Duration = Duration::from_millis(5);
/// The same in shortest latencies.
const STALL_LATENCIES: u32 = 4;
/// Of the time since the batch began, this part is waited at least: who is slow is not asked all the time.
const STALL_PART: u32 = 8;
/// The grain of the runtime's timers.
const RECHECK_MIN: Duration = Duration::from_millis(1);

/// A batch whose requests are being sent. What has no stream when it is dropped is never sent.
pub struct Sending<'a> {
    pool: &'a Arc<Pool>,
    work: Arc<Work>,
}

impl<'a> Sending<'a> {
    pub(crate) const fn new(pool: &'a Arc<Pool>, work: Arc<Work>) -> Self {
        Self { pool, work }
    }

    /// Waits for all replies, or for `cut`: then it gives those that have come, and the others as [`Client::send_until`]
    /// does.
    ///
    /// [`Client::send_until`]: crate::Client::send_until
    pub async fn all(self, cut: impl Future<Output = ()>) -> Replies {
        tokio::select! {
            // What has come counts before a cut at the same moment, which would call it abandoned.
            biased;
            () = self.work.done() => {}
            () = cut => self.pool.withdraw(&self.work, &Fault::Abandoned),
            never = self.give_up() => match never {},
        }
        self.work.replies()
    }

    /// Waits until two in three replies are there, every request has its stream and nothing more comes for a while. Returns
    /// what has come; `None` when all is there, or `cut` came first.
    ///
    /// The requests are forgotten then, for what waits so long must not keep the memory of all: a late one that the peer
    /// has not processed does not go again.
    pub async fn most(&self, cut: impl Future<Output = ()>) -> Option<Part> {
        tokio::select! {
            // The same here: a batch that is done is no part.
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
            // Before the silence: a reply that leaves few others is then part of it, and ends it.
            let is_nearly_done = self.work.left() * MISSING_PART <= count;
            let silent = self.work.silent();
            if is_nearly_done && silent >= shortest && !self.pool.has_queued(&self.work) {
                return;
            }
            wait = shortest.saturating_sub(silent).max(began.elapsed() / STALL_PART).max(RECHECK_MIN);
        }
    }

    /// Takes the requests out of the queue that have no stream when their time is over: while the peer allows none, no
    /// connection looks at them.
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
