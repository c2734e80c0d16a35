//! The membership of this server among the nodes of a store: sends heartbeats, removes expired nodes, and follows the events of the others.

mod missed_changes;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use stentor_core::campaign::CampaignState;
use stentor_core::id::{AppId, ChunkId, IdSource, MessageId};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::settled::SettledFeed;
use stentor_core::ports::store::{
    JoiningNode, Membership, NodeEvent, NodeEvents, NodeNotice, NodeStore, SharedStore, StoreError,
};
use stentor_core::time::Timestamp;
use stentor_gateway::{DeviceIdentity, Gateway, SessionClaim};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::clock::uptime;
use crate::config::NodeConfig;
use crate::pipeline::{Dependencies, NodeStanding, Pipeline};
use crate::service::Service;
use missed_changes::MissedChanges;

/// Minimum time between two reads of the event feed, at any rate of notifications.
const BREATH: Duration = Duration::from_millis(50);
/// Look intervals without a successful read of the feed after which the cache of API keys is dropped.
const UNHEARD_MAX_INTERVALS: u32 = 3;
/// Settled chunks read in one query.
const SETTLED_MAX_COUNT: usize = 64;
/// Heartbeats sent within the time after which the others remove a silent node.
const BEATS_PER_PATIENCE: u32 = 5;
/// Most parked lanes that this node reports to the others.
const PARKED_MAX_COUNT: usize = 1_000;

/// The identity of a server among the nodes.
#[derive(Clone)]
pub(super) struct NodeIdentity {
    pub(super) joining: JoiningNode,
    pub(super) standing: Arc<NodeStanding>,
    /// Time without a heartbeat after which a node is considered dead.
    pub(super) patience: Duration,
    /// Interval at which the event feed is read even without a notification.
    pub(super) look_interval: Duration,
}

/// A server that has joined the nodes of a store.
pub(super) struct JoinedNode {
    pub(super) identity: NodeIdentity,
    /// The source of numbers that are no other node's.
    pub(super) ids: Arc<IdSource>,
    /// The last event that this node need not receive; `None` where no other node can be.
    pub(super) last_event: Option<u64>,
}

impl NodeIdentity {
    /// Joins the nodes of a store, and begins to give out numbers that are no other's.
    pub(super) async fn join(
        store: &dyn NodeStore,
        clock: &dyn Clock,
        joining: JoiningNode,
        config: NodeConfig,
    ) -> Result<JoinedNode, StoreError> {
        // Read before the call: a heartbeat counts from the time of sending, not of the reply.
        let (asked, patience, look_interval) = (uptime(), config.silence_max(), config.look_interval());
        let membership = store.join(joining.clone(), clock.now()).await?;
        let Membership { instance, id_place, last_event, shown } = membership;
        follow(clock, shown, asked);
        let ids = Arc::new(IdSource::after(instance));
        ids.go_on(instance, id_place);
        let is_shared = id_place.is_some();
        let standing = if is_shared { NodeStanding::among(instance) } else { NodeStanding::alone(instance) };
        if is_shared {
            standing.note_alive(asked, patience, false);
        }
        let identity = Self { joining, standing, patience, look_interval };
        Ok(JoinedNode { identity, ids, last_event: is_shared.then_some(last_event) })
    }
}

/// The link between a server and the other nodes.
pub(super) struct NodeTie {
    identity: NodeIdentity,
    store: Arc<dyn SharedStore>,
    clock: Arc<dyn Clock>,
    ids: Arc<IdSource>,
    pipeline: Arc<Pipeline>,
    service: Arc<Service>,
    gateway: Gateway,
    missed: MissedChanges,
    /// The last event received; `None` if the store cannot be shared.
    last_event: Option<u64>,
}

impl NodeTie {
    /// Ties a server that has joined.
    pub(super) fn new(
        joined: JoinedNode,
        dependencies: &Dependencies,
        pipeline: Arc<Pipeline>,
        service: Arc<Service>,
        gateway: Gateway,
    ) -> Self {
        let JoinedNode { identity, ids, last_event } = joined;
        let (store, clock) = (dependencies.store.clone(), dependencies.clock.clone());
        let missed = MissedChanges::default();
        Self { identity, store, clock, ids, pipeline, service, gateway, missed, last_event }
    }

    /// Runs the link until the task is aborted.
    pub(super) fn spawn(self: Arc<Self>) -> AbortOnDropHandle<()> {
        let (pipeline, until) = (self.pipeline.clone(), CancellationToken::new());
        let held = async move { pipeline.watched("tie to other servers", until, self.hold()).await };
        AbortOnDropHandle::new(tokio::spawn(held))
    }

