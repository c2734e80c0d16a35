//! A clock that went back: what was put off by a later clock would wait until that time comes again.
//!
//! Deliveries that were to be tried again, and breakers that were opened, are brought forward by as much as the clock went back: in
//! the store, from which a queue is filled that has lost what it held, and which other servers read; then the queue is thrown away
//! and filled again, which is safe at any time. Of one that others use only what was brought forward is put in anew.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::id::ChunkId;
use stentor_core::ports::store::{Lease, LeaseReply};
use stentor_core::time::Timestamp;
use tokio::time::Instant;

use super::republishing::{DutyError, PAGE_MAX_COUNT, publish_anew, publish_queued};
use super::shared::PipelineContext;

/// Time between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A clock that goes back by less is being adjusted, and nothing waits noticeably longer for it.
const NOTICED: Duration = Duration::from_secs(1);

/// Compares the clock with the time that really passed.
struct Steps {
    looked: Instant,
    showed: Timestamp,
}

impl Steps {
    /// Returns by how much the clock has gone back since the last look, if it did.
    fn look(&mut self, looked: Instant, shows: Timestamp) -> Option<Duration> {
        let expected = self.showed.plus(looked.saturating_duration_since(self.looked));
        (self.looked, self.showed) = (looked, shows);
        Some(expected.since(shows)).filter(|back| *back >= NOTICED)
    }
}

/// Watches the clock until told to stop.
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
            // Forgotten only now: the next look compares with this one, and would not see the step again.
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
    // Also where nothing is published: the breakers are this process's own.
    shared.providers.clock_went_back(back, now);
    if !shared.publishes() {
        return Ok(());
    }
    let moved = bring_forward_in_store(shared, back, now).await?;
    if shared.shares_queue {
        publish_anew(shared, |ticket| Some(ticket).filter(|ticket| moved.contains(&ticket.chunk))).await?;
    } else {
        // Emptied before it is filled: publishing a chunk again would leave the later due time of the ticket that is
        // there.
        shared.queue.clear().await?;
        publish_queued(shared, ChunkId::from_raw(0), Some).await?;
    }
    // Last: who is woken reads breakers and queue as they are brought forward.
    shared.due_index.wake_all();
    Ok(())
}

/// Brings forward in the store what waits; returns the chunks.
async fn bring_forward_in_store(
    shared: &PipelineContext,
    back: Duration,
    now: Timestamp,
) -> Result<HashSet<ChunkId>, DutyError> {
    let (mut moved, mut after) = (HashSet::new(), ChunkId::from_raw(0));
    loop {
        let tickets = shared.store.queued(after, PAGE_MAX_COUNT).await?;
        let Some(last) = tickets.last() else { return Ok(moved) };
        after = last.chunk;
        let mut by_due: BTreeMap<Timestamp, Vec<ChunkId>> = BTreeMap::new();
        for ticket in tickets.into_iter().filter(|ticket| ticket.due_at > now) {
            by_due.entry(brought_forward(ticket, back, now).due_at).or_default().push(ticket.chunk);
        }
        // One call for each due time: a release gives all its chunks the same.
        for (due_at, chunks) in by_due {
            put_off_until(shared, &chunks, due_at).await?;
            moved.extend(chunks);
        }
    }
}

/// Changes the due time of chunks that wait: they are leased and given back at once.
async fn put_off_until(
    shared: &PipelineContext,
    chunks: &[ChunkId],
    due_at: Timestamp,
) -> Result<(), DutyError> {
    // A sweep in between would find leases that nobody prolongs.
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

/// Returns the ticket with the due time that it would have by the clock of now.
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
