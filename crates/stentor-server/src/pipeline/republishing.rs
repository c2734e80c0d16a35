//! Publication of queued chunks again, page by page.

use stentor_core::chunk::Ticket;
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::QueueError;
use stentor_core::ports::store::{QueuedFilter, StoreError};

use super::shared::PipelineContext;

/// Most tickets in one call of the store.
pub(super) const PAGE_MAX_COUNT: usize = 1_000;

/// The reason why a duty failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DutyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// Publishes the tickets of all queued chunks after the chunk `after`, as changed by `change`; chunks for which it returns `None` are
/// skipped.
pub(super) async fn publish_queued(
    shared: &PipelineContext,
    after: ChunkId,
    change: impl Fn(Ticket) -> Option<Ticket>,
) -> Result<(), DutyError> {
    publish_pages(shared, after, change, false).await
}

/// Publishes queued chunks as [`publish_queued`] does, and replaces the tickets that the queue already has.
pub(super) async fn publish_anew(
    shared: &PipelineContext,
    change: impl Fn(Ticket) -> Option<Ticket>,
) -> Result<(), DutyError> {
    publish_pages(shared, ChunkId::from_raw(0), change, true).await
}

/// Publishes the chunks that dead nodes had leased; these nodes may still hold the tickets.
pub(super) async fn publish_released(shared: &PipelineContext, tickets: &[Ticket]) {
    if tickets.is_empty() {
        return;
    }
    let chunks: Vec<ChunkId> = tickets.iter().map(|ticket| ticket.chunk).collect();
    // Withdrawn first: publishing a chunk that a dead server still holds leased has no effect.
    if let Err(error) = shared.queue.withdraw(&chunks).await {
        tracing::warn!(%error, "tickets of dead servers stay until their leases run out");
    }
    shared.publish(tickets).await;
}

async fn publish_pages(
    shared: &PipelineContext,
    mut after: ChunkId,
    change: impl Fn(Ticket) -> Option<Ticket>,
    is_anew: bool,
) -> Result<(), DutyError> {
    loop {
        let tickets = shared.store.queued(QueuedFilter::After(after, PAGE_MAX_COUNT)).await?;
        let Some(last) = tickets.last() else { return Ok(()) };
        after = last.chunk;
        let tickets: Vec<_> = tickets.into_iter().filter_map(&change).collect();
        if !tickets.is_empty() {
            if is_anew {
                let chunks: Vec<ChunkId> = tickets.iter().map(|ticket| ticket.chunk).collect();
                // Withdrawn first: publishing a chunk that is already queued has no effect.
                shared.queue.withdraw(&chunks).await?;
            }
            shared.queue.publish(&tickets).await?;
            // After they are in the queue: a dispatcher woken earlier would find nothing there and use up the hint.
            shared.due_index.note(&tickets);
        }
    }
}
