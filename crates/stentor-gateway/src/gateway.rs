//! The gateway as a whole: logins, sessions and waiting messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;
use stentor_core::id::{AppId, DeviceId, IdSource, MessageId};
use stentor_core::message::Message;
use stentor_core::outcome::Reason;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::settled::{SettledChunk, SettledFeed};
use stentor_core::ports::store::{
    Channel, GatewayStore, PendingDelivery, Receipt, ReceiptKind, ReceiptStore, StoreError,
};
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_util::task::AbortOnDropHandle;

use crate::accepted_messages::AcceptedMessages;
use crate::backlog::{BacklogRoom, DeliveryBacklog, WaitingDelivery};
use crate::batched_reads::BatchedReads;
use crate::collapse::replaced;
use crate::delivery::{ChunkDistribution, PendingMessage};
use crate::device_changes::DeviceChanges;
use crate::device_reads::{ChannelRead, HolderRead, PendingRead};
use crate::device_turns::DeviceTurns;
use crate::doubts::Doubts;
use crate::held_messages::HeldMessages;
use crate::identity::{DeviceIdentity, GatewayKey, app_of};
use crate::limits::{
    ARRIVALS_MAX_COUNT, LOOK_UP_RETRY, PENDING_MAX_COUNT, RECEIPTS_STALLED_MAX, SETTLED_CHUNKS_MAX_COUNT,
};
use crate::mcs::McsAgentRegistry;
use crate::parked_deliveries::ParkedDeliveries;
use crate::receipt_waits::{ReceiptWait, ReceiptWaits};
use crate::receipts::{ReceiptWriter, Receipts};
use crate::registry::SessionRegistry;
use crate::session::DeviceSession;
use crate::session_claims::SessionClaims;
use crate::session_outcomes::SessionOutcomes;
use crate::session_state::{Closed, SessionState, Waiting, is_live};
use crate::silence::SilenceClock;
use crate::stats::{DeviceProtocol, GatewayCounts, GatewayStats};

/// State shared by the sessions.
pub(crate) struct GatewayState {
    pub(crate) store: Arc<dyn GatewayStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registry: Arc<SessionRegistry>,
    pub(crate) receipts: Receipts,
    waits: Arc<ReceiptWaits>,
    pending: BatchedReads<PendingRead>,
    pub(crate) holders: BatchedReads<HolderRead>,
    channels: BatchedReads<ChannelRead>,
    /// Counts the devices that were cut off, to detect changes of a device between its login and its session.
    cut_offs: AtomicU32,
    pub(crate) counts: Arc<GatewayCounts>,
    pub(crate) held: Arc<HeldMessages>,
    pub(crate) silences: Arc<SilenceClock>,
    pub(crate) doubts: Arc<Doubts>,
    /// True once the server stops; new sessions are closed.
    is_stopping: AtomicBool,
    key: GatewayKey,
    messages: Arc<AcceptedMessages>,
    settled: mpsc::Sender<SettledChunk>,
    ids: Arc<IdSource>,
    arrivals: broadcast::Sender<AppId>,
    mcs_agents: McsAgentRegistry,
    /// Waiting messages of devices that were connected a moment ago.
    pub(crate) parked: Arc<ParkedDeliveries>,
    /// Limit of waiting deliveries beyond the windows of connected devices.
    backlog_room: Arc<BacklogRoom>,
    /// Counts of the changes that devices have made today.
    pub(crate) device_changes: DeviceChanges,
    /// Locks for the session records of MQTT.
    pub(crate) session_records: DeviceTurns,
    pub(crate) session_outcomes: SessionOutcomes,
    /// Devices connected here, to be announced to the other servers.
    pub(crate) claims: SessionClaims,
}

/// The push service for directly connected devices; clones share it.
#[derive(Clone)]
pub struct Gateway {
    state: Arc<GatewayState>,
    tasks: Arc<Mutex<Vec<AbortOnDropHandle<()>>>>,
}

