//! A clock that went back: what was put off by a later clock would wait until that time comes again.
//!
//! Deliveries that were to be tried again, and breakers that were opened, are brought forward by as much as the clock went back.
//! The queue is thrown away for that and filled again from the store, which is safe at any time; of one that others use only what
//! waits for a later time is put in anew. After a restart the due times in the store count again.

use std::time::Duration;

use stentor_core::chunk::Ticket;
use stentor_core::id::ChunkId;
use stentor_core::time::Timestamp;
use tokio::time::Instant;

use super::republishing::{DutyError, publish_anew, publish_queued};
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
            Ok(()) => pending = Duration::ZERO,
            Err(error) => {
                tracing::warn!(%error, "the queue could not follow the clock back; it is tried again")
            }
        }
    }
}

async fn bring_forward(shared: &PipelineContext, back: Duration) -> Result<(), DutyError> {
    let now = shared.now();
    tracing::warn!(seconds = back.as_secs(), "the clock went back: due times go back with it");
    shared.providers.clock_went_back(back, now);
    if !shared.publishes() {
        return Ok(());
    }
    let forward = |ticket| Some(brought_forward(ticket, back, now));
    if shared.shares_queue {
        let later = |ticket: Ticket| Some(ticket).filter(|ticket| ticket.due_at > now).and_then(forward);
        publish_anew(shared, later).await?;
    } else {
        shared.queue.clear().await?;
        publish_queued(shared, ChunkId::from_raw(0), forward).await?;
    }
    shared.due_index.wake_all();
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
