//! The broker of upstream messages. It hands the messages of devices to the consumers of their app at least once, and each message to one
//! consumer at a time, even if the consumers are connected to several servers.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{AppId, UpstreamId};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{
    Page, StoreError, UpstreamAction, UpstreamChange, UpstreamFilter, UpstreamStore,
};
use stentor_core::upstream::UpstreamMessage;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex as AsyncMutex, Notify, futures::OwnedNotified};
use tokio::time::sleep;

use crate::limits::{
    UPSTREAM_DEVICE_SHARE, UPSTREAM_LOOK_INTERVAL, UPSTREAM_LOOK_MAX_PAGES, UPSTREAM_LOOK_PAGE_MAX_COUNT,
};
use crate::upstream_window::UpstreamWindow;

/// State of an app with consumers.
#[derive(Default)]
struct AppConsumers {
    /// Messages that were handed over and are not settled.
    held: HashSet<UpstreamId>,
    /// Messages that were given back, while the store still has them as claimed.
    given_back: BTreeSet<UpstreamId>,
    /// Held while messages are claimed in the store, or released there.
    claims: Arc<AsyncMutex<()>>,
    wake: Arc<Notify>,
    consumers: usize,
}

/// Hands messages of devices to consumers. Connections of app servers, streams, webhooks and commands share one broker, so that a message
/// is with one of them at a time.
pub struct UpstreamBroker {
    store: Arc<dyn UpstreamStore>,
    clock: Arc<dyn Clock>,
    apps: Mutex<HashMap<AppId, AppConsumers>>,
    /// Notified when messages are given back.
    given_back: Notify,
}