    async fn hold(&self) {
        let Some(last_event) = self.last_event else { return std::future::pending().await };
        let hearing = async { tokio::join!(self.listen(last_event), self.make_up()) };
        let reporting = self.report_parked();
        let passing = async { tokio::join!(self.pass_arrivals(), self.pass_events(), self.pass_claims()) };
        tokio::join!(self.beat(), hearing, passing, reporting);
    }

    /// Announces the departure of this node, so that the others need not wait for its heartbeat to expire.
    pub(super) async fn part(&self) {
        if self.last_event.is_none() {
            return;
        }
        if let Err(error) = self.store.leave(self.identity.standing.instance(), self.clock.now()).await {
            tracing::warn!(%error, "this server could not announce its end: the other servers wait until they take it for dead");
        }
    }

    async fn beat(&self) {
        let NodeIdentity { standing, patience, .. } = &self.identity;
        let interval = *patience / BEATS_PER_PATIENCE;
        // A node that was itself away, or has just joined, removes no others: after a pause of the database all of them seem silent.
        let (mut judges_from, mut heard) = (uptime() + *patience, uptime());
        loop {
            // Before the call, as in `join`: a slow reply must not extend this node's own lease.
            let asked = uptime();
            if asked.saturating_sub(heard) > *patience / 2 {
                judges_from = asked + *patience;
            }
            let judges = (asked >= judges_from).then_some(*patience);
            match self.store.beat(standing.instance(), judges, self.clock.now()).await {
                Ok(heartbeat) if heartbeat.is_known => {
                    heard = asked;
                    follow(&*self.clock, heartbeat.shown, asked);
                    standing.note_alive(asked, *patience, heartbeat.is_first);
                    self.pipeline.publish_released(&heartbeat.released).await;
                }
                Ok(_) => self.join_again().await,
                Err(error) => tracing::warn!(%error, "the store did not take a sign of life"),
            }
            tokio::time::sleep(interval).await;
        }
    }

    /// Joins again after the others removed this node. Its leases belong to the others by now, and outcomes that it still receives for them
    /// are void.
    async fn join_again(&self) {
        let NodeIdentity { joining, standing, patience, .. } = &self.identity;
        let asked = uptime();
        match self.store.join(joining.clone(), self.clock.now()).await {
            Ok(membership) => {
                tracing::error!(
                    instance = standing.instance(),
                    "this server gave no sign of life for too long: the other servers have taken over its deliveries"
                );
                follow(&*self.clock, membership.shown, asked);
                // First: another node may hold its former range of ids by now.
                self.ids.go_on(membership.instance, membership.id_place);
                standing.renew(membership.instance);
                standing.note_alive(asked, *patience, false);
                // It received no events while it was not a member.
                self.service.forget_keys();
                self.missed.note_all();
            }
            Err(error) => {
                tracing::error!(%error, "the other servers removed this one, and it could not join them again");
            }
        }
    }

    async fn listen(&self, mut last_event: u64) {
        let (mut last_chunk, mut heard) = (None, Instant::now());
        let look_interval = self.identity.look_interval;
        let unheard_max = look_interval * UNHEARD_MAX_INTERVALS;
        let forget = || self.service.forget_keys();
        loop {
            let (asked, mut has_more) = (Instant::now(), false);
            // Not cancelled: the next read would have to wait behind it.
            match lapsing(self.store.events_after(last_event), heard + unheard_max, look_interval, forget)
                .await
            {
                Ok(found) => {
                    // The time of the call counts: later events are not in the reply.
                    (heard, last_event, has_more) = (asked, found.last_event, found.has_more);
                    lapsing(self.take(&found, last_chunk), heard + unheard_max, look_interval, forget).await;
                    last_chunk = Some(found.last_chunk);
                }
                Err(error) => tracing::warn!(%error, "the events of other servers cannot be read"),
            }
            if heard.elapsed() > unheard_max {
                forget();
            }
            if has_more {
                continue;
            }
            tokio::select! {
                () = self.store.changed() => tokio::time::sleep(BREATH.min(look_interval)).await,
                () = tokio::time::sleep(look_interval) => {}
            }
        }
    }

