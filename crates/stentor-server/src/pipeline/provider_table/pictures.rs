//! Snapshots of the table: resting lanes, levels of quotas, statistics of providers.

use std::collections::HashSet;

use stentor_core::device::ProviderKind;
use stentor_core::ports::provider::{ProviderStats, ServiceStanding};
use stentor_core::quota::Level;
use stentor_core::time::Timestamp;

use super::key::ProviderKey;
use super::table::ProviderTable;
use crate::pipeline::settle::Parking;
use crate::pipeline::stats::{ParkedStats, QuotaStats};

impl ProviderTable {
    /// Returns the reason why a lane rests, if it does.
    pub(crate) fn parking(&self, key: ProviderKey) -> Option<Parking> {
        self.lock().get(&key)?.breaker.parking().cloned()
    }

    /// Returns true if a lane rests because its credential seems to be another sender's.
    pub(crate) fn is_suspected(&self, key: ProviderKey) -> bool {
        self.lock().get(&key).is_some_and(|entry| entry.breaker.is_suspected())
    }

    /// Lists the lanes that rest.
    pub(crate) fn resting(&self) -> HashSet<ProviderKey> {
        let entries = self.lock();
        entries.iter().filter(|(_, entry)| entry.breaker.parking().is_some()).map(|(key, _)| *key).collect()
    }

    /// Lists the lanes of a kind that rest, with the reasons.
    pub(crate) fn parked(&self, kind: ProviderKind) -> Vec<ParkedStats> {
        let entries = self.lock();
        let of_kind = entries.iter().filter(|((_, provider), _)| *provider == kind);
        let parked = of_kind.filter_map(|((app, _), entry)| {
            let Parking { until, reason, detail } = entry.breaker.parking()?.clone();
            Some(ParkedStats { app: *app, until, reason, detail })
        });
        parked.collect()
    }

    /// Returns the state of a quota that all nodes share, computed from its level in the store.
    pub(crate) fn shared_quota(
        &self,
        key: ProviderKey,
        per_minute: u32,
        level: Level,
        now: Timestamp,
    ) -> QuotaStats {
        let waited = self.quota(key, now).map(|own| own.waited).unwrap_or_default();
        QuotaStats { waited, ..self.limiter_rules.shared_picture(key.0, per_minute, level, now) }
    }

    /// Lists the quotas in force.
    pub(crate) fn quotas(&self, kind: ProviderKind, now: Timestamp) -> Vec<QuotaStats> {
        let mut entries = self.lock();
        let of_kind = entries.iter_mut().filter(|((_, provider), _)| *provider == kind);
        of_kind
            .filter_map(|((app, _), entry)| Some(entry.rate_limiter.as_mut()?.picture(*app, now)))
            .collect()
    }

    /// Returns the quota of one credential, if one is in force.
    pub(crate) fn quota(&self, key: ProviderKey, now: Timestamp) -> Option<QuotaStats> {
        Some(self.lock().get_mut(&key)?.rate_limiter.as_mut()?.picture(key.0, now))
    }

    /// Returns the statistics of one credential's provider.
    pub(crate) fn sender_stats(&self, key: ProviderKey) -> ProviderStats {
        let handle = self.lock().get(&key).and_then(|entry| entry.handle.clone());
        handle.map(|handle| handle.provider.stats()).unwrap_or_default()
    }

    /// Lists the push services behind one credential's provider that limit it or rest.
    pub(crate) fn services(&self, key: ProviderKey) -> Vec<ServiceStanding> {
        let handle = self.lock().get(&key).and_then(|entry| entry.handle.clone());
        handle.map(|handle| handle.provider.services()).unwrap_or_default()
    }

    /// Returns the summed statistics of all providers of a kind.
    pub(crate) fn provider_stats(&self, kind: ProviderKind) -> ProviderStats {
        let entries = self.lock();
        let handles = entries.iter().filter(|((_, provider), _)| *provider == kind);
        let stats = handles.filter_map(|(_, entry)| Some(entry.handle.as_ref()?.provider.stats()));
        let live = stats.fold(ProviderStats::default(), ProviderStats::and);
        // Under the lock: a provider being moved from here to there would otherwise be counted twice or not at all.
        self.closed.added_to(live, kind)
    }
}
