//! Providers by app and kind, built on first use, each behind a circuit breaker.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use stentor_core::app::Credential;
use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::outcome::Reason;
use stentor_core::ports::provider::Provider;
use stentor_core::ports::store::{AppStore, NodeEvent, QuotaClaim, StoreError};
use stentor_core::time::Timestamp;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::circuit_breaker::{BreakerRules, BreakerState, CircuitBreaker, Verdict};
use super::closed_totals::ClosedTotals;
use super::factory::ProviderFactory;
use super::handle::ProviderHandle;
use super::key::ProviderKey;
use super::levels::Levels;
use super::rate_limiter::{RateLimiter, RateLimiterRules};
use crate::pipeline::settle::evidence::{AnswerShares, Evidence, ProviderStanding};
use crate::pipeline::settle::{self, Parking};

/// Time for which a lane rests if its credential could not be read from the store.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// All providers and their breakers.
pub(crate) struct ProviderTable {
    store: Arc<dyn AppStore>,
    factory: Arc<dyn ProviderFactory>,
    rules: BreakerRules,
    pub(super) limiter_rules: RateLimiterRules,
    entries: Mutex<HashMap<ProviderKey, ProviderEntry>>,
    levels: Mutex<Levels>,
    /// Sends events to other nodes, such as a pause that a push service requested.
    event_sender: mpsc::Sender<NodeEvent>,
    closing: TaskTracker,
    pub(super) closed: Arc<ClosedTotals>,
}

#[derive(Default)]
pub(super) struct ProviderEntry {
    credential: Option<Credential>,
    pub(super) handle: Option<Arc<ProviderHandle>>,
    pub(super) breaker: CircuitBreaker,
    pub(super) rate_limiter: Option<RateLimiter>,
    /// Number of times that the credential was put or removed.
    changes: u64,
}

impl ProviderEntry {
    fn uses(&self, handle: &Arc<ProviderHandle>) -> bool {
        self.handle.as_ref().is_some_and(|one| Arc::ptr_eq(one, handle))
    }
}

impl ProviderTable {
    pub(crate) fn new(
        store: Arc<dyn AppStore>,
        factory: Arc<dyn ProviderFactory>,
        rules: BreakerRules,
        limiter_rules: RateLimiterRules,
        levels: Levels,
        event_sender: mpsc::Sender<NodeEvent>,
    ) -> Self {
        let (entries, levels, closing) = (Mutex::default(), Mutex::new(levels), TaskTracker::new());
        let closed = Arc::default();
        Self { store, factory, rules, limiter_rules, entries, levels, event_sender, closing, closed }
    }

    /// Returns the state of the breaker at `now`.
    pub(crate) fn state(&self, key: ProviderKey, now: Timestamp) -> BreakerState {
        self.lock().get(&key).map_or(BreakerState::Closed, |entry| entry.breaker.state(now, &self.rules))
    }

    /// Lists the providers of an app that can send now: they were built, their breaker is closed, and their quota is not used up.
    pub(crate) fn open_kinds(&self, app: AppId, now: Timestamp) -> Vec<ProviderKind> {
        let entries = self.lock();
        let is_open = |kind: &&ProviderKind| {
            entries.get(&(app, **kind)).is_some_and(|entry| {
                let waits = entry.rate_limiter.as_ref().is_some_and(|limiter| limiter.is_waiting(now));
                entry.handle.is_some() && entry.breaker.parking().is_none() && !waits
            })
        };
        ProviderKind::ALL.iter().filter(is_open).copied().collect()
    }

    /// Returns the provider, and builds it on first use. If that fails, parks the lane with the reason and returns `None`.
    pub(crate) async fn handle(&self, key: ProviderKey, now: Timestamp) -> Option<Arc<ProviderHandle>> {
        // `changes` is read before the credential, so that `install` notices if the credential is replaced in between.
        let (known, changes) =
            self.lock().get(&key).map_or((None, 0), |entry| (entry.handle.clone(), entry.changes));
        if known.is_some() {
            return known;
        }
        match self.build(key, now).await {
            Ok((credential, provider)) => self.install(key, changes, credential, provider, now),
            // Nothing is parked or logged for a deleted app: the caller notices the deletion and removes the lane.
            Err(parking) if parking.reason == Reason::CredentialMissing && self.is_gone(key.0).await => None,
            Err(parking) => {
                let mut entries = self.lock();
                let entry = entries.entry(key).or_default();
                // The failure concerns the former credential; one that was put in between is tried at once.
                if entry.changes != changes {
                    return None;
                }
                // A probe that fails for the same reason is not logged.
                if entry.breaker.parking().is_none_or(|known| known.detail != parking.detail) {
                    log_parked(key, &parking);
                }
                entry.breaker.park(parking, now);
                None
            }
        }
    }