    async fn take(&self, found: &NodeEvents, known: Option<ChunkId>) {
        if found.is_gapped {
            tracing::warn!(
                "some events of other servers are already deleted: this server reads everything again"
            );
            self.service.forget_keys();
            self.missed.note_all();
        }
        // Before the other events: until then a removed key is still accepted.
        if found.events.iter().any(is_of_keys) {
            self.learn().await;
        }
        let mut settled = Vec::new();
        for event in &found.events {
            match event {
                NodeEvent::Settled(chunk) => settled.push(*chunk),
                event => self.hear(event).await,
            }
        }
        self.bring(&settled).await;
        // Chunks found by the first read are left to the janitor.
        if let Some(known) = known.filter(|known| found.last_chunk > *known) {
            self.pipeline.look_for_chunks(known).await;
        }
        self.pipeline.look_for_work(found.has_producers).await;
    }

    async fn hear(&self, event: &NodeEvent) {
        match event {
            // `take` has handled these together.
            NodeEvent::Keys | NodeEvent::Settled(_) => {}
            NodeEvent::Credential(app, provider) => self.pipeline.changed(*app, *provider),
            NodeEvent::Webhooks => self.service.webhooks_changed().notify_one(),
            NodeEvent::Queued => self.pipeline.look_for_all_chunks(),
            NodeEvent::Acted(app, message) => self.hold_or_release(*app, *message).await,
            NodeEvent::CutOff(_, Some(device)) => self.gateway.cut_off(*device),
            NodeEvent::CutOff(app, None) => self.gateway.cut_off_app(*app),
            NodeEvent::Connected(app, device, opened_at, mark) => {
                let identity = DeviceIdentity { app: *app, device: *device };
                self.gateway.hear_claim(&SessionClaim { identity, opened_at: *opened_at, mark: *mark });
            }
            NodeEvent::Upstream(app) => self.service.upstream_broker().arrived(*app),
            NodeEvent::Parked(app, provider, until, reason) => {
                self.pipeline.park((*app, *provider), *until, *reason);
            }
        }
    }

    /// Clears the cache of API keys and reloads the credentials of all apps.
    async fn learn(&self) {
        self.service.forget_keys();
        if let Err(problem) = self.service.reload_credentials().await {
            tracing::warn!(%problem, "the credentials of the apps cannot be read");
        }
    }

    /// Delivers messages settled by other nodes to devices that are connected here.
    async fn bring(&self, chunks: &[ChunkId]) {
        for some in chunks.chunks(SETTLED_MAX_COUNT) {
            // A device that connects later reads the ledger, which holds all of it.
            if !self.gateway.has_sessions() {
                return;
            }
            match self.store.settled_chunks(some).await {
                Ok(settled) => settled.into_iter().for_each(|chunk| self.gateway.settled(chunk)),
                Err(error) => {
                    tracing::warn!(%error, "the chunks that another server settled cannot be read");
                    self.gateway.look_again();
                }
            }
        }
    }

    /// Holds a message if its campaign is paused, and releases it otherwise. Repeats this until the state stays the same, because an owner
    /// may pause or resume the campaign here between the read and the change.
    async fn hold_or_release(&self, app: AppId, message: MessageId) {
        let mut applied = None;
        loop {
            let seen = self.is_paused(app, message).await;
            match seen {
                None => return self.missed.note_acted(app, message),
                Some(_) if seen == applied => return,
                Some(true) => self.gateway.hold(app, message),
                Some(false) => {
                    self.gateway.release(app, message);
                    self.pipeline.look_for_all_chunks();
                }
            }
            applied = seen;
        }
    }

    /// Returns whether a message's campaign is paused; `None` if the ledger cannot be read now.
    async fn is_paused(&self, app: AppId, message: MessageId) -> Option<bool> {
        match self.store.ledger(app, message.into()).await {
            Ok(ledger) => Some(ledger.campaign.state == CampaignState::Paused),
            Err(StoreError::NotFound(_)) => Some(false),
            Err(error) => {
                tracing::warn!(%error, %message, "the state of a campaign cannot be read");
                None
            }
        }
    }

    /// Catches up on missed or unread changes until none is left.
    async fn make_up(&self) {
        loop {
            let missed = self.missed.next().await;
            for (app, message) in missed.acted {
                self.hold_or_release(app, message).await;
            }
            if missed.all {
                self.refresh().await;
            }
            // Changes that could still not be read are noted again by now; they are not retried at once.
            tokio::time::sleep(self.identity.look_interval).await;
        }
    }

