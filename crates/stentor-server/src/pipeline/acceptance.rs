//! Acceptance of messages that are sent at once: the transaction that stores one also begins its campaign and leases its chunks.

use std::sync::Arc;

use stentor_core::chunk::TrafficClass;
use stentor_core::id::AppId;
use stentor_core::ports::store::{AtOnce, LeasedChunk};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::at_once_places::AtOncePlace;
use super::leased_inbox::LeasedArrival;
use super::shared::PipelineContext;

/// The acceptance of some messages. While it lives, no drain ends.
pub(crate) struct Acceptance<'p> {
    /// `None` if nothing can be sent at once.
    shared: Option<&'p PipelineContext>,
    _token: Option<TaskTrackerToken>,
}

impl<'p> Acceptance<'p> {
    /// Begins an acceptance. `shared` is `None` if this node sends nothing.
    pub(super) fn begin(shared: Option<&'p PipelineContext>) -> Self {
        let token = shared.map(|shared| shared.acceptances.token());
        // After the token: a drain that has begun waits for the tokens before it, and gives back what they left.
        let may_lease = |shared: &&PipelineContext| !shared.stop.is_cancelled() && shared.standing.may_act();
        Self { shared: shared.filter(may_lease), _token: token }
    }

    /// Returns the terms under which an app's message is sent at once; `None` if it cannot be.
    pub(crate) fn terms(&self, app: AppId) -> Option<AtOnce> {
        let shared = self.shared?;
        let providers = shared.providers.open_kinds(app, shared.now());
        (!providers.is_empty()).then(|| AtOnce { lease: shared.lease(TrafficClass::Urgent), providers })
    }

    /// Hands the leased chunks of a message to their dispatchers.
    pub(crate) fn leased(&self, chunks: Vec<LeasedChunk>, place: Option<AtOncePlace>) {
        let (Some(shared), place) = (self.shared, place.map(Arc::new)) else { return };
        for chunk in chunks {
            let guard = shared.lease_table.keep(chunk.id, chunk.epoch, None);
            shared.leased_inbox.push(LeasedArrival { chunk: Box::new(chunk), guard, place: place.clone() });
        }
    }
}

/// Gives back the leased chunks that no dispatcher has taken before it ended.
pub(super) async fn give_back(shared: &PipelineContext) {
    shared.acceptances.close();
    shared.acceptances.wait().await;
    let left = shared.leased_inbox.take_all();
    let leases: Vec<_> = left.iter().map(|arrival| arrival.chunk.lease()).collect();
    if leases.is_empty() {
        return;
    }
    if let Err(error) = shared.store.release(&leases, shared.now()).await {
        tracing::warn!(%error, "chunks that were not sent could not be given back; the next start recovers them");
    }
}
