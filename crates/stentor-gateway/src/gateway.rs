//! The gateway as a whole: who may connect, and what waits for whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use stentor_core::device::{Device, ProviderKind, PushToken};
use stentor_core::id::{AppId, DeviceId, IdSource, MessageId};
use stentor_core::message::Message;
use stentor_core::outcome::Reason;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::settled::{SettledChunk, SettledFeed};
use stentor_core::ports::store::{PendingDelivery, Receipt, ReceiptKind, ReceiptStore, Store, StoreError};
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_util::task::AbortOnDropHandle;

use crate::accepted_messages::AcceptedMessages;
use crate::backlog::{BacklogRoom, DeliveryBacklog, WaitingDelivery};
use crate::collapse::replaced;
use crate::delivery::{self, PendingMessage};
use crate::device_changes::DeviceChanges;
use crate::device_turns::DeviceTurns;
use crate::doubts::Doubts;
use crate::held_messages::HeldMessages;
use crate::identity::{DeviceIdentity, GatewayKey, app_of};
use crate::limits::{
    ARRIVALS_MAX_COUNT, LOOK_UP_RETRY, PENDING_MAX_COUNT, RECEIPTS_STALLED_MAX, SETTLED_CHUNKS_MAX_COUNT,
};
use crate::mcs::McsAgentRegistry;
use crate::parked_deliveries::ParkedDeliveries;
use crate::pending_reads::PendingReads;
use crate::receipt_waits::{ReceiptWait, ReceiptWaits};
use crate::receipts::{ReceiptWriter, Receipts};
use crate::registry::SessionRegistry;
use crate::session::DeviceSession;
use crate::session_claims::SessionClaims;
use crate::session_outcomes::SessionOutcomes;
use crate::session_state::{Closed, SessionState, Waiting, is_live};
use crate::silence::SilenceClock;
use crate::stats::{DeviceProtocol, GatewayCounts, GatewayStats};

/// Why a device may not connect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The token is no device's, or the secret is not the token's.
    #[error("the token or the secret is wrong: register the device again")]
    Refused,
    /// It cannot be told now.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the gateway is made of.
pub struct GatewayParts {
    /// The ledger and the devices.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Numbers for what devices send.
    pub ids: Arc<IdSource>,
    /// Makes the secrets of devices.
    pub key: GatewayKey,
}

/// What sessions share.
pub(crate) struct GatewayState {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registry: Arc<SessionRegistry>,
    pub(crate) receipts: Receipts,
    waits: Arc<ReceiptWaits>,
    pub(crate) pending: PendingReads,
    pub(crate) counts: Arc<GatewayCounts>,
    pub(crate) held: Arc<HeldMessages>,
    pub(crate) silences: Arc<SilenceClock>,
    pub(crate) doubts: Arc<Doubts>,
    /// Whoever comes in now is sent away.
    is_stopping: AtomicBool,
    key: GatewayKey,
    messages: Arc<AcceptedMessages>,
    settled: mpsc::Sender<SettledChunk>,
    ids: Arc<IdSource>,
    arrivals: broadcast::Sender<AppId>,
    mcs_agents: McsAgentRegistry,
    /// Messages of devices that were connected a moment ago.
    pub(crate) parked: Arc<ParkedDeliveries>,
    /// For what waits for connected devices beyond their windows.
    backlog_room: Arc<BacklogRoom>,
    /// Counts of the changes that devices have made today.
    pub(crate) device_changes: DeviceChanges,
    /// For the records of sessions of MQTT.
    pub(crate) session_records: DeviceTurns,
    pub(crate) session_outcomes: SessionOutcomes,
    /// Devices that came here, for the other servers.
    pub(crate) claims: SessionClaims,
}

/// Connections to devices of our own; clones share it.
#[derive(Clone)]
pub struct Gateway {
    state: Arc<GatewayState>,
    tasks: Arc<Mutex<Vec<AbortOnDropHandle<()>>>>,
}

