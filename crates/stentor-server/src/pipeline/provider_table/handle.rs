//! One provider, and the batches that are under way through it.

use std::sync::Arc;

use stentor_core::ports::provider::Provider;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Span;

use super::key::ProviderKey;

/// A provider in use.
pub(crate) struct ProviderHandle {
    pub(super) provider: Arc<dyn Provider>,
    /// The span of its log lines. Made once: one for each batch costs as much as a single message's payload.
    span: Span,
    batches: TaskTracker,
}

/// A provider that stays open while this value lives.
pub(crate) struct LentProvider {
    handle: Arc<ProviderHandle>,
    _in_use: TaskTrackerToken,
}

impl LentProvider {
    /// Returns the provider.
    pub(crate) fn provider(&self) -> &dyn Provider {
        &*self.handle.provider
    }
}

impl ProviderHandle {
    /// Begins without batches.
    pub(super) fn new((app, kind): ProviderKey, provider: Arc<dyn Provider>) -> Self {
        let span = tracing::info_span!("lane", %app, provider = %kind);
        Self { provider, span, batches: TaskTracker::new() }
    }

    /// Returns the span of its log lines.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Returns the provider, and a token of use that prevents its closing.
    pub(crate) fn enter(&self) -> (&dyn Provider, TaskTrackerToken) {
        (&*self.provider, self.batches.token())
    }

    /// Lends the provider, and prevents its closing meanwhile.
    pub(super) fn lend(self: Arc<Self>) -> LentProvider {
        let in_use = self.batches.token();
        LentProvider { handle: self, _in_use: in_use }
    }

    /// Closes the provider when its batches are over.
    pub(super) async fn close(self: Arc<Self>) {
        // Before the wait, which would otherwise never end.
        self.batches.close();
        self.batches.wait().await;
        self.provider.close().await;
    }
}
