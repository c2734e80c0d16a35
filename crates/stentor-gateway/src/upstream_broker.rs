//! Whoever speaks for an app is handed what its devices send: at least once, and each message to one of them at a time, also where they are
//! connected to several servers.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{AppId, UpstreamId};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{Page, Store, StoreError, UpstreamChange};
use stentor_core::upstream::UpstreamMessage;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex as AsyncMutex, Notify, futures::OwnedNotified};
use tokio::time::sleep;

use crate::limits::{
    UPSTREAM_DEVICE_SHARE, UPSTREAM_LOOK_INTERVAL, UPSTREAM_LOOK_MAX_PAGES, UPSTREAM_LOOK_PAGE_MAX_COUNT,
};
use crate::upstream_window::UpstreamWindow;

/// What is known of an app that somebody speaks for.
#[derive(Default)]
struct AppConsumers {
    /// What was handed over and is not settled.
    held: HashSet<UpstreamId>,
    /// What was given back, while other processes do not know it.
    given_back: BTreeSet<UpstreamId>,
    /// Held by who claims messages in the store, and by who lets go of them there.
    claims: Arc<AsyncMutex<()>>,
    wake: Arc<Notify>,
    consumers: usize,
}

/// Hands messages of devices to consumers: connections of app servers, streams, webhooks and commands share one broker, so that a
/// message is with one of them at a time.
pub struct UpstreamBroker {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    apps: Mutex<HashMap<AppId, AppConsumers>>,
    /// Something was given back.
    given_back: Notify,
}

