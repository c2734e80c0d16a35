//! Totals of closed providers, so that a counter never decreases when a credential is replaced or an app deleted.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::device::ProviderKind;
use stentor_core::ports::provider::ProviderStats;

use super::handle::ProviderHandle;

/// The counters of providers that are closed, and the providers that are being closed.
#[derive(Default)]
pub(super) struct ClosedTotals(Mutex<KeptTotals>);

#[derive(Default)]
struct KeptTotals {
    closing: Vec<Arc<ProviderHandle>>,
    closed: HashMap<ProviderKind, ProviderStats>,
}

impl ClosedTotals {
    /// Adds a provider that is being closed; its live counters are included until it is closed.
    pub(super) fn begin(&self, handle: Arc<ProviderHandle>) {
        self.lock().closing.push(handle);
    }

    /// Keeps the final counters of a closed provider.
    pub(super) fn end(&self, handle: &Arc<ProviderHandle>) {
        let mut counted = self.lock();
        counted.closing.retain(|one| !Arc::ptr_eq(one, handle));
        let total = counted.closed.entry(handle.provider.kind()).or_default();
        *total = added(*total, handle.provider.stats());
    }

    /// Adds the totals of closing and closed providers of a kind to the statistics of the live ones.
    pub(super) fn added_to(&self, live: ProviderStats, kind: ProviderKind) -> ProviderStats {
        let counted = self.lock();
        let closing = counted.closing.iter().filter(|handle| handle.provider.kind() == kind);
        let closed = counted.closed.get(&kind).copied().unwrap_or_default();
        closing.fold(added(live, closed), |sum, handle| added(sum, handle.provider.stats()))
    }

    fn lock(&self) -> MutexGuard<'_, KeptTotals> {
        self.0.lock()
    }
}

/// Adds the counters of `one` to `to`; gauges are not added.
const fn added(to: ProviderStats, one: ProviderStats) -> ProviderStats {
    ProviderStats {
        drains: to.drains + one.drains,
        aborts: to.aborts + one.aborts,
        connect_failures: to.connect_failures + one.connect_failures,
        ..to
    }
}
