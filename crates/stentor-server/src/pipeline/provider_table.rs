//! Providers by app and kind, built when first needed, and the breakers in front of them.

mod check;
mod circuit_breaker;
mod closed_totals;
mod levels;
mod pictures;
mod quota_share;
mod rate_limiter;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use stentor_core::app::Credential;
use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::id::AppId;
use stentor_core::outcome::Reason;
use stentor_core::ports::provider::Provider;
use stentor_core::ports::store::{NodeEvent, QuotaClaim, Store, StoreError};
use stentor_core::time::Timestamp;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument as _;

use super::settle::Parking;
use super::settle::evidence::{AnswerShares, Evidence, ProviderStanding};
use circuit_breaker::CircuitBreaker;
pub(crate) use circuit_breaker::{BreakerRules, BreakerState, Verdict};
use closed_totals::ClosedTotals;
pub(crate) use levels::Levels;
use parking_lot::{Mutex, MutexGuard};
use rate_limiter::RateLimiter;
pub(crate) use rate_limiter::{Grant, RateLimiterRules};

/// How long a lane rests when the store could not give its credential.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Builds providers from credentials.
pub trait ProviderFactory: Send + Sync + 'static {
    /// Reads the credential and gives a provider that has not connected yet; the error names the field.
    fn build(&self, credential: &Credential) -> Result<Arc<dyn Provider>, Invalid>;

    /// Returns how many messages per minute the credential allows; `None` for as many as the push service takes.
    fn quota(&self, credential: &Credential) -> Option<u32> {
        let _nothing_is_said = credential;
        None
    }
}

impl<F> ProviderFactory for F
where
    F: Fn(&Credential) -> Result<Arc<dyn Provider>, Invalid> + Send + Sync + 'static,
{
    fn build(&self, credential: &Credential) -> Result<Arc<dyn Provider>, Invalid> {
        self(credential)
    }
}

/// One app at one provider: what a credential and a breaker belong to.
pub(crate) type ProviderKey = (AppId, ProviderKind);

/// A provider in use.
pub(crate) struct ProviderHandle {
    provider: Arc<dyn Provider>,
    batches: TaskTracker,
}

impl ProviderHandle {
    /// Returns the provider, and a mark of use without which it might be closed.
    pub(crate) fn enter(&self) -> (&dyn Provider, TaskTrackerToken) {
        (&*self.provider, self.batches.token())
    }

    /// Closes the provider once its batches are over.
    async fn close(self: Arc<Self>) {
        // Before the wait, which otherwise never ends.
        self.batches.close();
        self.batches.wait().await;
        self.provider.close().await;
    }
}

/// All providers and their breakers.
pub(crate) struct ProviderTable {
    store: Arc<dyn Store>,
    factory: Arc<dyn ProviderFactory>,
    rules: BreakerRules,
    limiter_rules: RateLimiterRules,
    entries: Mutex<HashMap<ProviderKey, ProviderEntry>>,
    levels: Mutex<Levels>,
    /// Where it tells other nodes what a push service asked for.
    event_sender: Option<mpsc::Sender<NodeEvent>>,
    closing: TaskTracker,
    closed: Arc<ClosedTotals>,
}

#[derive(Default)]
struct ProviderEntry {
    credential: Option<Credential>,
    handle: Option<Arc<ProviderHandle>>,
    breaker: CircuitBreaker,
    rate_limiter: Option<RateLimiter>,
    /// How often its credential was put or removed.
    changes: u64,
}

impl ProviderEntry {
    fn uses(&self, handle: &Arc<ProviderHandle>) -> bool {
        self.handle.as_ref().is_some_and(|one| Arc::ptr_eq(one, handle))
    }
}

