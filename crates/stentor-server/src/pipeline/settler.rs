//! Writes settlements: gathers all that wait into one transaction, then publishes children and takes tickets off.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stentor_core::chunk::{Class, Ticket};
use stentor_core::id::ChunkId;
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::store::{SettleReply, StoreError};
use stentor_core::settlement::Settlement;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::budget::Reservation;
use super::shared::{Kept, Shared};

const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_secs(5);

/// The ways to the settlers: single messages have one of their own, so that they wait for no audience's commit.
pub(crate) struct Settlers {
    urgent: mpsc::Sender<Work>,
    bulk: mpsc::Sender<Work>,
}

impl Settlers {
    /// Gives the way to a class's settler.
    pub(crate) const fn of(&self, class: Class) -> &mpsc::Sender<Work> {
        match class {
            Class::Urgent => &self.urgent,
            Class::Bulk => &self.bulk,
        }
    }
}

/// Where settlements of each class come in.
pub(crate) type Inboxes = [(Class, mpsc::Receiver<Work>); 2];

/// Makes the ways, each for up to `max` chunks that wait.
pub(crate) fn inboxes(max: usize) -> (Settlers, Inboxes) {
    let ((urgent, urgently), (bulk, in_bulk)) = (mpsc::channel(max), mpsc::channel(max));
    (Settlers { urgent, bulk }, [(Class::Urgent, urgently), (Class::Bulk, in_bulk)])
}

/// What is over, and what it held.
pub(crate) struct Over {
    /// Its ticket's lease.
    pub(crate) lease: QueueLease,
    /// Its share of the budget.
    pub(crate) hold: Reservation,
    /// Keeps the lease from running out.
    pub(crate) kept: Kept,
}

/// What the settler is asked to write.
pub(crate) enum Work {
    /// A chunk was sent, or needed no sending.
    Settle(Settlement, Over),
    /// A chunk of which not a byte was sent goes back.
    Release(ChunkId, u32, Timestamp, Over),
}

/// Writes until told to stop and nothing is left.
pub(crate) async fn run(
    shared: Arc<Shared>,
    (class, mut works): (Class, mpsc::Receiver<Work>),
    stop: CancellationToken,
) {
    let max = shared.config.settle_max_chunks;
    let mut gathered = Vec::with_capacity(max);
    loop {
        let count = tokio::select! {
            biased;
            count = works.recv_many(&mut gathered, max) => count,
            () = stop.cancelled(), if !works.is_closed() => {
                works.close();
                continue;
            }
        };
        if count == 0 {
            return;
        }
        write(&shared, class, gathered.drain(..)).await;
    }
}

async fn write(shared: &Shared, class: Class, works: impl Iterator<Item = Work>) {
    let (mut settlements, mut settled) = (Vec::new(), Vec::new());
    let mut released = Vec::new();
    for work in works {
        match work {
            Work::Settle(settlement, over) => {
                settlements.push(settlement);
                settled.push(over);
            }
            Work::Release(chunk, epoch, due_at, over) => released.push((chunk, epoch, due_at, over)),
        }
    }
    if !settlements.is_empty() {
        let began = tokio::time::Instant::now();
        let tickets = settle(shared, settlements).await;
        if class == Class::Bulk {
            shared.turnaround.note_settlement(began.elapsed());
        }
        shared.note_queued(&tickets);
        shared.publish(&tickets).await;
        give_back(shared, settled).await;
    }
    release(shared, released).await;
    shared.bells.progress.notify_waiters();
    shared.agenda.wake_all();
}

/// Writes settlements in one transaction, or each alone when one of them is refused; gives the children.
async fn settle(shared: &Shared, settlements: Vec<Settlement>) -> Vec<Ticket> {
    let together = insist(shared, || shared.store.settle(settlements.clone())).await;
    let replies = match together {
        Ok(replies) => replies,
        Err(error) if settlements.len() == 1 => {
            give_up(shared, &settlements[0], &error).await;
            return Vec::new();
        }
        Err(_) => {
            let mut tickets = Vec::new();
            for settlement in settlements {
                tickets.extend(Box::pin(settle(shared, vec![settlement])).await);
            }
            return tickets;
        }
    };
    replies.into_iter().flat_map(|reply| children(shared, reply)).collect()
}

