//! The starter: begins due messages, new ones and scheduled ones, in groups of one transaction each.

use std::sync::Arc;
use std::time::Duration;

use stentor_core::ports::store::StoreError;

use super::shared::PipelineContext;

/// Pause after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// Begins due messages until the pipeline stops.
pub(crate) async fn run(shared: Arc<PipelineContext>) {
    while !shared.stop.is_cancelled() {
        match start(&shared).await {
            Ok(true) => {
                // Lets other tasks run between groups, also with an engine that never waits.
                tokio::task::yield_now().await;
                continue;
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "the due messages could not be started");
                let _ = shared.stop.run_until_cancelled(tokio::time::sleep(FAILURE_PAUSE)).await;
                continue;
            }
        }
        tokio::select! {
            () = shared.stop.cancelled() => {}
            () = shared.backlog.arrived() => {}
            () = shared.wakeups.starter.notified() => {}
        }
    }
}

/// Begins one group. Returns true if there may be more.
async fn start(shared: &PipelineContext) -> Result<bool, StoreError> {
    let turn = shared.backlog.turn(shared.now()).await;
    let mut started = shared.store.start_due(turn.batch, shared.config.chunk_max_devices, turn.by).await?;
    shared.backlog.note_started(&turn, &started);
    // If the clock went back after they were accepted, they are due now and not at that later time.
    let now = shared.now();
    started.tickets.iter_mut().for_each(|ticket| ticket.due_at = ticket.due_at.min(now));
    // Counted before they are published, so that a concurrent request does not find their room free.
    shared.note_queued(&started.tickets);
    shared.publish(&started.tickets).await;
    // A message that begins without a ticket has a wider audience and needs a producer.
    if started.begun.len() > started.tickets.len() {
        shared.wakeups.producers.notify_one();
    }
    Ok(started.has_more)
}