impl Gateway {
    /// Starts it; the runtime must be running.
    #[must_use]
    pub fn start(GatewayParts { store, clock, ids, key }: GatewayParts) -> Self {
        let (registry, counts) = (Arc::new(SessionRegistry::default()), Arc::new(GatewayCounts::default()));
        let (settled, inbox) = mpsc::channel(SETTLED_CHUNKS_MAX_COUNT);
        let held = Arc::new(HeldMessages::default());
        let messages = Arc::new(AcceptedMessages::default());
        let parked = Arc::<ParkedDeliveries>::default();
        let taking = (Arc::clone(&registry), Arc::clone(&parked));
        let giving = delivery::run(taking, Arc::clone(&held), Arc::clone(&messages), inbox);
        let giving = AbortOnDropHandle::new(tokio::spawn(giving));
        let doubts = Arc::new(Doubts::new());
        let (arrivals, _) = broadcast::channel(ARRIVALS_MAX_COUNT);
        let waits = Arc::new(ReceiptWaits::default());
        let (receipts, writer) = Receipts::start(ReceiptWriter {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            ids: Arc::clone(&ids),
            arrivals: arrivals.clone(),
            counts: Arc::clone(&counts),
            doubts: Arc::clone(&doubts),
            waits: Arc::clone(&waits),
        });
        let ledger: Arc<dyn ReceiptStore> = Arc::clone(&store) as _;
        let (pending, readers) = PendingReads::start(&ledger, &clock);
        let silences = Arc::new(SilenceClock::new());
        let looking = silences.clone().run(Arc::clone(&registry));
        let looking = AbortOnDropHandle::new(tokio::spawn(looking));
        let doubting = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&doubts).run()));
        let tasks = [giving, writer, looking, doubting].into_iter().chain(readers);
        let tasks = Arc::new(Mutex::new(tasks.collect()));
        let mcs_agents = McsAgentRegistry::default();
        let state = GatewayState {
            store,
            clock,
            registry,
            receipts,
            waits,
            pending,
            counts,
            held,
            silences,
            doubts,
            is_stopping: AtomicBool::new(false),
            key,
            messages,
            settled,
            ids,
            arrivals,
            mcs_agents,
            parked,
            backlog_room: Arc::default(),
            device_changes: DeviceChanges::default(),
            session_records: DeviceTurns::new(),
            session_outcomes: SessionOutcomes::default(),
            claims: SessionClaims::default(),
        };
        Self { state: Arc::new(state), tasks }
    }

    /// Lets each app have so many devices connected here, in all protocols together.
    pub fn limit_sessions_per_app(&self, max_count: usize) {
        self.state.registry.limit_per_app(max_count);
    }

    /// Returns what makes the secrets of devices.
    #[must_use]
    pub fn key(&self) -> &GatewayKey {
        &self.state.key
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.state.store
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.state.clock
    }

    pub(crate) fn ids(&self) -> &IdSource {
        &self.state.ids
    }

    pub(crate) fn arrivals(&self) -> &broadcast::Sender<AppId> {
        &self.state.arrivals
    }

    pub(crate) fn mcs_agents(&self) -> &McsAgentRegistry {
        &self.state.mcs_agents
    }

    /// Finds out who a device is by its token and secret.
    pub async fn login(&self, token: &str, secret: &str) -> Result<DeviceIdentity, LoginError> {
        // A guess costs a hash and no look-up.
        if !self.state.key.fits(token, secret) {
            return Err(self.refused());
        }
        let (app, token) = self.read_token(token)?;
        match self.find_holder(app, &token).await? {
            Some(identity) => Ok(identity),
            None => self.take_offer(app, &token).await,
        }
    }

    /// Returns the app that a token says it belongs to, without a look-up; `None` for what is no token.
    #[must_use]
    pub fn app_of_token(token: &str) -> Option<AppId> {
        app_of(token)
    }

    /// Finds out whose a token is, for whoever has proved otherwise that it may know.
    pub async fn holder(&self, token: &str) -> Result<DeviceIdentity, LoginError> {
        let (app, token) = self.read_token(token)?;
        self.find_holder(app, &token).await?.ok_or_else(|| self.refused())
    }

    fn read_token(&self, token: &str) -> Result<(AppId, PushToken), LoginError> {
        app_of(token).zip(PushToken::new(token).ok()).ok_or_else(|| self.refused())
    }

    async fn find_holder(&self, app: AppId, token: &PushToken) -> Result<Option<DeviceIdentity>, StoreError> {
        let found = self.state.store.holders(app, ProviderKind::Gateway, std::slice::from_ref(token)).await?;
        // An unlisted device is a token that only its senders know, such as one that was replaced: nobody is that.
        let is_open = |device: &Device| device.listed && device.retired.is_none();
        let device = found.into_iter().next().flatten().filter(is_open);
        Ok(device.map(|device| DeviceIdentity { app, device: device.id }))
    }

    /// Lets a device in with the token that it was offered: from now on it has no other.
    async fn take_offer(&self, app: AppId, token: &PushToken) -> Result<DeviceIdentity, LoginError> {
        match self.state.store.take_offered_token(app, token, self.state.clock.now()).await? {
            Some(device) => {
                // Whoever came in with the former token is out.
                self.cut_off(device);
                Ok(DeviceIdentity { app, device })
            }
            // Another connection may have taken it a moment ago.
            None => self.find_holder(app, token).await?.ok_or_else(|| self.refused()),
        }
    }

    fn refused(&self) -> LoginError {
        self.state.counts.note_refused_login();
        LoginError::Refused
    }

    /// Opens a session of a device; an older one of the same device ends. `window` is how many deliveries it may have
    /// unconfirmed.
    #[must_use]
    pub fn open(&self, identity: DeviceIdentity, protocol: DeviceProtocol, window: usize) -> DeviceSession {
        self.open_session(SessionState::new(identity, protocol, window, (self.clock().now(), None)))
    }

    /// Opens a session that wakes its connection through `wake`, which several sessions of one connection may share.
    #[must_use]
    pub fn open_woken_by(
        &self,
        identity: DeviceIdentity,
        protocol: DeviceProtocol,
        window: usize,
        wake: Arc<Notify>,
    ) -> DeviceSession {
        self.open_session(SessionState::new(identity, protocol, window, (self.clock().now(), Some(wake))))
    }

    fn open_session(&self, state: SessionState) -> DeviceSession {
        let state = Arc::new(state);
        let session = DeviceSession::open(Arc::clone(&state), Arc::clone(&self.state));
        // After it is among the sessions: those of all devices are told from there.
        self.state.claims.note(&state);
        // Asked when all may see it: either the end of all sessions has met it, or it meets that here.
        if self.state.is_stopping.load(Ordering::SeqCst) {
            session.close(Closed::Stopping);
        }
        session
    }

    /// Returns whether a device is connected to this process.
    #[must_use]
    pub fn is_connected(&self, device: DeviceId) -> bool {
        self.state.registry.get(device).is_some()
    }

    /// Holds a message of an app back: no device is given it from now on, until it is released. To be called before its campaign is
    /// paused in the ledger, so that nobody who looks there in between gives it.
    pub fn hold(&self, app: AppId, message: MessageId) {
        // First: a session that is offered the message after it was asked to withhold it asks here.
        self.state.held.hold(app, message);
        self.state.registry.of_app(app).iter().for_each(|session| session.withhold(message));
    }

    /// Lets a message go, after the ledger says that its campaign goes on, or is over: who is connected looks there.
    pub fn release(&self, app: AppId, message: MessageId) {
        // First: a session that looks again leaves out what is held.
        self.state.held.release(app, message);
        self.state.registry.of_app(app).iter().for_each(|session| session.look_again());
    }

    /// Lets everybody who is connected look into the ledger: something may be there that nobody told of.
    pub fn look_again(&self) {
        self.state.registry.all().iter().for_each(|session| session.look_again());
    }

    /// Ends the session of a device that may connect no more.
    pub fn cut_off(&self, device: DeviceId) {
        if let Some(session) = self.state.registry.get(device) {
            session.close(Closed::CutOff);
        }
    }

    /// Ends all sessions of an app that is removed.
    pub fn cut_off_app(&self, app: AppId) {
        self.state.registry.of_app(app).iter().for_each(|session| session.close(Closed::CutOff));
    }

    /// Ends all sessions, also those that are opened later: the server stops.
    pub fn stop(&self) {
        // Before the sessions are listed: one that is opened in between is either listed or sees the flag.
        self.state.is_stopping.store(true, Ordering::SeqCst);
        self.state.registry.all().iter().for_each(|session| session.close(Closed::Stopping));
    }

    /// Ends all that runs here: nothing of it holds the store any more then. What is to be written, [`Gateway::flush`] waits for.
    pub async fn close(&self) {
        self.stop();
        // Taken out first, so that the lock is not held while they end.
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.abort();
            let _it_was_aborted = task.await;
        }
    }

    pub(crate) fn state(&self) -> &GatewayState {
        &self.state
    }

    /// Waits until all that devices have confirmed is written.
    pub async fn flush(&self) {
        self.state.receipts.all_written().await;
    }

    /// Returns whether what devices confirm is written in time.
    #[must_use]
    pub fn keeps_up(&self) -> bool {
        self.state.receipts.stalled_for() < RECEIPTS_STALLED_MAX
    }

    /// Begins to wait for a device's word about a message; `None` when enough do.
    #[must_use]
    pub fn wait_for_receipt(&self, identity: DeviceIdentity, message: MessageId) -> Option<ReceiptWait> {
        self.state.waits.begin(identity.device, message)
    }

    /// Returns the counters.
    #[must_use]
    pub fn counts(&self) -> &Arc<GatewayCounts> {
        &self.state.counts
    }

    /// Makes a picture of the counters.
    #[must_use]
    pub fn stats(&self) -> GatewayStats {
        self.state.counts.stats()
    }
}

