//! Providers by app and kind, built when first needed, and the gates in front of them.

mod gate;
mod levels;
mod throttle;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use stentor_core::app::Credential;
use stentor_core::chunk::Class;
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::id::AppId;
use stentor_core::outcome::Reason;
use stentor_core::ports::provider::{Provider, ProviderStats};
use stentor_core::ports::store::{Store, StoreError};
use stentor_core::time::Timestamp;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::evidence::{Evidence, Shares, Standing};
use super::settle::Parking;
use super::stats::{ParkedStats, QuotaStats};
use gate::Gate;
pub(crate) use gate::{GateRules, Look, Verdict};
pub(crate) use levels::Levels;
use throttle::Throttle;
pub(crate) use throttle::{Grant, ThrottleRules};

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

/// One app at one provider: what a credential and a gate belong to.
pub(crate) type Key = (AppId, ProviderKind);

/// A provider in use.
pub(crate) struct Outlet {
    provider: Arc<dyn Provider>,
    batches: TaskTracker,
}

impl Outlet {
    /// Returns the provider, and a mark of use without which it might be closed.
    pub(crate) fn enter(&self) -> (&dyn Provider, TaskTrackerToken) {
        (&*self.provider, self.batches.token())
    }

    /// Closes the provider once its batches are over.
    async fn close(self: Arc<Self>) {
        self.batches.close();
        self.batches.wait().await;
        self.provider.close().await;
    }
}

/// All providers and their gates.
pub(crate) struct Lanes {
    store: Arc<dyn Store>,
    factory: Arc<dyn ProviderFactory>,
    rules: GateRules,
    throttles: ThrottleRules,
    entries: Mutex<HashMap<Key, Entry>>,
    levels: Mutex<Levels>,
    closing: TaskTracker,
}

#[derive(Default)]
struct Entry {
    credential: Option<Credential>,
    outlet: Option<Arc<Outlet>>,
    gate: Gate,
    throttle: Option<Throttle>,
    /// How often its credential was put or removed.
    changes: u64,
}

impl Entry {
    fn uses(&self, outlet: &Arc<Outlet>) -> bool {
        self.outlet.as_ref().is_some_and(|one| Arc::ptr_eq(one, outlet))
    }
}