impl UpstreamBroker {
    /// Opens a broker over the store that keeps the messages.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { store, clock, apps: Mutex::default(), given_back: Notify::new() })
    }

    /// Begins to hand an app's messages to somebody, at most `window` that are not settled.
    #[must_use]
    pub fn consume(self: &Arc<Self>, app: AppId, window: usize) -> UpstreamConsumer {
        self.begin(app, (window, window), false)
    }

    /// Begins the same for somebody who settles each message by itself, or not for long: of one device it has a part of the window, so that
    /// those of others are not behind them.
    #[must_use]
    pub fn consume_by_device(self: &Arc<Self>, app: AppId, window: usize) -> UpstreamConsumer {
        self.begin(app, (window, window.div_ceil(UPSTREAM_DEVICE_SHARE)), false)
    }

    /// Begins to hand an app's messages and the receipts for it to somebody.
    #[must_use]
    pub fn consume_with_receipts(self: &Arc<Self>, app: AppId, window: usize) -> UpstreamConsumer {
        self.begin(app, (window, window), true)
    }

    fn begin(
        self: &Arc<Self>,
        app: AppId,
        (window, of_device): (usize, usize),
        takes_receipts: bool,
    ) -> UpstreamConsumer {
        let mut apps = self.lock();
        let broker = apps.entry(app).or_default();
        broker.consumers += 1;
        let (wake, claims) = (Arc::clone(&broker.wake), Arc::clone(&broker.claims));
        drop(apps);
        let (found, ready, looked_to) = (Vec::new(), VecDeque::new(), 0);
        let (broker, held) = (Arc::clone(self), UpstreamWindow::new(window, of_device));
        UpstreamConsumer { broker, app, takes_receipts, wake, claims, held, looked_to, found, ready }
    }

    /// Notes that messages were taken over by whoever speaks for the app.
    pub async fn settle(&self, app: AppId, ids: &[UpstreamId]) -> Result<UpstreamChange, StoreError> {
        let settled = self.store.settle_upstream(app, ids, self.clock.now()).await?;
        // After the store, in which those look who are woken.
        self.arrived(app);
        Ok(settled)
    }

    /// Wakes whoever speaks for an app: something waits, or there is room again.
    pub fn arrived(&self, app: AppId) {
        if let Some(broker) = self.lock().get(&app) {
            // All of them, because it is not known here which one has room.
            broker.wake.notify_waiters();
        }
    }

    /// Wakes whoever speaks for any app: it is not known of which something waits.
    pub fn arrived_everywhere(&self) {
        self.lock().values().for_each(|broker| broker.wake.notify_waiters());
    }

    /// Wakes by what the gateway tells of arrivals, and tells other processes what was given back, until the gateway is gone.
    pub async fn follow(self: Arc<Self>, arrivals: Receiver<AppId>) {
        tokio::select! {
            () = self.hear(arrivals) => {}
            () = self.give_all_back() => {}
        }
    }

    async fn hear(&self, mut arrivals: Receiver<AppId>) {
        loop {
            match arrivals.recv().await {
                Ok(app) => self.arrived(app),
                Err(RecvError::Lagged(_)) => self.arrived_everywhere(),
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Lets other processes have what was given back.
    async fn give_all_back(&self) {
        loop {
            self.given_back.notified().await;
            let apps: Vec<AppId> = self.lock().keys().copied().collect();
            for app in apps {
                if let Err(error) = self.let_go(app).await {
                    tracing::warn!(%error, %app, "what waits for an app again cannot be left to other servers");
                    self.given_back.notify_one();
                    sleep(UPSTREAM_LOOK_INTERVAL).await;
                }
            }
        }
    }

    async fn let_go(&self, app: AppId) -> Result<(), StoreError> {
        let Some(claims) = self.lock().get(&app).map(|broker| Arc::clone(&broker.claims)) else {
            return Ok(());
        };
        // Whoever holds one of these again by now has not claimed it yet, or it is left out.
        let _nobody_claims = claims.lock().await;
        let ids: Vec<UpstreamId> = match self.lock().get_mut(&app) {
            Some(AppConsumers { held, given_back, .. }) => {
                given_back.retain(|id| !held.contains(id));
                given_back.iter().copied().collect()
            }
            None => Vec::new(),
        };
        if !ids.is_empty() {
            self.store.let_go_of_upstream(app, &ids).await?;
        }
        let mut apps = self.lock();
        if let Some(broker) = apps.get_mut(&app) {
            // Only these: more may have been given back during the call.
            broker.given_back.retain(|id| !ids.contains(id));
            if broker.is_idle() {
                apps.remove(&app);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AppId, AppConsumers>> {
        self.apps.lock()
    }
}

impl AppConsumers {
    /// Returns whether nothing of the app is to be known any more.
    fn is_idle(&self) -> bool {
        self.consumers == 0 && self.given_back.is_empty()
    }
}

/// Somebody who speaks for an app. What it was handed and nobody has settled is handed to another when it is dropped.
pub struct UpstreamConsumer {
    broker: Arc<UpstreamBroker>,
    app: AppId,
    takes_receipts: bool,
    wake: Arc<Notify>,
    claims: Arc<AsyncMutex<()>>,
    held: UpstreamWindow,
    /// The start of the next look: behind the messages that it would only pass over.
    looked_to: u64,
    /// Nobody else's in this process, and not claimed in the store yet.
    found: Vec<UpstreamMessage>,
    /// Claimed, and not returned by [`Self::next`] yet.
    ready: VecDeque<UpstreamMessage>,
}

impl UpstreamConsumer {
    /// Returns the app.
    #[must_use]
    pub const fn app(&self) -> AppId {
        self.app
    }

    /// Returns how many messages it has and that are not settled.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.held.len()
    }

    /// Waits for messages and returns them, oldest first; `attempts` counts those before. Nothing is lost when the call is
    /// dropped before it ends.
    pub async fn next(&mut self) -> Result<Vec<UpstreamMessage>, StoreError> {
        loop {
            // Made before the look: what arrives from here on wakes it, also while the store is asked.
            let woken: OwnedNotified = Arc::clone(&self.wake).notified_owned();
            let found = self.try_next().await?;
            if !found.is_empty() {
                return Ok(found);
            }
            // What was passed over is not all that waits.
            if self.looked_to > 0 && !self.held.is_full() {
                continue;
            }
            // What a device of another process sent, and what expired or was settled there, is not told here.
            tokio::select! {
                () = woken => {}
                () = sleep(UPSTREAM_LOOK_INTERVAL) => {}
            }
        }
    }

    /// Returns the messages that can be handed over now.
    pub async fn try_next(&mut self) -> Result<Vec<UpstreamMessage>, StoreError> {
        // What was found or claimed by a call that was dropped comes first.
        if self.ready.is_empty() {
            if self.found.is_empty() {
                self.look().await?;
            }
            self.claim().await?;
        }
        Ok(self.ready.drain(..).collect())
    }

    /// Claims what was found; what another process was faster to claim is left to it.
    async fn claim(&mut self) -> Result<(), StoreError> {
        let ids: Vec<_> = self.found.iter().map(|message| message.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let claimed = {
            // Across the call: what is let go in the store meanwhile would undo this claim.
            let _nobody_lets_go = self.claims.lock().await;
            self.broker.store.claim_upstream(self.app, &ids).await?
        };
        let claimed: HashSet<_> = claimed.into_iter().collect();
        let is_own = |message: &UpstreamMessage| claimed.contains(&message.id);
        let (own, others): (Vec<_>, Vec<_>) = self.found.drain(..).partition(is_own);
        self.ready.extend(own);
        self.forget(&others.iter().map(|message| message.id).collect::<Vec<_>>());
        Ok(())
    }

    /// Notes that messages were taken over; only what it was handed counts. Returns how many waited.
    pub async fn settle(&mut self, ids: &[UpstreamId]) -> Result<u64, StoreError> {
        let own: Vec<_> = ids.iter().copied().filter(|id| self.held.has(*id)).collect();
        if own.is_empty() {
            return Ok(0);
        }
        // Forgotten after the ledger knows: another consumer would be handed it once more.
        let settled = self.broker.settle(self.app, &own).await?;
        self.forget(&own);
        Ok(settled.changed)
    }

    /// Lets a message that it holds take no place of the window until it is settled, buried or given back: it is tried again later.
    pub fn rest(&mut self, id: UpstreamId) {
        self.held.rest(id);
        // There is room again.
        self.wake.notify_waiters();
    }

    /// Reads a message again that it holds; `None` when it waits no more, and is not held any more.
    pub async fn again(&mut self, id: UpstreamId) -> Result<Option<UpstreamMessage>, StoreError> {
        let page = Page { after: id.raw().saturating_sub(1), limit: 1 };
        let (store, now) = (&self.broker.store, self.broker.clock.now());
        let found = store.waiting_upstream_and_receipts(self.app, page, now).await?;
        let found = found.into_iter().find(|message| message.id == id && self.held.has(id));
        if found.is_none() {
            self.forget(&[id]);
        }
        Ok(found)
    }

    /// Counts another attempt at a message that it holds.
    pub async fn note_attempt(&self, id: UpstreamId) -> Result<(), StoreError> {
        self.broker.store.note_upstream_attempt(self.app, &[id]).await
    }

    /// Puts a message on the list of dead letters.
    pub async fn bury(&mut self, id: UpstreamId, reason: &str) -> Result<(), StoreError> {
        // Forgotten after it, as in `settle`.
        // Words of others may be in it, and no store keeps all that these may have.
        let reason = reason.replace('\0', "\u{fffd}");
        self.broker.store.bury_upstream(self.app, id, &reason).await?;
        self.forget(&[id]);
        Ok(())
    }

    /// Lets go of messages without settling them: they wait for whoever is next.
    pub fn give_back(&mut self, ids: &[UpstreamId]) {
        let own: Vec<_> = ids.iter().copied().filter(|id| self.held.has(*id)).collect();
        // What another consumer here takes before it is noted as given back, `let_go` leaves out.
        self.forget(&own);
        if let Some(broker) = self.broker.lock().get_mut(&self.app) {
            broker.given_back.extend(own);
        }
        // After it is noted: the permit is kept, and whoever takes it finds these.
        self.broker.given_back.notify_one();
    }

    /// Holds messages no more that wait no more, or are another process's.
    fn forget(&mut self, ids: &[UpstreamId]) {
        let mut apps = self.broker.lock();
        for id in ids.iter().filter(|id| self.held.remove(**id)) {
            if let Some(broker) = apps.get_mut(&self.app) {
                broker.held.remove(id);
            }
        }
    }

    /// Finds what waits and nobody holds, as far as the window has room, and lets go of what waits no more.
    async fn look(&mut self) -> Result<(), StoreError> {
        let (from, mut after) = (self.looked_to, self.looked_to);
        let (mut waiting, mut is_all) = (Vec::new(), false);
        for _ in 0..UPSTREAM_LOOK_MAX_PAGES {
            let page = Page { after, limit: UPSTREAM_LOOK_PAGE_MAX_COUNT };
            let found = self.waiting(page).await?;
            is_all = found.len() < UPSTREAM_LOOK_PAGE_MAX_COUNT;
            after = found.last().map_or(after, |message| message.id.raw());
            waiting.extend(found);
            if is_all || self.has_enough(&waiting) {
                break;
            }
        }
        // Before anything is claimed: what was settled elsewhere makes room in the window.
        self.let_go(&waiting, (from, (!is_all).then_some(after)));
        let mut apps = self.broker.lock();
        let broker = apps.entry(self.app).or_default();
        for message in waiting {
            // Under one lock for all consumers of the app: a message is inserted, and so held, by one of them.
            if self.held.has_room(message.device) && broker.held.insert(message.id) {
                self.held.insert(message.id, message.device);
                self.found.push(message);
            }
        }
        // With a full window the rest of what was seen is looked at once more: it may have been left for want of room.
        self.looked_to = match (is_all, self.held.is_full()) {
            (true, _) => 0,
            (false, true) => from,
            (false, false) => after,
        };
        Ok(())
    }

    async fn waiting(&self, page: Page) -> Result<Vec<UpstreamMessage>, StoreError> {
        let (store, now) = (&self.broker.store, self.broker.clock.now());
        store.free_upstream(self.app, page, self.takes_receipts, now).await
    }

    fn has_enough(&self, waiting: &[UpstreamMessage]) -> bool {
        let apps = self.broker.lock();
        let is_free = |id: &UpstreamId| apps.get(&self.app).is_none_or(|broker| !broker.held.contains(id));
        self.held
            .is_filled_by(waiting.iter().filter(|message| is_free(&message.id)).map(|message| message.device))
    }

    /// Lets go of what was settled elsewhere or has expired: it is not among what waits from there up to `looked_to`.
    fn let_go(&mut self, waiting: &[UpstreamMessage], (from, looked_to): (u64, Option<u64>)) {
        let waits: HashSet<_> = waiting.iter().map(|message| message.id).collect();
        let was_seen = |id: &UpstreamId| id.raw() > from && looked_to.is_none_or(|last| id.raw() <= last);
        let gone: Vec<_> = self.held.ids().filter(|id| was_seen(id) && !waits.contains(id)).collect();
        self.forget(&gone);
    }
}

impl Drop for UpstreamConsumer {
    fn drop(&mut self) {
        let mut apps = self.broker.lock();
        let Some(broker) = apps.get_mut(&self.app) else { return };
        broker.held.retain(|id| !self.held.has(*id));
        broker.given_back.extend(self.held.ids());
        broker.consumers -= 1;
        if broker.is_idle() {
            apps.remove(&self.app);
        } else {
            // What this one held is free for the others.
            broker.wake.notify_waiters();
            self.broker.given_back.notify_one();
        }
    }
}
