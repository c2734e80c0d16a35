//! One provider, and the batches that are under way through it.

use std::sync::Arc;

use stentor_core::ports::provider::Provider;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A provider in use.
pub(crate) struct ProviderHandle {
    pub(super) provider: Arc<dyn Provider>,
    batches: TaskTracker,
}

impl ProviderHandle {
    /// Begins without batches.
    pub(super) fn new(provider: Arc<dyn Provider>) -> Self {
        Self { provider, batches: TaskTracker::new() }
    }

    /// Returns the provider, and a mark of use without which it might be closed.
    pub(crate) fn enter(&self) -> (&dyn Provider, TaskTrackerToken) {
        (&*self.provider, self.batches.token())
    }

    /// Closes the provider once its batches are over.
    pub(super) async fn close(self: Arc<Self>) {
        // Before the wait, which otherwise never ends.
        self.batches.close();
        self.batches.wait().await;
        self.provider.close().await;
    }
}