impl Gateway {
    /// Starts it over a ledger, with the numbers for messages of devices and the key of their secrets; the runtime must be running.
    #[must_use]
    pub fn start(
        store: Arc<dyn GatewayStore>,
        clock: Arc<dyn Clock>,
        ids: Arc<IdSource>,
        key: GatewayKey,
    ) -> Self {
        let (registry, counts) = (Arc::new(SessionRegistry::default()), Arc::new(GatewayCounts::default()));
        let (settled, inbox) = mpsc::channel(SETTLED_CHUNKS_MAX_COUNT);
        let held = Arc::new(HeldMessages::default());
        let messages = Arc::new(AcceptedMessages::default());
        let parked = Arc::<ParkedDeliveries>::default();
        let distribution = ChunkDistribution {
            registry: Arc::clone(&registry),
            parked: Arc::clone(&parked),
            held: Arc::clone(&held),
            messages: Arc::clone(&messages),
        };
        let giving = AbortOnDropHandle::new(tokio::spawn(distribution.run(inbox)));
        let doubts = Arc::new(Doubts::new());
        let (arrivals, _) = broadcast::channel(ARRIVALS_MAX_COUNT);
        let waits = Arc::new(ReceiptWaits::default());
        let (receipts, writer) = Receipts::start(ReceiptWriter {
            store: store.clone(),
            clock: Arc::clone(&clock),
            ids: Arc::clone(&ids),
            arrivals: arrivals.clone(),
            counts: Arc::clone(&counts),
            doubts: Arc::clone(&doubts),
            waits: Arc::clone(&waits),
        });
        let ledger: Arc<dyn ReceiptStore> = Arc::clone(&store) as _;
        let (pending, pending_readers) =
            BatchedReads::start(PendingRead { store: ledger, clock: Arc::clone(&clock) });
        let (holders, holder_readers) = BatchedReads::start(HolderRead { store: Arc::clone(&store) });
        let (channels, channel_readers) = BatchedReads::start(ChannelRead { store: Arc::clone(&store) });
        let readers = [pending_readers, holder_readers, channel_readers].into_iter().flatten();
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
            holders,
            channels,
            cut_offs: AtomicU32::default(),
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

    /// Limits the devices of each app that may be connected here, over all protocols.
    pub fn limit_sessions_per_app(&self, max_count: usize) {
        self.state.registry.limit_per_app(max_count);
    }

    /// Returns the key from which the secrets of devices are derived.
    #[must_use]
    pub fn key(&self) -> &GatewayKey {
        &self.state.key
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn GatewayStore> {
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

    /// Returns the number of devices that were cut off; it starts again after 2^32.
    pub(crate) fn cut_offs(&self) -> u32 {
        self.state.cut_offs.load(Ordering::SeqCst)
    }

    /// Returns the app named in a token, without a look-up; `None` if the text is no token.
    #[must_use]
    pub fn app_of_token(token: &str) -> Option<AppId> {
        app_of(token)
    }

    /// Lists the channels of a program, by name.
    pub(crate) async fn channels(&self, agent: String) -> Result<Vec<Channel>, StoreError> {
        self.state.channels.find(agent).await
    }

    /// Opens a session of a device; an older one of the same device ends. `window` is the limit of its unconfirmed deliveries.
    #[must_use]
    pub fn open(&self, identity: DeviceIdentity, protocol: DeviceProtocol, window: usize) -> DeviceSession {
        self.open_session(SessionState::new(identity, protocol, window, self.clock().now(), None))
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
        self.open_session(SessionState::new(identity, protocol, window, self.clock().now(), Some(wake)))
    }

    fn open_session(&self, state: SessionState) -> DeviceSession {
        let state = Arc::new(state);
        let session = DeviceSession::open(Arc::clone(&state), Arc::clone(&self.state));
        // After it is registered, because announcements of all devices start from the registry.
        self.state.claims.note(&state);
        // Checked after the session is visible: either `stop` has found it, or the flag is seen here.
        if self.state.is_stopping.load(Ordering::SeqCst) {
            session.close(Closed::Stopping);
        }
        session
    }

    /// Returns true if a device is connected to this process.
    #[must_use]
    pub fn is_connected(&self, device: DeviceId) -> bool {
        self.state.registry.get(device).is_some()
    }

    /// Holds a message of an app back: no device gets it until its release. Must be called before its campaign is paused in the ledger, so
    /// that no session that reads the ledger in between hands it out.
    pub fn hold(&self, app: AppId, message: MessageId) {
        // First, because a session that is offered the message after `withhold` checks this set.
        self.state.held.hold(app, message);
        self.state.registry.of_app(app).iter().for_each(|session| session.withhold(message));
    }

    /// Releases a message, after the ledger shows its campaign as resumed or ended. Connected sessions then read the ledger.
    pub fn release(&self, app: AppId, message: MessageId) {
        // First, because a session that reads the ledger again skips held messages.
        self.state.held.release(app, message);
        self.state.registry.of_app(app).iter().for_each(|session| session.look_again());
    }

    /// Makes all connected sessions read the ledger, which may hold deliveries that were never announced.
    pub fn look_again(&self) {
        self.state.registry.all().iter().for_each(|session| session.look_again());
    }

    /// Ends the session of a device that may no longer connect, or has other keys. The change must be in the store.
    pub fn cut_off(&self, device: DeviceId) {
        // Before the look: a session opened after it finds another count, and reads the keys again.
        self.state.cut_offs.fetch_add(1, Ordering::SeqCst);
        if let Some(session) = self.state.registry.get(device) {
            session.close(Closed::CutOff);
        }
    }

    /// Ends all sessions of a removed app.
    pub fn cut_off_app(&self, app: AppId) {
        self.state.cut_offs.fetch_add(1, Ordering::SeqCst);
        self.state.registry.of_app(app).iter().for_each(|session| session.close(Closed::CutOff));
    }

    /// Ends all sessions, including those opened later, because the server stops.
    pub fn stop(&self) {
        // Set before the sessions are listed: a session opened in between is either listed or sees the flag.
        self.state.is_stopping.store(true, Ordering::SeqCst);
        self.state.registry.all().iter().for_each(|session| session.close(Closed::Stopping));
    }

    /// Ends all tasks of the gateway, so that none of them holds the store. It does not wait for pending receipts; [`Gateway::flush`] does.
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

    /// Waits until all receipts of devices are written.
    pub async fn flush(&self) {
        self.state.receipts.all_written().await;
    }

    /// Returns true if receipts are written in time.
    #[must_use]
    pub fn keeps_up(&self) -> bool {
        self.state.receipts.stalled_for() < RECEIPTS_STALLED_MAX
    }

    /// Begins to wait for a device's receipt of a message; `None` if too many callers wait.
    #[must_use]
    pub fn wait_for_receipt(&self, identity: DeviceIdentity, message: MessageId) -> Option<ReceiptWait> {
        self.state.waits.begin(identity.device, message)
    }

    /// Returns the counters.
    #[must_use]
    pub fn counts(&self) -> &Arc<GatewayCounts> {
        &self.state.counts
    }

    /// Returns a snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> GatewayStats {
        self.state.counts.stats()
    }
}

impl SettledFeed for Gateway {
    fn settled(&self, chunk: SettledChunk) {
        if let Err(full) = self.state.settled.try_send(chunk) {
            // Connected devices then look for themselves, which costs a look-up each and loses nothing. The chunk is neither awaited nor
            // dropped: the settling pipeline must not stop because devices are slow.
            let chunk = full.into_inner();
            let connected = self.state.registry.connected(&chunk.devices);
            connected.iter().for_each(|session| session.look_again());
        }
    }
}

impl GatewayState {
    /// Lists the waiting deliveries of a device, at most one more than the limit.
    pub(crate) async fn pending_of(&self, of: DeviceIdentity) -> Result<Vec<PendingDelivery>, StoreError> {
        self.pending.find((of.app, of.device)).await
    }

    /// Returns messages of an app; `None` for deleted ones. Those that are not cached are read together.
    pub(crate) async fn messages(
        &self,
        app: AppId,
        ids: &[MessageId],
    ) -> Result<Vec<Option<Arc<Message>>>, StoreError> {
        self.messages.messages(app, ids, async |unknown| self.store.messages(app, unknown).await).await
    }

    /// Looks up the waiting deliveries of a device: the newest of each collapse key, as many as its window takes. If the store fails, it
    /// waits a moment and leaves the rest to the next look-up.
    pub(crate) async fn waiting(&self, session: &SessionState) -> Waiting {
        if let Some(known) = session.next_waiting(self.clock.now()) {
            if let Ok(deliveries) = self.deliveries_of(session.identity().app, known).await {
                return Waiting { deliveries, ..Waiting::default() };
            }
            // The deliveries taken from the backlog are found again by a full look-up.
            session.look_again();
        }
        // The device's confirmations, from this or an earlier connection, must be in the ledger before it is read.
        self.receipts.written(session.identity().device).await;
        match self.look_up(session).await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::warn!(%error, device = %session.identity().device, "the deliveries that wait for a device could not be read");
                tokio::time::sleep(LOOK_UP_RETRY).await;
                Waiting { has_more: true, ..Waiting::default() }
            }
        }
    }