    /// Returns true if the store reports that the app does not exist.
    async fn is_gone(&self, app: AppId) -> bool {
        matches!(self.store.app(app).await, Err(StoreError::NotFound(_)))
    }

    /// Prepares access tokens and connections, so that the first messages need not wait for them. With more than `max` credentials,
    /// prepares none.
    pub(crate) async fn get_ready(&self, max: usize, now: Timestamp) {
        let credentials = match self.store.credentials().await {
            Ok(credentials) if credentials.len() <= max => credentials,
            // On failure, the credentials are read again for the first chunk.
            _ => return,
        };
        let lanes = credentials.iter().map(|credential| async move {
            let key = (credential.app, credential.provider);
            if let Some(handle) = self.handle(key, now).await {
                let (provider, _in_use) = handle.enter();
                if let Some(reason) = provider.warm().instrument(handle.span()).await {
                    self.rest(key, &handle, reason, now);
                }
            }
        });
        join_all(lanes).await;
    }

    /// Parks a lane after a failed preparation, before anything is sent through it.
    fn rest(&self, key: ProviderKey, handle: &Arc<ProviderHandle>, reason: Reason, now: Timestamp) {
        let mut entries = self.lock();
        let entry = entries.get_mut(&key).filter(|entry| entry.uses(handle));
        if let Some(entry) = entry.filter(|entry| entry.breaker.parking().is_none()) {
            let parking = Parking { until: None, reason, detail: settle::detail(reason) };
            let parking = with_cause(parking, handle);
            log_parked(key, &parking);
            entry.breaker.park(parking, now);
        }
    }

    async fn build(
        &self,
        (app, kind): ProviderKey,
        now: Timestamp,
    ) -> Result<(Credential, Arc<dyn Provider>), Parking> {
        let refuse = |until, reason, detail| Err(Parking { until, reason, detail });
        match self.store.credential(app, kind).await {
            Ok(credential) => match self.factory.build(&credential) {
                Ok(provider) => Ok((credential, provider)),
                Err(invalid) => refuse(
                    None,
                    Reason::CredentialRefused,
                    format!("the credential cannot be used: {invalid}"),
                ),
            },
            Err(StoreError::NotFound(_)) => {
                let detail = "the app has no credential for this provider: put one".to_owned();
                refuse(None, Reason::CredentialMissing, detail)
            }
            Err(error) => refuse(Some(now.plus(STORE_PAUSE)), Reason::Unavailable, error.to_string()),
        }
    }

    fn install(
        &self,
        key: ProviderKey,
        changes: u64,
        credential: Credential,
        provider: Arc<dyn Provider>,
        now: Timestamp,
    ) -> Option<Arc<ProviderHandle>> {
        let handle = Arc::new(ProviderHandle::new(key, provider));
        let quota = self.factory.quota(&credential);
        let mut entries = self.lock();
        let entry = entries.entry(key).or_default();
        // A credential read before the last change must not replace the new one.
        if entry.changes != changes {
            return None;
        }
        // Lock order: `entries` before `levels`.
        let stored = || self.levels.lock().slot(key);
        entry.rate_limiter = self.limiter_rules.apply(entry.rate_limiter.take(), quota, now, stored);
        entry.credential = Some(credential);
        // Two dispatchers may have built one each. The first is kept, because batches may already be in flight through it.
        Some(entry.handle.get_or_insert(handle).clone())
    }

    /// Draws the quota for one chunk, or returns the time of the next try.
    pub(crate) fn take(
        self: &Arc<Self>,
        key: ProviderKey,
        class: TrafficClass,
        now: Timestamp,
    ) -> Result<Grant, Timestamp> {
        let mut entries = self.lock();
        let rate_limiter = entries.get_mut(&key).and_then(|entry| entry.rate_limiter.as_mut());
        let taken =
            rate_limiter.map_or(Ok(0), |rate_limiter| rate_limiter.take(class, &self.limiter_rules, now))?;
        Ok(Grant::new(self.clone(), key, class, taken))
    }

    /// Returns true if the credential has a quota.
    pub(crate) fn has_quota(&self, key: ProviderKey) -> bool {
        self.lock().get(&key).is_some_and(|entry| entry.rate_limiter.is_some())
    }

    /// Records that a lane waits for its quota.
    pub(crate) fn note_wait(&self, key: ProviderKey, until: Timestamp, now: Timestamp) {
        if let Some(rate_limiter) = self.lock().get_mut(&key).and_then(|entry| entry.rate_limiter.as_mut()) {
            rate_limiter.note_wait(until, now);
        }
    }