    /// Reloads everything that other nodes may have changed.
    async fn refresh(&self) {
        self.learn().await;
        self.pipeline.reload().await;
        self.pipeline.look_for_all_chunks();
        self.service.webhooks_changed().notify_one();
        self.service.upstream_broker().arrived_everywhere();
        // If a device has moved to another node in the meantime, that node answers with its later claim.
        self.gateway.claim_all();
        for (app, message) in self.gateway.held() {
            self.hold_or_release(app, message).await;
        }
        for (app, message) in self.gateway.next_messages() {
            match self.is_paused(app, message).await {
                Some(true) => self.hold_or_release(app, message).await,
                Some(false) => {}
                None => self.missed.note_acted(app, message),
            }
        }
        if let Err(error) = self.gateway.check_sessions().await {
            tracing::warn!(%error, "the rights of connected devices cannot be read");
            self.missed.note_all();
        }
        // After the holds: a session that read the ledger earlier would receive paused messages.
        self.gateway.look_again();
    }

    /// Notifies the other nodes of apps that have new upstream messages.
    async fn pass_arrivals(&self) {
        let mut arrivals: Receiver<AppId> = self.gateway.upstream_arrivals();
        loop {
            // One event for each app, however many messages arrived during the previous notification.
            let mut apps = BTreeSet::new();
            match arrivals.recv().await {
                Ok(app) => apps.extend([app]),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
            while let Ok(app) = arrivals.try_recv() {
                apps.insert(app);
            }
            for app in apps {
                self.publish_event(NodeEvent::Upstream(app)).await;
            }
        }
    }

    /// Notifies the other nodes of devices that connected here, so that they end older sessions of these devices.
    async fn pass_claims(&self) {
        loop {
            let claims = self.gateway.next_claims().await;
            // Concurrently: the store writes them together.
            let notices = claims.iter().map(|claim| NodeNotice::Event(connected(claim)));
            let told = join_all(notices.map(|notice| self.store.publish(notice))).await;
            let failed = claims.into_iter().zip(&told).filter(|(_, told)| told.is_err());
            let failed: Vec<SessionClaim> = failed.map(|(claim, _)| claim).collect();
            if let Some(error) = told.iter().find_map(|told| told.as_ref().err()) {
                tracing::warn!(%error, "the other servers could not yet be notified of devices that connected here");
                self.gateway.claim_again(&failed);
                tokio::time::sleep(self.identity.look_interval).await;
            }
        }
    }

    /// Publishes the events of this node's pipeline to the other nodes.
    async fn pass_events(&self) {
        while let Some(event) = self.pipeline.next_event().await {
            self.publish_event(event).await;
        }
    }

    /// Reports the parked lanes of this node to the others when they change, at most once per heartbeat interval.
    async fn report_parked(&self) {
        let NodeIdentity { standing, patience, .. } = &self.identity;
        let mut reported = (standing.instance(), Vec::new());
        loop {
            tokio::time::sleep(*patience / BEATS_PER_PATIENCE).await;
            let instance = standing.instance();
            if instance != reported.0 {
                // The earlier report vanished together with its instance.
                reported = (instance, Vec::new());
            }
            let lanes = self.pipeline.parked_lanes(PARKED_MAX_COUNT);
            if lanes == reported.1 {
                continue;
            }
            let report = NodeNotice::Parked { instance, lanes: lanes.clone() };
            match self.store.publish(report).await {
                Ok(()) => reported.1 = lanes,
                Err(error) => {
                    tracing::warn!(%error, "the parked lanes of this server could not be reported to the other servers")
                }
            }
        }
    }

    async fn publish_event(&self, event: NodeEvent) {
        if let Err(error) = self.store.publish(NodeNotice::Event(event)).await {
            tracing::warn!(%error, "an event could not be published to the other servers");
        }
    }
}

/// Returns true if the event invalidates cached keys or credentials.
const fn is_of_keys(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::Keys | NodeEvent::Credential(..))
}

/// Returns the event that announces a connected device to the other nodes.
const fn connected(claim: &SessionClaim) -> NodeEvent {
    let SessionClaim { identity: DeviceIdentity { app, device }, opened_at, mark } = *claim;
    NodeEvent::Connected(app, device, opened_at, mark)
}

/// Adjusts the clock to the time that the store's clock showed after the call at `asked`.
fn follow(clock: &dyn Clock, shown: Option<Timestamp>, asked: Duration) {
    if let Some(shown) = shown {
        clock.follow(shown, uptime().saturating_sub(asked));
    }
}

/// Runs a long operation, and calls `lapse` at the given instant and at each interval after it until the operation ends.
async fn lapsing<T>(
    work: impl Future<Output = T>,
    mut at: Instant,
    interval: Duration,
    lapse: impl Fn(),
) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep_until(at) => {
                lapse();
                at = Instant::now() + interval;
            }
        }
    }
}

#[cfg(test)]
mod tests;