impl Lanes {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        factory: Arc<dyn ProviderFactory>,
        rules: GateRules,
        throttles: ThrottleRules,
        levels: Levels,
    ) -> Self {
        let (entries, levels, closing) = (Mutex::default(), Mutex::new(levels), TaskTracker::new());
        Self { store, factory, rules, throttles, entries, levels, closing }
    }

    /// Returns what may pass at `now`.
    pub(crate) fn look(&self, key: Key, now: Timestamp) -> Look {
        self.lock().get(&key).map_or(Look::Open, |entry| entry.gate.look(now, &self.rules))
    }

    /// Returns the provider, building it first if need be; without one the lane is parked and returns why.
    pub(crate) async fn outlet(&self, key: Key, now: Timestamp) -> Option<Arc<Outlet>> {
        let (known, changes) =
            self.lock().get(&key).map_or((None, 0), |entry| (entry.outlet.clone(), entry.changes));
        if known.is_some() {
            return known;
        }
        match self.build(key, now).await {
            Ok((credential, provider)) => self.install((key, changes), credential, provider, now),
            Err(parking) => {
                let mut entries = self.lock();
                let gate = &mut entries.entry(key).or_default().gate;
                // A probe that finds it as it was has nothing to tell.
                if gate.parking().is_none_or(|known| known.detail != parking.detail) {
                    tell(key, &parking);
                }
                gate.park(parking, now);
                None
            }
        }
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
            if let Some(outlet) = self.outlet(key, now).await {
                let (provider, _in_use) = outlet.enter();
                if let Some(reason) = provider.warm().await {
                    self.rest(key, &outlet, reason, now);
                }
            }
        });
        join_all(lanes).await;
    }

    /// Parks a lane through which nothing can get before anything tried.
    fn rest(&self, key: Key, outlet: &Arc<Outlet>, reason: Reason, now: Timestamp) {
        let mut entries = self.lock();
        let entry = entries.get_mut(&key).filter(|entry| entry.uses(outlet));
        if let Some(entry) = entry.filter(|entry| entry.gate.parking().is_none()) {
            let parking = Parking { until: None, reason, detail: super::settle::detail(reason) };
            tell(key, &parking);
            entry.gate.park(parking, now);
        }
    }

    async fn build(
        &self,
        (app, kind): Key,
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
        (key, changes): (Key, u64),
        credential: Credential,
        provider: Arc<dyn Provider>,
        now: Timestamp,
    ) -> Option<Arc<Outlet>> {
        let outlet = Arc::new(Outlet { provider, batches: TaskTracker::new() });
        let quota = self.factory.quota(&credential);
        let mut entries = self.lock();
        let entry = entries.entry(key).or_default();
        // What was read before the credential was put anew must not take the place of the new one.
        if entry.changes != changes {
            return None;
        }
        let kept = || self.levels.lock().unwrap_or_else(PoisonError::into_inner).slot(key);
        entry.throttle = self.throttles.apply(entry.throttle.take(), quota, now, kept);
        entry.credential = Some(credential);
        Some(entry.outlet.get_or_insert(outlet).clone())
    }

    /// Takes what the quota must have for one chunk, or tells when to ask again.
    pub(crate) fn take(self: &Arc<Self>, key: Key, class: Class, now: Timestamp) -> Result<Grant, Timestamp> {
        let mut entries = self.lock();
        let throttle = entries.get_mut(&key).and_then(|entry| entry.throttle.as_mut());
        let taken = throttle.map_or(Ok(0), |throttle| throttle.take(class, &self.throttles, now))?;
        Ok(Grant::new(self.clone(), key, class, taken))
    }

    /// Notes that a lane waits for its quota.
    pub(crate) fn note_wait(&self, key: Key, until: Timestamp, now: Timestamp) {
        if let Some(throttle) = self.lock().get_mut(&key).and_then(|entry| entry.throttle.as_mut()) {
            throttle.note_wait(until, now);
        }
    }

    /// Lets one chunk pass a gate that was shut; over when the probe is dropped. `None` when another has it.
    pub(crate) fn probe(self: &Arc<Self>, key: Key, now: Timestamp) -> Option<Probe> {
        let mut entries = self.lock();
        let gate = &mut entries.entry(key).or_default().gate;
        if gate.look(now, &self.rules) != Look::Probe {
            return None;
        }
        gate.set_probing(true);
        Some(Probe { lanes: self.clone(), key })
    }

    /// Brings all gates back with the clock.
    pub(crate) fn clock_went_back(&self, back: Duration, now: Timestamp) {
        self.lock().values_mut().for_each(|entry| entry.gate.clock_went_back(back, now));
    }

    /// Adds what a batch showed to what is known of its lane; returns how the push service stands. A batch of a credential
    /// that was put anew meanwhile is weighed alone.
    pub(crate) fn weigh(
        &self,
        key: Key,
        outlet: &Arc<Outlet>,
        evidence: Evidence,
        is_probe: bool,
    ) -> Standing {
        match self.lock().get_mut(&key).filter(|entry| entry.uses(outlet)) {
            Some(entry) => entry.gate.weigh(evidence, is_probe),
            None => Shares::default().weigh(evidence, is_probe),
        }
    }

    /// Learns from a batch, unless its credential was put anew meanwhile: what it showed is about the former one.
    pub(crate) fn judge(&self, key: Key, outlet: &Arc<Outlet>, verdict: Verdict, now: Timestamp) {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&key).filter(|entry| entry.uses(outlet)) else { return };
        let gate = &mut entry.gate;
        let before = gate.parking().cloned();
        gate.judge(verdict, now, &self.rules);
        match (before, gate.parking()) {
            (None, Some(parking)) => tell(key, parking),
            (Some(_), None) => tracing::info!(app = %key.0, provider = %key.1, "lane open again"),
            _ => {}
        }
    }

    /// Forgets the provider, because its credential was put or removed: the next chunk reads it again.
    pub(crate) fn changed(&self, key: Key) {
        let old = {
            let mut entries = self.lock();
            let entry = entries.entry(key).or_default();
            entry.changes += 1;
            entry.gate.open();
            entry.credential = None;
            entry.outlet.take()
        };
        if let Some(outlet) = old {
            self.closing.spawn(outlet.close());
        }
    }

    /// Lists the apps of which something is remembered.
    pub(crate) fn apps(&self) -> HashSet<AppId> {
        let mut apps: HashSet<_> = self.lock().keys().map(|(app, _)| *app).collect();
        apps.extend(self.levels.lock().unwrap_or_else(PoisonError::into_inner).apps());
        apps
    }

    /// Forgets all that is remembered of apps that are gone.
    pub(crate) fn forget(&self, gone: &HashSet<AppId>) {
        let entries: Vec<_> = self.lock().extract_if(|(app, _), _| gone.contains(app)).collect();
        for outlet in entries.into_iter().filter_map(|(_, entry)| entry.outlet) {
            self.closing.spawn(outlet.close());
        }
        self.levels.lock().unwrap_or_else(PoisonError::into_inner).forget(gone);
    }

    /// Compares every credential with the one in use; returns the lanes for which it is another, or gone, or new.
    pub(crate) async fn reload(&self) -> Result<Vec<Key>, StoreError> {
        let kept: HashMap<Key, Credential> =
            self.store.credentials().await?.into_iter().map(|one| ((one.app, one.provider), one)).collect();
        let differs = |(key, entry): (&Key, &Entry)| {
            let other = entry.credential.as_ref() != kept.get(key);
            let refused = entry.gate.parking().is_some_and(|parking| parking.until.is_none());
            (other || refused).then_some(*key)
        };
        let changed: Vec<_> = self.lock().iter().filter_map(differs).collect();
        changed.iter().for_each(|key| self.changed(*key));
        Ok(changed)
    }

    /// Closes every provider after its batches.
    pub(crate) async fn close(&self) {
        let outlets: Vec<_> = self.lock().values_mut().filter_map(|entry| entry.outlet.take()).collect();
        for outlet in outlets {
            self.closing.spawn(outlet.close());
        }
        self.closing.close();
        self.closing.wait().await;
    }

    /// Returns why a lane rests, if it does.
    pub(crate) fn parking(&self, key: Key) -> Option<Parking> {
        self.lock().get(&key)?.gate.parking().cloned()
    }

    /// Returns whether a lane rests because its credential seems to be another sender's.
    pub(crate) fn is_suspected(&self, key: Key) -> bool {
        self.lock().get(&key).is_some_and(|entry| entry.gate.is_suspected())
    }

    /// Lists which lanes rest.
    pub(crate) fn resting(&self) -> HashSet<Key> {
        let entries = self.lock();
        entries.iter().filter(|(_, entry)| entry.gate.parking().is_some()).map(|(key, _)| *key).collect()
    }

    /// Lists the lanes that rest, and why.
    pub(crate) fn parked(&self, kind: ProviderKind) -> Vec<ParkedStats> {
        let entries = self.lock();
        let of_kind = entries.iter().filter(|((_, provider), _)| *provider == kind);
        let parked = of_kind.filter_map(|((app, _), entry)| {
            let Parking { until, reason, detail } = entry.gate.parking()?.clone();
            Some(ParkedStats { app: *app, until, reason, detail })
        });
        parked.collect()
    }

    /// Lists the quotas in force.
    pub(crate) fn quotas(&self, kind: ProviderKind, now: Timestamp) -> Vec<QuotaStats> {
        let mut entries = self.lock();
        let of_kind = entries.iter_mut().filter(|((_, provider), _)| *provider == kind);
        of_kind.filter_map(|((app, _), entry)| Some(entry.throttle.as_mut()?.picture(*app, now))).collect()
    }

    /// Returns what the provider of one credential is doing.
    pub(crate) fn sender_stats(&self, key: Key) -> ProviderStats {
        let outlet = self.lock().get(&key).and_then(|entry| entry.outlet.clone());
        outlet.map(|outlet| outlet.provider.stats()).unwrap_or_default()
    }

    /// Adds up what all providers of a kind are doing.
    pub(crate) fn provider_stats(&self, kind: ProviderKind) -> ProviderStats {
        let entries = self.lock();
        let outlets = entries.iter().filter(|((_, provider), _)| *provider == kind);
        let stats = outlets.filter_map(|(_, entry)| Some(entry.outlet.as_ref()?.provider.stats()));
        stats.fold(ProviderStats::default(), |sum, one| ProviderStats {
            connections: sum.connections + one.connections,
            inflight: sum.inflight + one.inflight,
            inflight_limit: sum.inflight_limit + one.inflight_limit,
            latency_floor: sum.latency_floor.max(one.latency_floor),
            drains: sum.drains + one.drains,
            aborts: sum.aborts + one.aborts,
            connect_failures: sum.connect_failures + one.connect_failures,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the operator that a lane rests.
fn tell((app, provider): Key, parking: &Parking) {
    tracing::warn!(%app, %provider, reason = %parking.reason, "lane parked: {}", parking.detail);
}

/// The right of one chunk to pass a gate that was shut.
pub(crate) struct Probe {
    lanes: Arc<Lanes>,
    key: Key,
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(entry) = self.lanes.lock().get_mut(&self.key) {
            entry.gate.set_probing(false);
        }
    }
}

#[cfg(test)]
mod tests;