    /// Returns the claims on quotas that all nodes share.
    pub(crate) fn claims(&self) -> Vec<QuotaClaim> {
        let entries = self.lock();
        let limited = entries.iter().filter_map(|(key, entry)| Some((key, entry.rate_limiter.as_ref()?)));
        limited.flat_map(|(key, rate_limiter)| rate_limiter.claims(*key)).collect()
    }

    /// Adds the tokens that the store granted for a claim.
    pub(crate) fn add(&self, claim: &QuotaClaim, count: u64, now: Timestamp) {
        let mut entries = self.lock();
        let limited = entries.get_mut(&(claim.app, claim.provider));
        if let Some(rate_limiter) = limited.and_then(|entry| entry.rate_limiter.as_mut()) {
            rate_limiter.add(claim.class, count, now);
        }
    }

    /// Allows one chunk to pass a half-open breaker until the probe is dropped. Returns `None` if another chunk holds the probe.
    pub(crate) fn probe(self: &Arc<Self>, key: ProviderKey, now: Timestamp) -> Option<Probe> {
        let mut entries = self.lock();
        let breaker = &mut entries.entry(key).or_default().breaker;
        if breaker.state(now, &self.rules) != BreakerState::HalfOpen {
            return None;
        }
        // Set under the lock under which the breaker was found half open; otherwise two chunks could both become the probe.
        breaker.set_probing(true);
        Some(Probe { table: self.clone(), key })
    }

    /// Adjusts all breakers to a clock that went back.
    pub(crate) fn clock_went_back(&self, back: Duration, now: Timestamp) {
        self.lock().values_mut().for_each(|entry| entry.breaker.clock_went_back(back, now));
    }

    /// Adds the evidence of a batch to its lane and returns the standing of the push service. A batch of a replaced credential is weighed
    /// alone.
    pub(crate) fn weigh(
        &self,
        key: ProviderKey,
        handle: &Arc<ProviderHandle>,
        evidence: Evidence,
        is_probe: bool,
    ) -> ProviderStanding {
        match self.lock().get_mut(&key).filter(|entry| entry.uses(handle)) {
            Some(entry) => entry.breaker.weigh(evidence, is_probe),
            None => AnswerShares::default().weigh(evidence, is_probe),
        }
    }

