//! Handling of a clock that went back: due times set by the earlier, later clock would otherwise delay their work by the size of the step.
//!
//! Deliveries that wait for a retry, and open breakers, are brought forward by the size of the step. This is done in the store first,
//! because the queue is rebuilt from the store after a loss and other servers read it. Then the queue is cleared and refilled, which is
//! safe at any time. A queue shared with other servers is not cleared; only the moved chunks are published again.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::id::ChunkId;
use stentor_core::ports::store::{Lease, LeaseReply, QueuedFilter};
use stentor_core::time::Timestamp;
use tokio::time::Instant;

use super::republishing::{DutyError, PAGE_MAX_COUNT, publish_anew, publish_queued};
use super::shared::PipelineContext;

/// Interval of the clock checks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Smallest step that is noticed. A smaller one is a clock adjustment, and delays nothing noticeably.
const NOTICED: Duration = Duration::from_secs(1);

/// Compares the wall clock with the elapsed monotonic time.
struct Steps {
    looked: Instant,
    showed: Timestamp,
}

impl Steps {
    /// Returns the size of a backward step since the last check, or `None`.
    fn look(&mut self, looked: Instant, shows: Timestamp) -> Option<Duration> {
        let expected = self.showed.plus(looked.saturating_duration_since(self.looked));
        (self.looked, self.showed) = (looked, shows);
        Some(expected.since(shows)).filter(|back| *back >= NOTICED)
    }
}

/// Watches the clock until the pipeline stops.
pub(super) async fn watch(shared: &PipelineContext) {
    let mut steps = Steps { looked: Instant::now(), showed: shared.now() };
    let mut pending = Duration::ZERO;
    while !shared.stop.is_cancelled() {
        tokio::select! {
            () = shared.stop.cancelled() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        pending += steps.look(Instant::now(), shared.now()).unwrap_or_default();
        if pending.is_zero() {
            continue;
        }
        match bring_forward(shared, pending).await {
            // Reset only on success: the next check compares with this one and would not see the step again.
            Ok(()) => pending = Duration::ZERO,
            Err(error) => {
                tracing::warn!(%error, "the queue could not follow the clock back; it is tried again")
            }
        }
    }
}

pub(super) async fn bring_forward(shared: &PipelineContext, back: Duration) -> Result<(), DutyError> {
    let now = shared.now();
    tracing::warn!(seconds = back.as_secs(), "the clock went back: due times go back with it");
    // Also on nodes that publish nothing, because breakers are local to the process.
    shared.providers.clock_went_back(back, now);
    if !shared.publishes() {
        return Ok(());
    }
    let moved = bring_forward_in_store(shared, back, now).await?;
    if shared.shares_queue {
        publish_anew(shared, |ticket| Some(ticket).filter(|ticket| moved.contains(&ticket.chunk))).await?;
    } else {
        // Cleared before it is refilled: publishing a chunk that is already queued would keep the later due time of its ticket.
        shared.queue.clear().await?;
        publish_queued(shared, ChunkId::from_raw(0), Some).await?;
    }
    // Last, so that the woken dispatchers read breakers and queue with the new times.
    shared.due_index.wake_all();
    Ok(())
}

/// Brings waiting chunks forward in the store. Returns these chunks.
async fn bring_forward_in_store(
    shared: &PipelineContext,
    back: Duration,
    now: Timestamp,
) -> Result<HashSet<ChunkId>, DutyError> {
    let (mut moved, mut after) = (HashSet::new(), ChunkId::from_raw(0));
    loop {
        let tickets = shared.store.queued(QueuedFilter::After(after, PAGE_MAX_COUNT)).await?;
        let Some(last) = tickets.last() else { return Ok(moved) };
        after = last.chunk;
        let mut by_due: BTreeMap<Timestamp, Vec<ChunkId>> = BTreeMap::new();
        for ticket in tickets.into_iter().filter(|ticket| ticket.due_at > now) {
            by_due.entry(brought_forward(ticket, back, now).due_at).or_default().push(ticket.chunk);
        }
        // One call per due time, because a release sets the same due time for all its chunks.
        for (due_at, chunks) in by_due {
            put_off_until(shared, &chunks, due_at).await?;
            moved.extend(chunks);
        }
    }
}

/// Changes the due time of waiting chunks by leasing and releasing them.
async fn put_off_until(
    shared: &PipelineContext,
    chunks: &[ChunkId],
    due_at: Timestamp,
) -> Result<(), DutyError> {
    // A concurrent sweep would otherwise find leases that no holder extends.
    let _until_given_back = shared.lease_table.taking().await;
    for some in chunks.chunks(shared.config.lease_max_chunks) {
        let replies = shared.store.lease(some, shared.lease(TrafficClass::Bulk)).await?;
        let leased = |reply: LeaseReply| match reply {
            LeaseReply::Leased(chunk) => Some(chunk.lease()),
            LeaseReply::Paused | LeaseReply::Void => None,
        };
        let leases: Vec<Lease> = replies.into_iter().filter_map(leased).collect();
        shared.store.release(&leases, due_at).await?;
    }
    Ok(())
}

/// Returns the ticket with its due time corrected for the step.
fn brought_forward(ticket: Ticket, back: Duration, now: Timestamp) -> Ticket {
    if ticket.due_at <= now {
        return ticket;
    }
    Ticket { due_at: ticket.due_at.minus(back).max(now), ..ticket }
}

#[cfg(test)]
mod tests {
    use stentor_core::chunk::{Lane, TrafficClass};
    use stentor_core::device::ProviderKind;
    use stentor_core::id::{AppId, ChunkId};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_step_back_counts() {
        let mut steps = Steps { looked: Instant::now(), showed: at(0) };
        let mut look = |shows| steps.look(Instant::now(), at(shows));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!([look(10), look(3_610), look(3_610)], [None; 3]);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!([look(20), look(20)], [Some(Duration::from_secs(3_600)), None]);
    }

    #[test]
    fn what_is_due_later_keeps_the_rest_of_its_wait_and_what_is_due_stays() {
        let lane = Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };
        let ticket = |due| Ticket { chunk: ChunkId::from_raw(1), lane, due_at: at(due) };
        let moved = |due| brought_forward(ticket(due), Duration::from_secs(3_600), at(100)).due_at;
        assert_eq!([moved(3_705), moved(130), moved(99)], [at(105), at(100), at(99)]);
    }
}