    /// Reads the messages of waiting deliveries.
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
        let pending = self.pending_of(session.identity()).await?;
        let now = self.clock.now();
        if pending.len() > PENDING_MAX_COUNT {
            let deleted = self.drop_all(device, &pending, Reason::TooManyPending).await?;
            // More may have come in between, which the next look-up finds.
            return Ok(Waiting { deleted, has_more: true, ..Waiting::default() });
        }
        // Deliveries of paused campaigns are skipped; they are looked up when the campaign resumes.
        let pending: Vec<PendingDelivery> = pending.into_iter().filter(|one| !one.is_paused).collect();
        let ids: Vec<MessageId> = pending.iter().map(|one| one.message).collect();
        let found = self.messages(app, &ids).await?.into_iter().zip(pending);
        let there = found.filter_map(|(message, one)| message.map(|message| (message, one)));
        let (messages, chunks): (Vec<Arc<Message>>, Vec<PendingDelivery>) = there.unzip();
        let replaced = replaced(&messages);
        // Written before any delivery: replaced messages count as replaced, independent of the device's behaviour.
        let older = chunks.iter().zip(&replaced).filter(|(_, replaced)| **replaced);
        let older: Vec<PendingDelivery> = older.map(|(one, _)| *one).collect();
        self.drop_all(device, &older, Reason::ReplacedByNewer).await?;
        let live = messages.into_iter().zip(chunks).zip(replaced).filter(|(_, replaced)| !replaced);
        let live = live.map(|((message, one), _)| PendingMessage { message, chunk: one.chunk });
        let mut live = live.filter(|one| is_live(one, now));
        // More deliveries than fit indicate that more are waiting.
        let deliveries = live.by_ref().take(2 * session.window()).collect();
        let rest = live.map(|one| WaitingDelivery { message: one.message.id, chunk: one.chunk }).collect();
        let backlog = DeliveryBacklog::keep(&self.backlog_room, rest, now).map(Box::new);
        Ok(Waiting { has_more: backlog.is_none(), deliveries, backlog, ..Waiting::default() })
    }

    /// Drops deliveries that the device no longer needs.
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
