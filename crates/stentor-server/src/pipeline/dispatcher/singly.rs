//! Leases one by one, after those of several chunks failed together.

use std::time::Duration;

use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::store::{StoreError, WriteProof};

use super::{ChunkDispatcher, FAILURE_PAUSE, LeasedTicket};
use crate::pipeline::store_retry::{FAILURES_MAX_COUNT, TRIES_MAX_COUNT};

impl ChunkDispatcher {
    /// Leases chunk by chunk, so that a damaged one delays no other. Returns true if every chunk was leased or quarantined.
    pub(super) async fn dispatch_singly(&mut self, leased: Vec<LeasedTicket>) -> bool {
        let (mut finished, mut untried, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut worked = false;
        for order in leased {
            if !worked && failed.len() >= FAILURES_MAX_COUNT {
                untried.push(order);
                continue;
            }
            let chunk = order.lease.ticket.chunk;
            match self.shared.store.lease(&[chunk], self.shared.lease(self.class)).await {
                Ok(replies) => {
                    worked = true;
                    self.receive(std::iter::once(order).zip(replies)).await;
                }
                Err(error @ (StoreError::Unavailable(_) | StoreError::Unreadable(_))) => {
                    failed.push((order, error))
                }
                Err(error) if self.shared.quarantine(chunk, None, &error).await => finished.push(order.lease),
                Err(error) => failed.push((order, error)),
            }
        }
        let failed = self.give_up_often_refused(failed, worked, &mut finished).await;
        self.shared.ack(finished).await;
        let well = failed.is_empty() && untried.is_empty();
        // Failed chunks are due later than untried ones, so that they are not always the first.
        self.put_back(untried, FAILURE_PAUSE).await;
        self.put_back(failed, 2 * FAILURE_PAUSE).await;
        well
    }

    /// Quarantines chunks that repeatedly could not be leased while others could, and returns the rest. No chunk is quarantined while
    /// nothing can be written.
    async fn give_up_often_refused(
        &self,
        failed: Vec<(LeasedTicket, StoreError)>,
        worked: bool,
        finished: &mut Vec<QueueLease>,
    ) -> Vec<LeasedTicket> {
        if failed.is_empty() || !worked && self.shared.store.keeps(WriteProof::Now).await.is_err() {
            return failed.into_iter().map(|(order, _)| order).collect();
        }
        let mut rest = Vec::new();
        for (order, error) in failed {
            let chunk = order.lease.ticket.chunk;
            // A failed write or sync of the disk is not caused by one chunk.
            let is_its_own = !matches!(error, StoreError::Unavailable(_));
            let often = is_its_own && self.shared.note_refused(chunk) >= TRIES_MAX_COUNT;
            if often && self.shared.quarantine(chunk, None, &error).await {
                finished.push(order.lease);
            } else {
                rest.push(order);
            }
        }
        rest
    }

    async fn put_back(&self, leased: Vec<LeasedTicket>, pause: Duration) {
        let due_at = self.shared.now().plus(pause);
        self.shared.nack(leased.into_iter().map(|order| order.lease).collect(), due_at).await;
    }
}
