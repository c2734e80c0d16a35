//! The settler: writes all waiting settlements in one transaction, then publishes their children and acknowledges their tickets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::id::ChunkId;
use stentor_core::ports::settled::SettledChunk;
use stentor_core::ports::store::{Lease, SettleReply};
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::settler_inbox::{ChunkPlace, Continuation, LeaseParts, SettlerInbox, SettlerWork};
use super::shared::PipelineContext;
use super::store_retry::{ChunkWrite, retry_until_written};

/// The most chunks of single messages that are settled in one transaction.
const URGENT_MAX_CHUNKS: usize = 512;

/// Writes until `stop` is cancelled and nothing is left.
pub(crate) async fn run(
    shared: Arc<PipelineContext>,
    SettlerInbox { class, mut works }: SettlerInbox,
    stop: CancellationToken,
) {
    let max = match class {
        TrafficClass::Urgent => URGENT_MAX_CHUNKS.max(shared.config.settle_max_chunks),
        TrafficClass::Bulk => shared.config.settle_max_chunks,
    };
    let mut gathered = Vec::with_capacity(max);
    loop {
        let count = tokio::select! {
            // Received work first: the stop only closes the channel, and work that is already in it is still written.
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

async fn write(shared: &Arc<PipelineContext>, class: TrafficClass, works: impl Iterator<Item = SettlerWork>) {
    let (mut settlements, mut settled, mut waiting) = (Vec::new(), Vec::new(), HashMap::new());
    let mut released = Vec::new();
    for work in works {
        match work {
            SettlerWork::Settle(settlement, lease_parts, tell) => {
                waiting.extend(tell.map(|tell| (settlement.chunk, tell)));
                settled.push((settlement.chunk, lease_parts));
                settlements.push(settlement);
            }
            SettlerWork::Release(chunk, epoch, due_at, lease_parts) => {
                released.push((chunk, epoch, due_at, lease_parts))
            }
        }
    }
    if !settlements.is_empty() {
        let began = tokio::time::Instant::now();
        let mut late = Vec::new();
        let (tickets, is_certain) = settle(shared, settlements, &mut waiting, &mut late).await;
        late.into_iter().for_each(|one| put_off(shared, class, one, &mut settled, &mut waiting));
        // Connected devices wait for it, and their confirmations must find a settled chunk. Hence directly after the commit.
        feed_devices(shared, &mut settled, is_certain);
        if class == TrafficClass::Bulk {
            shared.store_latency.note_settlement(began.elapsed());
        }
        // Counted before they are published; otherwise an app could get the room that they are about to take.
        shared.note_queued(&tickets);
        shared.publish(&tickets).await;
        // After its children were published: a crash in between leaves a void ticket. In the other order it would leave a chunk that only
        // the janitor finds.
        give_back(shared, settled).await;
    }
    // Last, because no task waits for released chunks.
    release(shared, released).await;
    // At the very end: producers read the books, and dispatchers the budget, as left by this write.
    shared.wakeups.progress.notify_waiters();
    shared.due_index.wake_all();
}

/// Delay of settlements that could not be written while others could.
const LATE_PAUSE: Duration = Duration::from_secs(5);

/// Defers a settlement with all its resources, so that others go first.
fn put_off(
    shared: &Arc<PipelineContext>,
    class: TrafficClass,
    settlement: Settlement,
    settled: &mut Vec<(ChunkId, LeaseParts)>,
    waiting: &mut AwaitedChunks,
) {
    let Some(at) = settled.iter().position(|(chunk, _)| *chunk == settlement.chunk) else { return };
    let (chunk, lease_parts) = settled.swap_remove(at);
    let work = SettlerWork::Settle(settlement, lease_parts, waiting.remove(&chunk));
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        tokio::time::sleep(LATE_PAUSE).await;
        // If the settler has ended, the lease expires.
        let _ = shared.settlers.of(class).send(work).await;
    });
}

/// Tasks that wait for the child chunk with their awaited deliveries, by parent chunk.
type AwaitedChunks = HashMap<ChunkId, oneshot::Sender<Continuation>>;

/// Writes settlements in one transaction, or each alone if that fails. Returns the children, and true if all were written.
async fn settle(
    shared: &PipelineContext,
    settlements: Vec<Settlement>,
    waiting: &mut AwaitedChunks,
    late: &mut Vec<Settlement>,
) -> (Vec<Ticket>, bool) {
    let settlement_count = settlements.len();
    let replies =
        retry_until_written(shared, settlements, Some(late), |some| shared.store.settle(some)).await;
    // A missing reply means that the chunk was given up, and a stale one that another holder of the lease settles it. In both cases the
    // ledger may differ from these outcomes.
    let is_certain = replies.len() == settlement_count && !replies.contains(&SettleReply::Stale);
    (replies.into_iter().flat_map(|reply| children(shared, reply, waiting)).collect(), is_certain)
}

/// Notifies the feed of connected devices of the chunks that are on disk.
fn feed_devices(shared: &PipelineContext, settled: &mut [(ChunkId, LeaseParts)], is_certain: bool) {
    for chunk in settled.iter_mut().filter_map(|(_, lease_parts)| lease_parts.settled_chunk.take()) {
        if let Some(feed) = &shared.settled_feed {
            feed.settled(SettledChunk { is_certain, ..chunk });
        }
    }
}

impl ChunkWrite for Settlement {
    fn lease(&self) -> Lease {
        Lease { chunk: self.chunk, epoch: self.epoch }
    }
}

/// A lease that is released.
#[derive(Clone, Copy)]
struct GivenBack(ChunkId, u32);

impl ChunkWrite for GivenBack {
    fn lease(&self) -> Lease {
        Lease { chunk: self.0, epoch: self.1 }
    }
}

fn children(shared: &PipelineContext, reply: SettleReply, waiting: &mut AwaitedChunks) -> Vec<Ticket> {
    match reply {
        SettleReply::Settled { tickets, awaited } => {
            // Kept before the parent's lease is dropped. If no task waits any more, it expires.
            let continuation = awaited.and_then(|awaited| Some((awaited, waiting.remove(&awaited.parent)?)));
            if let Some((awaited, tell)) = continuation {
                let guard = shared.lease_table.keep(awaited.lease.chunk, awaited.lease.epoch, None);
                let _ = tell.send((awaited, guard));
            }
            tickets
        }
        SettleReply::Stale => {
            shared.stale.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        }
    }
}

async fn give_back(shared: &PipelineContext, settled: Vec<(ChunkId, LeaseParts)>) {
    let mut leases = Vec::with_capacity(settled.len());
    for (_, LeaseParts { place, hold: reservation, guard, .. }) in settled {
        drop(guard);
        reservation.settled();
        leases.extend(place.and_then(ChunkPlace::into_queue_lease));
    }
    shared.ack(leases).await;
}

async fn release(shared: &PipelineContext, mut released: Vec<(ChunkId, u32, Timestamp, LeaseParts)>) {
    // Sorted by due time, because one call of the store and the queue releases all chunks of one due time.
    released.sort_by_key(|(_, _, due_at, _)| *due_at);
    while let Some(due_at) = released.last().map(|(_, _, due_at, _)| *due_at) {
        let start = released.partition_point(|(_, _, due, _)| *due < due_at);
        let group = released.split_off(start);
        let chunks = group.iter().map(|(chunk, epoch, ..)| GivenBack(*chunk, *epoch)).collect();
        let give_back = async |some: Vec<GivenBack>| {
            let some: Vec<_> = some.iter().map(ChunkWrite::lease).collect();
            shared.store.release(&some, due_at).await
        };
        let mut tickets = retry_until_written(shared, chunks, None, give_back).await;
        // Rows first: the next holder of a ticket must find a chunk that is not leased.
        let leases: Vec<_> = group
            .into_iter()
            .filter_map(|(.., lease_parts)| lease_parts.place.and_then(ChunkPlace::into_queue_lease))
            .collect();
        let in_queue: HashSet<_> = leases.iter().map(|lease| lease.ticket.chunk).collect();
        shared.nack(leases, due_at).await;
        // The others were never in the queue.
        tickets.retain(|ticket| !in_queue.contains(&ticket.chunk));
        shared.note_queued(&tickets);
        shared.publish(&tickets).await;
    }
}