    /// Updates the breaker after a batch, unless the credential was replaced since the batch began.
    pub(crate) fn judge(
        &self,
        key: ProviderKey,
        handle: &Arc<ProviderHandle>,
        verdict: Verdict,
        now: Timestamp,
    ) {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&key).filter(|entry| entry.uses(handle)) else { return };
        let breaker = &mut entry.breaker;
        let before = breaker.parking().cloned();
        breaker.judge(verdict, now, &self.rules);
        // The provider alone knows the cause. It is added once, when the lane is parked.
        breaker.extend_parking(|parking| with_cause(parking, handle));
        match (before, breaker.parking()) {
            (None, Some(parking)) => {
                log_parked(key, parking);
                self.publish_parking(key, parking);
            }
            (Some(before), Some(parking)) if before.until != parking.until => {
                self.publish_parking(key, parking)
            }
            (Some(_), None) => tracing::info!(app = %key.0, provider = %key.1, "lane served again"),
            _ => {}
        }
    }

    /// Notifies the other nodes that a push service requested a pause. Causes without an end are left for each node to find out.
    fn publish_parking(&self, (app, provider): ProviderKey, parking: &Parking) {
        if let Some(until) = parking.until {
            // If the channel is full, the other nodes learn it from the push service.
            let _ = self.event_sender.try_send(NodeEvent::Parked(app, provider, until, parking.reason));
        }
    }

    /// Parks a lane after a report of its push service to another node.
    pub(crate) fn park_until(&self, key: ProviderKey, until: Timestamp, reason: Reason, now: Timestamp) {
        let parking = Parking { until: Some(until), reason, detail: settle::detail(reason) };
        let mut entries = self.lock();
        let breaker = &mut entries.entry(key).or_default().breaker;
        if until <= now {
            return;
        }
        if breaker.parking().is_none() {
            log_parked(key, &parking);
        }
        // Keeps a later end that is already set.
        breaker.park(parking, now);
    }

    /// Drops the provider after its credential was put or removed; the next chunk reads the credential again.
    pub(crate) fn changed(&self, key: ProviderKey) {
        let old = {
            let mut entries = self.lock();
            let entry = entries.entry(key).or_default();
            // Under the same lock as the rest, so that a provider being built from the former credential is discarded.
            entry.changes += 1;
            entry.breaker.close();
            entry.credential = None;
            // Under the same lock, so that the provider's counters are part of the totals at every moment.
            entry.handle.take().inspect(|handle| self.closed.begin(handle.clone()))
        };
        if let Some(handle) = old {
            self.close_apart(handle);
        }
    }

    /// Lists the apps with an entry or a saved quota.
    pub(crate) fn apps(&self) -> HashSet<AppId> {
        let mut apps: HashSet<_> = self.lock().keys().map(|(app, _)| *app).collect();
        apps.extend(self.levels.lock().apps());
        apps
    }

    /// Removes all state of deleted apps.
    pub(crate) fn forget(&self, gone: &HashSet<AppId>) {
        // Entries first: an entry that kept its place would otherwise write into a place that `levels` has reassigned.
        let handles: Vec<_> = {
            let mut entries = self.lock();
            let gone = entries.extract_if(|(app, _), _| gone.contains(app));
            let handles = gone.filter_map(|(_, entry)| entry.handle);
            handles.inspect(|handle| self.closed.begin(handle.clone())).collect()
        };
        handles.into_iter().for_each(|handle| self.close_apart(handle));
        self.levels.lock().forget(gone);
    }

    /// Compares every credential with the one in use. Returns the lanes of credentials that were changed, removed or refused.
    pub(crate) async fn reload(&self) -> Result<Vec<ProviderKey>, StoreError> {
        let stored: HashMap<ProviderKey, Credential> =
            self.store.credentials().await?.into_iter().map(|one| ((one.app, one.provider), one)).collect();
        let differs = |(key, entry): (&ProviderKey, &ProviderEntry)| {
            let other = entry.credential.as_ref() != stored.get(key);
            let refused = entry.breaker.parking().is_some_and(|parking| parking.until.is_none());
            (other || refused).then_some(*key)
        };
        let changed: Vec<_> = self.lock().iter().filter_map(differs).collect();
        changed.iter().for_each(|key| self.changed(*key));
        Ok(changed)
    }

    /// Closes all providers when their batches are over.
    pub(crate) async fn close(&self) {
        let handles: Vec<_> = {
            let mut entries = self.lock();
            let handles = entries.values_mut().filter_map(|entry| entry.handle.take());
            handles.inspect(|handle| self.closed.begin(handle.clone())).collect()
        };
        handles.into_iter().for_each(|handle| self.close_apart(handle));
        self.closing.close();
        self.closing.wait().await;
    }

    /// Closes a provider in a separate task, because it waits for batches. Its counters stay in the totals.
    fn close_apart(&self, handle: Arc<ProviderHandle>) {
        let closed = self.closed.clone();
        self.closing.spawn(async move {
            handle.clone().close().await;
            closed.end(&handle);
        });
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<ProviderKey, ProviderEntry>> {
        self.entries.lock()
    }
}

/// Adds the last trouble of the provider with its push service to the reason of a rest.
fn with_cause(parking: Parking, handle: &ProviderHandle) -> Parking {
    match handle.provider.trouble() {
        // The cause replaces the detail, which only says that nothing is answered.
        Some(trouble) if parking.reason == Reason::Unavailable => {
            Parking { detail: trouble.cause, ..parking }
        }
        Some(trouble) if !parking.detail.contains(&trouble.cause) => {
            Parking { detail: format!("{}: {trouble}", parking.detail), ..parking }
        }
        _ => parking,
    }
}

/// Logs that a lane rests.
fn log_parked((app, provider): ProviderKey, parking: &Parking) {
    tracing::warn!(%app, %provider, reason = ?parking.reason, detail = parking.detail, "lane parked");
}

/// The right of one chunk to pass a half-open breaker.
pub(crate) struct Probe {
    table: Arc<ProviderTable>,
    key: ProviderKey,
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(entry) = self.table.lock().get_mut(&self.key) {
            entry.breaker.set_probing(false);
        }
    }
}

/// Tokens taken for a chunk; returned if dropped unused.
pub(crate) struct Grant {
    table: Arc<ProviderTable>,
    key: ProviderKey,
    class: TrafficClass,
    taken: u64,
}

impl Grant {
    const fn new(table: Arc<ProviderTable>, key: ProviderKey, class: TrafficClass, taken: u64) -> Self {
        Self { table, key, class, taken }
    }

    /// Spends the tokens that the chunk really needs.
    pub(crate) fn spend(mut self, used: u64) {
        self.correct(used);
        // Nothing is left for `drop` to return.
        self.taken = 0;
    }

    fn correct(&self, used: u64) {
        if self.taken == 0 {
            return;
        }
        let mut entries = self.table.lock();
        if let Some(rate_limiter) = entries.get_mut(&self.key).and_then(|entry| entry.rate_limiter.as_mut()) {
            rate_limiter.correct(self.class, self.taken, used);
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.correct(0);
    }
}

#[cfg(test)]
mod tests;