fn children(shared: &Shared, reply: SettleReply) -> Vec<Ticket> {
    match reply {
        SettleReply::Settled(tickets) => tickets,
        SettleReply::Stale => {
            shared.stale.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        }
    }
}

/// Sets aside the chunk of a settlement that the store refuses: sent again, it would be refused again.
///
/// A settlement that only could not be written before the end leaves its chunk leased for the next start to recover.
async fn give_up(shared: &Shared, settlement: &Settlement, error: &StoreError) {
    if matches!(error, StoreError::Unavailable(_)) {
        return;
    }
    let (chunk, epoch) = (settlement.chunk, Some(settlement.epoch));
    shared.set_aside(chunk, epoch, error).await;
}

async fn give_back(shared: &Shared, settled: Vec<Over>) {
    let mut leases = Vec::with_capacity(settled.len());
    for Over { lease, hold, kept } in settled {
        drop(kept);
        hold.settled();
        leases.push(lease);
    }
    shared.ack(leases).await;
}

async fn release(shared: &Shared, mut released: Vec<(ChunkId, u32, Timestamp, Over)>) {
    released.sort_by_key(|(_, _, due_at, _)| *due_at);
    while let Some(due_at) = released.last().map(|(_, _, due_at, _)| *due_at) {
        let start = released.partition_point(|(_, _, due, _)| *due < due_at);
        let group = released.split_off(start);
        let chunks: Vec<_> = group.iter().map(|(chunk, epoch, ..)| (*chunk, *epoch)).collect();
        if let Err(error) = insist(shared, || shared.store.release(&chunks, due_at)).await {
            tracing::error!(%error, "chunks could not be released; their leases will run out");
        }
        let leases = group.into_iter().map(|(.., over)| over.lease).collect();
        shared.nack(leases, due_at).await;
    }
}

async fn insist<T, F>(shared: &Shared, call: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    call_until(&shared.cut, &shared.store_retries, call).await
}

/// Calls the store again while it is unavailable, waiting longer each time, until cut off.
async fn call_until<T, F>(
    cut: &CancellationToken,
    retries: &AtomicU64,
    mut call: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut wait = RETRY_FIRST;
    loop {
        match call().await {
            Err(StoreError::Unavailable(problem)) if !cut.is_cancelled() => {
                tracing::warn!(problem, "the store is unavailable; outcomes are kept until it is back");
                retries.fetch_add(1, Ordering::Relaxed);
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = cut.cancelled() => {}
                }
                wait = (wait * 2).min(RETRY_LAST);
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn called(answers: &[Result<u8, StoreError>], cut: bool) -> (Result<u8, StoreError>, u64) {
        let (token, retries) = (CancellationToken::new(), AtomicU64::new(0));
        if cut {
            token.cancel();
        }
        let mut answers = answers.iter().cloned();
        let last = || Err(StoreError::Damaged("called once too often".into()));
        let answer =
            call_until(&token, &retries, || std::future::ready(answers.next().unwrap_or_else(last))).await;
        (answer, retries.into_inner())
    }

    fn down() -> Result<u8, StoreError> {
        Err(StoreError::Unavailable("disk full".into()))
    }

    #[tokio::test]
    async fn an_unavailable_store_is_called_again_until_it_is_back() {
        assert_eq!(called(&[down(), down(), Ok(7)], false).await, (Ok(7), 2));
    }

    #[tokio::test]
    async fn a_refusal_is_not_repeated_and_a_cut_ends_the_waiting() {
        let conflict = Err(StoreError::Conflict("incoherent".into()));
        assert_eq!(called(std::slice::from_ref(&conflict), false).await, (conflict, 0));
        assert_eq!(called(&[down()], true).await, (down(), 0));
    }
}
