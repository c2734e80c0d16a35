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

    /// Returns the provider, and a token of use that prevents its closing.
    pub(crate) fn enter(&self) -> (&dyn Provider, TaskTrackerToken) {
        (&*self.provider, self.batches.token())
    }

    /// Closes the provider when its batches are over.
    pub(super) async fn close(self: Arc<Self>) {
        // Before the wait, which would otherwise never end.
        self.batches.close();
        self.batches.wait().await;
        self.provider.close().await;
    }
}