impl UpstreamBroker {
    /// Opens a broker over the store that keeps the messages.
    #[must_use]
    pub fn new(store: Arc<dyn UpstreamStore>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { store, clock, apps: Mutex::default(), given_back: Notify::new() })
    }

    /// Adds a consumer of an app's messages, with at most `window` unsettled ones.
    #[must_use]
    pub fn consume(self: &Arc<Self>, app: AppId, window: usize) -> UpstreamConsumer {
        self.begin(app, UpstreamWindow::new(window, window), false)
    }

    /// Adds a consumer that settles messages one by one or slowly. Each device gets only a part of the window, so that its messages do not
    /// block those of others.
    #[must_use]
    pub fn consume_by_device(self: &Arc<Self>, app: AppId, window: usize) -> UpstreamConsumer {
        let held = UpstreamWindow::new(window, window.div_ceil(UPSTREAM_DEVICE_SHARE));
        self.begin(app, held, false)
    }

    /// Adds a consumer of an app's messages and of the receipts for it.
    #[must_use]
    pub fn consume_with_receipts(self: &Arc<Self>, app: AppId, window: usize) -> UpstreamConsumer {
        self.begin(app, UpstreamWindow::new(window, window), true)
    }

    fn begin(self: &Arc<Self>, app: AppId, held: UpstreamWindow, takes_receipts: bool) -> UpstreamConsumer {
        let mut apps = self.lock();
        let broker = apps.entry(app).or_default();
        broker.consumers += 1;
        let (wake, claims) = (Arc::clone(&broker.wake), Arc::clone(&broker.claims));
        drop(apps);
        let (found, ready, looked_to) = (Vec::new(), VecDeque::new(), 0);
        let broker = Arc::clone(self);
        UpstreamConsumer { broker, app, takes_receipts, wake, claims, held, looked_to, found, ready }
    }

    /// Settles messages that a consumer of the app has taken over.
    pub async fn settle(&self, app: AppId, ids: &[UpstreamId]) -> Result<UpstreamChange, StoreError> {
        let settled =
            self.store.change_upstream(app, ids, UpstreamAction::Settle { now: self.clock.now() }).await?;
        // After the store, because the woken consumers read it.
        self.arrived(app);
        Ok(settled)
    }

    /// Wakes the consumers of an app, because messages wait or there is room again.
    pub fn arrived(&self, app: AppId) {
        if let Some(broker) = self.lock().get(&app) {
            // All of them, because it is not known here which one has room.
            broker.wake.notify_waiters();
        }
    }

    /// Wakes the consumers of all apps, when it is unknown which app has new messages.
    pub fn arrived_everywhere(&self) {
        self.lock().values().for_each(|broker| broker.wake.notify_waiters());
    }

    /// Wakes consumers on the gateway's arrivals, and releases messages given back, until the gateway is gone.
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

    /// Releases messages given back, so that other processes may claim them.
    async fn give_all_back(&self) {
        loop {
            self.given_back.notified().await;
            let apps: Vec<AppId> = self.lock().keys().copied().collect();
            for app in apps {
                if let Err(error) = self.let_go(app).await {
                    tracing::warn!(%error, %app, "the returned messages of an app cannot be released to other servers");
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
        // Messages held again by a consumer are not claimed yet, or are left out below.
        let _nobody_claims = claims.lock().await;
        let ids: Vec<UpstreamId> = match self.lock().get_mut(&app) {
            Some(AppConsumers { held, given_back, .. }) => {
                given_back.retain(|id| !held.contains(id));
                given_back.iter().copied().collect()
            }
            None => Vec::new(),
        };
        if !ids.is_empty() {
            self.store.change_upstream(app, &ids, UpstreamAction::Release).await?;
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
    /// Returns true if no state of the app is needed any more.
    fn is_idle(&self) -> bool {
        self.consumers == 0 && self.given_back.is_empty()
    }
}

/// A consumer of an app's messages. When it is dropped, its unsettled messages go to another one.
pub struct UpstreamConsumer {
    broker: Arc<UpstreamBroker>,
    app: AppId,
    takes_receipts: bool,
    wake: Arc<Notify>,
    claims: Arc<AsyncMutex<()>>,
    held: UpstreamWindow,
    /// Start of the next scan, after messages that it would only skip.
    looked_to: u64,
    /// Messages held in this process and not claimed in the store yet.
    found: Vec<UpstreamMessage>,
    /// Claimed messages that [`Self::next`] has not returned yet.
    ready: VecDeque<UpstreamMessage>,
}

impl UpstreamConsumer {
    /// Returns the app.
    #[must_use]
    pub const fn app(&self) -> AppId {
        self.app
    }

    /// Returns the number of its unsettled messages.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.held.len()
    }

    /// Waits for messages and returns them, oldest first; `attempts` counts the earlier ones. The call may be dropped without losing
    /// messages.
    pub async fn next(&mut self) -> Result<Vec<UpstreamMessage>, StoreError> {
        loop {
            // Created before the read, so that arrivals during it still wake this consumer.
            let woken: OwnedNotified = Arc::clone(&self.wake).notified_owned();
            let found = self.try_next().await?;
            if !found.is_empty() {
                return Ok(found);
            }
            // More messages may wait before the start of this scan.
            if self.looked_to > 0 && !self.held.is_full() {
                continue;
            }
            // Messages from other processes, and those that expired or were settled there, are not announced here.
            tokio::select! {
                () = woken => {}
                () = sleep(UPSTREAM_LOOK_INTERVAL) => {}
            }
        }
    }

    /// Returns the messages that can be handed over now.
    pub async fn try_next(&mut self) -> Result<Vec<UpstreamMessage>, StoreError> {
        // Messages found or claimed by a dropped call come first.
        if self.ready.is_empty() {
            if self.found.is_empty() {
                self.look().await?;
            }
            self.claim().await?;
        }
        Ok(self.ready.drain(..).collect())
    }

    /// Claims the found messages in the store. Those claimed by another process first are dropped.
    async fn claim(&mut self) -> Result<(), StoreError> {
        let ids: Vec<_> = self.found.iter().map(|message| message.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let claimed = {
            // Held across the call, because a concurrent release in the store would undo this claim.
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

    /// Settles messages, as far as this consumer holds them. Returns the number of those that waited.
    pub async fn settle(&mut self, ids: &[UpstreamId]) -> Result<u64, StoreError> {
        let own: Vec<_> = ids.iter().copied().filter(|id| self.held.has(*id)).collect();
        if own.is_empty() {
            return Ok(0);
        }
        // Removed only after the ledger has it: otherwise another consumer would get the message again.
        let settled = self.broker.settle(self.app, &own).await?;
        self.forget(&own);
        Ok(settled.changed)
    }

    /// Frees the window place of a held message until it is settled, buried or given back; it is retried later.
    pub fn rest(&mut self, id: UpstreamId) {
        self.held.rest(id);
        // There is room again.
        self.wake.notify_waiters();
    }

    /// Reads a held message again; `None` if it no longer waits, and then it is no longer held.
    pub async fn again(&mut self, id: UpstreamId) -> Result<Option<UpstreamMessage>, StoreError> {
        let page = Page { after: id.raw().saturating_sub(1), limit: 1 };
        let (store, now) = (&self.broker.store, self.broker.clock.now());
        let found = store.upstream(self.app, UpstreamFilter::WaitingAndReceipts, page, now).await?;
        let found = found.into_iter().find(|message| message.id == id && self.held.has(id));
        if found.is_none() {
            self.forget(&[id]);
        }
        Ok(found)
    }

    /// Counts another attempt at a held message.
    pub async fn note_attempt(&self, id: UpstreamId) -> Result<(), StoreError> {
        self.broker.store.change_upstream(self.app, &[id], UpstreamAction::NoteAttempt).await.map(drop)
    }

    /// Adds a message to the dead letters.
    pub async fn bury(&mut self, id: UpstreamId, reason: &str) -> Result<(), StoreError> {
        // Removed afterwards, as in `settle`. The reason may contain foreign text, and not every store accepts NUL in it.
        let reason = reason.replace('\0', "\u{fffd}");
        self.broker.store.change_upstream(self.app, &[id], UpstreamAction::Bury { reason }).await?;
        self.forget(&[id]);
        Ok(())
    }

    /// Releases messages without settling them; they go to the next consumer.
    pub fn give_back(&mut self, ids: &[UpstreamId]) {
        let own: Vec<_> = ids.iter().copied().filter(|id| self.held.has(*id)).collect();
        // `let_go` leaves out messages that another consumer takes before they are recorded as given back.
        self.forget(&own);
        if let Some(broker) = self.broker.lock().get_mut(&self.app) {
            broker.given_back.extend(own);
        }
        // Notified after they are recorded: the permit is stored, and the task that takes it finds them.
        self.broker.given_back.notify_one();
    }

    /// Removes messages that no longer wait, or belong to another process.
    fn forget(&mut self, ids: &[UpstreamId]) {
        let mut apps = self.broker.lock();
        for id in ids.iter().filter(|id| self.held.remove(**id)) {
            if let Some(broker) = apps.get_mut(&self.app) {
                broker.held.remove(id);
            }
        }
    }

    /// Finds free waiting messages, as far as the window has room, and drops held ones that no longer wait.
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
        // Before new messages are taken: messages settled elsewhere make room in the window.
        self.let_go(&waiting, from, (!is_all).then_some(after));
        let mut apps = self.broker.lock();
        let broker = apps.entry(self.app).or_default();
        for message in waiting {
            // Under one lock for all consumers of the app: each message is inserted, and so held, by only one of them.
            if self.held.has_room(message.device) && broker.held.insert(message.id) {
                self.held.insert(message.id, message.device);
                self.found.push(message);
            }
        }
        // With a full window the same range is scanned again: messages in it may have been skipped for lack of room.
        self.looked_to = match (is_all, self.held.is_full()) {
            (true, _) => 0,
            (false, true) => from,
            (false, false) => after,
        };
        Ok(())
    }

    async fn waiting(&self, page: Page) -> Result<Vec<UpstreamMessage>, StoreError> {
        let (store, now) = (&self.broker.store, self.broker.clock.now());
        let free = UpstreamFilter::Free { with_receipts: self.takes_receipts };
        store.upstream(self.app, free, page, now).await
    }

    fn has_enough(&self, waiting: &[UpstreamMessage]) -> bool {
        let apps = self.broker.lock();
        let is_free = |id: &UpstreamId| apps.get(&self.app).is_none_or(|broker| !broker.held.contains(id));
        self.held
            .is_filled_by(waiting.iter().filter(|message| is_free(&message.id)).map(|message| message.device))
    }

    /// Drops held messages that were settled elsewhere or have expired: they are missing from the messages waiting in the scanned range,
    /// which reaches from `from` to `looked_to`, or without it to the end.
    fn let_go(&mut self, waiting: &[UpstreamMessage], from: u64, looked_to: Option<u64>) {
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
            // The messages that this one held are free for the others.
            broker.wake.notify_waiters();
            self.broker.given_back.notify_one();
        }
    }
}