impl ProviderTable {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        factory: Arc<dyn ProviderFactory>,
        rules: BreakerRules,
        limiter_rules: RateLimiterRules,
        levels: Levels,
        event_sender: Option<mpsc::Sender<NodeEvent>>,
    ) -> Self {
        let (entries, levels, closing) = (Mutex::default(), Mutex::new(levels), TaskTracker::new());
        let closed = Arc::default();
        Self { store, factory, rules, limiter_rules, entries, levels, event_sender, closing, closed }
    }

    /// Returns what may pass at `now`.
    pub(crate) fn state(&self, key: ProviderKey, now: Timestamp) -> BreakerState {
        self.lock().get(&key).map_or(BreakerState::Closed, |entry| entry.breaker.state(now, &self.rules))
    }

    /// Returns the provider, building it first if need be; without one the lane is parked and returns why.
    pub(crate) async fn handle(&self, key: ProviderKey, now: Timestamp) -> Option<Arc<ProviderHandle>> {
        // The number is read before the credential: if that is put anew in between, `install` finds another number.
        let (known, changes) =
            self.lock().get(&key).map_or((None, 0), |entry| (entry.handle.clone(), entry.changes));
        if known.is_some() {
            return known;
        }
        match self.build(key, now).await {
            Ok((credential, provider)) => self.install((key, changes), credential, provider, now),
            // Nobody is to be called upon for an app that was deleted: whoever asked finds that out, and forgets the lane.
            Err(parking) if parking.reason == Reason::CredentialMissing && self.is_gone(key.0).await => None,
            Err(parking) => {
                let mut entries = self.lock();
                let entry = entries.entry(key).or_default();
                // What was found out is of the former credential: one that was put in between is to be tried at once.
                if entry.changes != changes {
                    return None;
                }
                // A probe that finds it as it was has nothing to tell.
                if entry.breaker.parking().is_none_or(|known| known.detail != parking.detail) {
                    log_parked(key, &parking);
                }
                entry.breaker.park(parking, now);
                None
            }
        }
    }

    /// Returns whether the store says that there is no such app.
    async fn is_gone(&self, app: AppId) -> bool {
        matches!(self.store.app(app).await, Err(StoreError::NotFound(_)))
    }

    /// Lets providers get their access tokens and a connection, so that what is sent first waits for neither; of more than
    /// so many credentials, none.
    pub(crate) async fn get_ready(&self, max: usize, now: Timestamp) {
        let credentials = match self.store.credentials().await {
            Ok(credentials) if credentials.len() <= max => credentials,
            // What cannot be read now is read again for the first chunk.
            _ => return,
        };
        let lanes = credentials.iter().map(|credential| async move {
            let key = (credential.app, credential.provider);
            if let Some(handle) = self.handle(key, now).await {
                let (provider, _in_use) = handle.enter();
                let span = tracing::info_span!("lane", app = %key.0, provider = %key.1);
                if let Some(reason) = provider.warm().instrument(span).await {
                    self.rest(key, &handle, reason, now);
                }
            }
        });
        join_all(lanes).await;
    }

    /// Parks a lane through which nothing can get before anything tried.
    fn rest(&self, key: ProviderKey, handle: &Arc<ProviderHandle>, reason: Reason, now: Timestamp) {
        let mut entries = self.lock();
        let entry = entries.get_mut(&key).filter(|entry| entry.uses(handle));
        if let Some(entry) = entry.filter(|entry| entry.breaker.parking().is_none()) {
            let parking = Parking { until: None, reason, detail: super::settle::detail(reason) };
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
        (key, changes): (ProviderKey, u64),
        credential: Credential,
        provider: Arc<dyn Provider>,
        now: Timestamp,
    ) -> Option<Arc<ProviderHandle>> {
        let handle = Arc::new(ProviderHandle { provider, batches: TaskTracker::new() });
        let quota = self.factory.quota(&credential);
        let mut entries = self.lock();
        let entry = entries.entry(key).or_default();
        // What was read before the credential was put anew must not take the place of the new one.
        if entry.changes != changes {
            return None;
        }
        // `levels` is locked under `entries`, nowhere the other way round.
        let kept = || self.levels.lock().slot(key);
        entry.rate_limiter = self.limiter_rules.apply(entry.rate_limiter.take(), quota, now, kept);
        entry.credential = Some(credential);
        // Two dispatchers may have built one each: the first stays, for batches may already be under way through it.
        Some(entry.handle.get_or_insert(handle).clone())
    }

    /// Takes what the quota must have for one chunk, or tells when to ask again.
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

    /// Returns whether a credential has a quota.
    pub(crate) fn has_quota(&self, key: ProviderKey) -> bool {
        self.lock().get(&key).is_some_and(|entry| entry.rate_limiter.is_some())
    }

    /// Notes that a lane waits for its quota.
    pub(crate) fn note_wait(&self, key: ProviderKey, until: Timestamp, now: Timestamp) {
        if let Some(rate_limiter) = self.lock().get_mut(&key).and_then(|entry| entry.rate_limiter.as_mut()) {
            rate_limiter.note_wait(until, now);
        }
    }

    /// Returns what is missing of quotas that all nodes share.
    pub(crate) fn claims(&self) -> Vec<QuotaClaim> {
        let entries = self.lock();
        let limited = entries.iter().filter_map(|(key, entry)| Some((key, entry.rate_limiter.as_ref()?)));
        limited.flat_map(|(key, rate_limiter)| rate_limiter.claims(*key)).collect()
    }

    /// Adds what the store gave for a claim.
    pub(crate) fn add(&self, claim: &QuotaClaim, count: u64, now: Timestamp) {
        let mut entries = self.lock();
        let limited = entries.get_mut(&(claim.app, claim.provider));
        if let Some(rate_limiter) = limited.and_then(|entry| entry.rate_limiter.as_mut()) {
            rate_limiter.add(claim.class, count, now);
        }
    }

    /// Lets one chunk pass an open breaker; over when the probe is dropped. `None` when another has it.
    pub(crate) fn probe(self: &Arc<Self>, key: ProviderKey, now: Timestamp) -> Option<Probe> {
        let mut entries = self.lock();
        let breaker = &mut entries.entry(key).or_default().breaker;
        if breaker.state(now, &self.rules) != BreakerState::HalfOpen {
            return None;
        }
        // Under the lock under which it was found half open: two would both be the probe.
        breaker.set_probing(true);
        Some(Probe { table: self.clone(), key })
    }

    /// Brings all breakers back with the clock.
    pub(crate) fn clock_went_back(&self, back: Duration, now: Timestamp) {
        self.lock().values_mut().for_each(|entry| entry.breaker.clock_went_back(back, now));
    }

    /// Adds what a batch showed to what is known of its lane; returns how the push service stands. A batch of a credential
    /// that was put anew meanwhile is weighed alone.
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

    /// Learns from a batch, unless its credential was put anew meanwhile: what it showed is about the former one.
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
        // The cause is read from the provider, which alone knows it, once for each time that the lane is parked.
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

    /// Notifies the other nodes that a push service wants to be left alone for a while; what is wrong without an end each finds out.
    fn publish_parking(&self, (app, provider): ProviderKey, parking: &Parking) {
        if let (Some(events), Some(until)) = (&self.event_sender, parking.until) {
            // Where too much waits to be told they hear it from the push service.
            let _ = events.try_send(NodeEvent::Parked(app, provider, until, parking.reason));
        }
    }

    /// Parks a lane because its push service told another node so.
    pub(crate) fn park_until(&self, key: ProviderKey, until: Timestamp, reason: Reason, now: Timestamp) {
        let parking = Parking { until: Some(until), reason, detail: super::settle::detail(reason) };
        let mut entries = self.lock();
        let breaker = &mut entries.entry(key).or_default().breaker;
        if until <= now {
            return;
        }
        if breaker.parking().is_none() {
            log_parked(key, &parking);
        }
        // It keeps a later end that it knows already.
        breaker.park(parking, now);
    }

    /// Forgets the provider, because its credential was put or removed: the next chunk reads it again.
    pub(crate) fn changed(&self, key: ProviderKey) {
        let old = {
            let mut entries = self.lock();
            let entry = entries.entry(key).or_default();
            // Under the same lock as the rest, so that a provider that is just being built from the former credential
            // is thrown away.
            entry.changes += 1;
            entry.breaker.close();
            entry.credential = None;
            // Under the lock, as below: what it has counted is counted at every moment.
            entry.handle.take().inspect(|handle| self.closed.begin(handle.clone()))
        };
        if let Some(handle) = old {
            self.close_apart(handle);
        }
    }

    /// Lists the apps of which something is remembered.
    pub(crate) fn apps(&self) -> HashSet<AppId> {
        let mut apps: HashSet<_> = self.lock().keys().map(|(app, _)| *app).collect();
        apps.extend(self.levels.lock().apps());
        apps
    }

    /// Forgets all that is remembered of apps that are gone.
    pub(crate) fn forget(&self, gone: &HashSet<AppId>) {
        // Entries first: one that still had its place would write into another's after `levels` gave it away.
        let handles: Vec<_> = {
            let mut entries = self.lock();
            let gone = entries.extract_if(|(app, _), _| gone.contains(app));
            let handles = gone.filter_map(|(_, entry)| entry.handle);
            handles.inspect(|handle| self.closed.begin(handle.clone())).collect()
        };
        handles.into_iter().for_each(|handle| self.close_apart(handle));
        self.levels.lock().forget(gone);
    }

    /// Compares every credential with the one in use; returns the lanes for which it is another, or gone, or new.
    pub(crate) async fn reload(&self) -> Result<Vec<ProviderKey>, StoreError> {
        let kept: HashMap<ProviderKey, Credential> =
            self.store.credentials().await?.into_iter().map(|one| ((one.app, one.provider), one)).collect();
        let differs = |(key, entry): (&ProviderKey, &ProviderEntry)| {
            let other = entry.credential.as_ref() != kept.get(key);
            let refused = entry.breaker.parking().is_some_and(|parking| parking.until.is_none());
            (other || refused).then_some(*key)
        };
        let changed: Vec<_> = self.lock().iter().filter_map(differs).collect();
        changed.iter().for_each(|key| self.changed(*key));
        Ok(changed)
    }

    /// Closes every provider after its batches.
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

    /// Closes a provider apart: that waits for batches, and the caller must not. What it has counted stays counted.
    fn close_apart(&self, handle: Arc<ProviderHandle>) {
        let closed = self.closed.clone();
        self.closing.spawn(async move {
            handle.clone().close().await;
            closed.end(&handle);
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProviderKey, ProviderEntry>> {
        self.entries.lock()
    }
}

/// Adds to the reason of a rest what kept the provider from its push service, if anything did.
fn with_cause(parking: Parking, handle: &ProviderHandle) -> Parking {
    match handle.provider.trouble() {
        // That nothing is answered says less than why.
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

/// The right of one chunk to pass an open breaker.
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

#[cfg(test)]
mod tests;