impl SettledFeed for Gateway {
    fn settled(&self, chunk: SettledChunk) {
        if let Err(full) = self.state.settled.try_send(chunk) {
            // Who is connected looks for itself: that costs a look-up each, and loses nothing.
            // Neither waited for nor thrown away: the pipeline that settles must not stop because devices are slow.
            let chunk = full.into_inner();
            let connected = self.state.registry.connected(&chunk.devices);
            connected.iter().for_each(|session| session.look_again());
        }
    }
}

impl GatewayState {
    /// Returns messages of an app, each of which is `None` when it is gone; those that are not known are read at once.
    pub(crate) async fn messages(
        &self,
        app: AppId,
        ids: &[MessageId],
    ) -> Result<Vec<Option<Arc<Message>>>, StoreError> {
        self.messages.messages(app, ids, async |unknown| self.store.messages(app, unknown).await).await
    }

    /// Looks up what waits for a device: the newest of each collapse key, as many as its window takes. Where the store cannot tell
    /// it waits a moment and leaves it to the next look.
    pub(crate) async fn waiting(&self, session: &SessionState) -> Waiting {
        if let Some(known) = session.next_waiting(self.clock.now()) {
            if let Ok(deliveries) = self.deliveries_of(session.identity().app, known).await {
                return Waiting { deliveries, ..Waiting::default() };
            }
            // What was taken out of it is found by a look at all.
            session.look_again();
        }
        // What the device has confirmed, here or through an earlier connection, must be in the ledger before that is asked.
        self.receipts.written(session.identity().device).await;
        match self.look_up(session).await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::warn!(%error, device = %session.identity().device, "what waits for a device could not be looked up");
                tokio::time::sleep(LOOK_UP_RETRY).await;
                Waiting { has_more: true, ..Waiting::default() }
            }
        }
    }

    /// Reads the messages of deliveries that were found to wait.
    async fn deliveries_of(
        &self,
        app: AppId,
        waiting: Vec<WaitingDelivery>,
    ) -> Result<Vec<PendingMessage>, StoreError> {
        let ids: Vec<MessageId> = waiting.iter().map(|one| one.message).collect();
        let found = self.messages(app, &ids).await?.into_iter().zip(waiting);
        let found =
            found.filter_map(|(message, one)| Some(PendingMessage { message: message?, chunk: one.chunk }));
        Ok(found.collect())
    }

    async fn look_up(&self, session: &SessionState) -> Result<Waiting, StoreError> {
        let DeviceIdentity { app, device } = session.identity();
        self.counts.note_look_up();
        let pending = self.pending.pending(session.identity()).await?;
        let now = self.clock.now();
        if pending.len() > PENDING_MAX_COUNT {
            let deleted = self.drop_all(device, &pending, Reason::TooManyPending).await?;
            // More may have come meanwhile, which the next look finds.
            return Ok(Waiting { deleted, has_more: true, ..Waiting::default() });
        }
        // What is paused is owed and not given; it is looked up when its campaign goes on.
        let pending: Vec<PendingDelivery> = pending.into_iter().filter(|one| !one.is_paused).collect();
        let ids: Vec<MessageId> = pending.iter().map(|one| one.message).collect();
        let found = self.messages(app, &ids).await?.into_iter().zip(pending);
        let there = found.filter_map(|(message, one)| message.map(|message| (message, one)));
        let (messages, chunks): (Vec<Arc<Message>>, Vec<PendingDelivery>) = there.unzip();
        let replaced = replaced(&messages);
        // Written before anything is given: what was replaced counts as that, whatever the device does.
        let older = chunks.iter().zip(&replaced).filter(|(_, replaced)| **replaced);
        let older: Vec<PendingDelivery> = older.map(|(one, _)| *one).collect();
        self.drop_all(device, &older, Reason::ReplacedByNewer).await?;
        let kept = messages.into_iter().zip(chunks).zip(replaced).filter(|(_, replaced)| !replaced);
        let kept = kept.map(|((message, one), _)| PendingMessage { message, chunk: one.chunk });
        let mut kept = kept.filter(|one| is_live(one, now));
        // One more than fits says that more waits.
        let deliveries = kept.by_ref().take(2 * session.window()).collect();
        let rest = kept.map(|one| WaitingDelivery { message: one.message.id, chunk: one.chunk }).collect();
        let backlog = DeliveryBacklog::keep(&self.backlog_room, rest, now).map(Box::new);
        Ok(Waiting { has_more: backlog.is_none(), deliveries, backlog, ..Waiting::default() })
    }

    /// Drops deliveries that the device does not need any more.
    async fn drop_all(
        &self,
        device: DeviceId,
        pending: &[PendingDelivery],
        reason: Reason,
    ) -> Result<usize, StoreError> {
        if pending.is_empty() {
            return Ok(0);
        }
        let kind = ReceiptKind::Dropped(reason);
        let receipts = pending.iter().map(|one| Receipt { chunk: one.chunk, device, kind }).collect();
        let changed = self.store.receive(receipts, self.clock.now()).await?;
        let dropped = changed.iter().filter(|changed| **changed).count();
        self.counts.note_dropped(dropped);
        Ok(dropped)
    }
}
