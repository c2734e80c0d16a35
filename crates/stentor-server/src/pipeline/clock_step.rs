//! Handling of a clock that went back: due times set by the earlier, later clock would otherwise delay their work by the size of the step.
//!
//! Deliveries that wait for a retry, and open breakers, are brought forward by the size of the step. This is done in the store first,
//! because the queue is rebuilt from the store after a loss and other servers read it. Then the queue is cleared and refilled, which is
//! safe at any time. A queue shared with other servers is not cleared; only the moved chunks are published again.
//!
//! Chunks that were being cut, sent or settled during the first pass are written and published after it with due times of the former clock.
//! Later passes, each after twice the time, find them: their due times are not before the time that the former clock showed.

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
/// Passes after a step: the last is about a minute after the first, longer than an attempt takes.
const PASSES: u32 = 8;

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

/// A step back that the store and the queue follow.
pub(super) struct StepBack {
    back: Duration,
    /// Time of the former clock. Work in progress dated by it is due then or later.
    former: Timestamp,
    /// Chunks that were brought forward.
    moved: HashSet<ChunkId>,
    /// Successful passes.
    passes: u32,
    next: Instant,
}

impl StepBack {
    pub(super) fn noticed(back: Duration, now: Timestamp) -> Self {
        Self { back, former: now.plus(back), moved: HashSet::new(), passes: 0, next: Instant::now() }
    }

    /// Joins a step with the one before it, if the store has not followed that one.
    fn after(self, before: Option<Self>) -> Self {
        let before = before.filter(|before| before.passes == 0);
        Self { back: self.back + before.map_or(Duration::ZERO, |before| before.back), ..self }
    }

    /// Returns the step if another pass is due after it.
    pub(super) fn passed(mut self) -> Option<Self> {
        self.next = Instant::now() + LOOK_EVERY * 2_u32.pow(self.passes);
        self.passes += 1;
        (self.passes < PASSES).then_some(self)
    }

    /// Returns true if a waiting chunk was dated by the former clock. In the first pass, every wait counts as such.
    fn dated(&self, ticket: &Ticket, now: Timestamp) -> bool {
        let since = if self.passes == 0 { now } else { self.former };
        ticket.due_at > now && ticket.due_at >= since && !self.moved.contains(&ticket.chunk)
    }
}

/// Watches the clock until the pipeline stops.
pub(super) async fn watch(shared: &PipelineContext) {
    let mut steps = Steps { looked: Instant::now(), showed: shared.now() };
    let mut followed: Option<StepBack> = None;
    while !shared.stop.is_cancelled() {
        tokio::select! {
            () = shared.stop.cancelled() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let now = shared.now();
        if let Some(back) = steps.look(Instant::now(), now) {
            tracing::warn!(seconds = back.as_secs(), "the clock went back: due times go back with it");
            // Also on nodes that publish nothing, because breakers are local to the process.
            shared.providers.clock_went_back(back, now);
            followed = Some(StepBack::noticed(back, now).after(followed));
        }
        let Some(mut step) = followed.take_if(|step| step.next <= Instant::now()) else { continue };
        followed = match bring_forward(shared, &mut step).await {
            Ok(()) => step.passed(),
            Err(error) => {
                tracing::warn!(%error, "the queue could not follow the clock back; it is tried again");
                Some(step)
            }
        };
    }
}

pub(super) async fn bring_forward(shared: &PipelineContext, step: &mut StepBack) -> Result<(), DutyError> {
    if shared.publishes() {
        bring_forward_in_store(shared, step).await?;
        if shared.shares_queue {
            let moved = |ticket: Ticket| Some(ticket).filter(|ticket| step.moved.contains(&ticket.chunk));
            publish_anew(shared, moved).await?;
        } else {
            // Cleared before it is refilled: publishing a chunk that is already queued would keep the later due time of its ticket.
            shared.queue.clear().await?;
            publish_queued(shared, ChunkId::from_raw(0), Some).await?;
        }
    }
    // Last, so that the woken dispatchers read breakers and queue with the new times.
    shared.due_index.wake_all();
    Ok(())
}

/// Brings waiting chunks forward in the store.
async fn bring_forward_in_store(shared: &PipelineContext, step: &mut StepBack) -> Result<(), DutyError> {
    let (now, mut after) = (shared.now(), ChunkId::from_raw(0));
    loop {
        let tickets = shared.store.queued(QueuedFilter::After(after, PAGE_MAX_COUNT)).await?;
        let Some(last) = tickets.last() else { return Ok(()) };
        after = last.chunk;
        let mut by_due: BTreeMap<Timestamp, Vec<ChunkId>> = BTreeMap::new();
        for ticket in tickets.into_iter().filter(|ticket| step.dated(ticket, now)) {
            by_due.entry(brought_forward(ticket, step.back, now).due_at).or_default().push(ticket.chunk);
        }
        // One call per due time, because a release sets the same due time for all its chunks.
        for (due_at, chunks) in by_due {
            put_off_until(shared, &chunks, due_at).await?;
            step.moved.extend(chunks);
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

    fn ticket(due_at: Timestamp) -> Ticket {
        let lane = Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };
        Ticket { chunk: ChunkId::from_raw(1), lane, due_at }
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

    #[tokio::test(start_paused = true)]
    async fn a_later_pass_finds_the_waits_of_the_former_clock_only() {
        let step = StepBack::noticed(Duration::from_secs(3_600), at(100));
        assert_eq!([at(101), at(100)].map(|due| step.dated(&ticket(due), at(100))), [true, false]);
        let mut step = step.passed().expect("not the last");
        assert_eq!([at(3_699), at(3_700)].map(|due| step.dated(&ticket(due), at(100))), [false, true]);
        step.moved.insert(ChunkId::from_raw(1));
        assert!(!step.dated(&ticket(at(3_700)), at(100)), "once");
    }

    #[tokio::test(start_paused = true)]
    async fn the_passes_after_a_step_last_a_minute_and_a_second_step_adds_to_one_that_was_not_followed() {
        let began = Instant::now();
        let missed = StepBack::noticed(Duration::from_secs(5), at(0));
        assert_eq!(StepBack::noticed(Duration::from_secs(2), at(0)).after(Some(missed)).back.as_secs(), 7);
        let mut step = Some(StepBack::noticed(Duration::from_secs(5), at(0)));
        while let Some(next) = step.take().and_then(StepBack::passed) {
            tokio::time::advance(next.next - Instant::now()).await;
            step = Some(next);
        }
        assert_eq!(began.elapsed().as_secs(), 63);
    }

    #[test]
    fn what_is_due_later_keeps_the_rest_of_its_wait_and_what_is_due_stays() {
        let moved = |due| brought_forward(ticket(at(due)), Duration::from_secs(3_600), at(100)).due_at;
        assert_eq!([moved(3_705), moved(130), moved(99)], [at(105), at(100), at(99)]);
    }
}
