//! Moves messages: from the store through the queue to the providers, and the outcomes back.
//!
//! [`Pipeline::start`] recovers what an earlier process left, then runs until drained: the scheduler fires what is due,
//! producers expand audiences into chunks, a dispatcher of consumers for each provider kind and class sends them, settlers write
//! what came of them, the janitor puts right what went wrong. What outcomes mean is decided in [`settle`], when
//! schedules fire in [`calendar`]; both are pure. Nothing here is the truth: every task may die at any moment, and the
//! store tells the next process where to go on. The supervisor notices a part that dies, and ends the pipeline.

mod admission;
mod attempt;
mod audiences;
mod backlog;
mod budget;
pub mod calendar;
mod clock_jump;
mod clock_step;
pub mod config;
mod consumer;
mod consumer_pool;
mod dispatcher;
mod due_index;
mod janitor;
mod lease_table;
mod load;
mod node_standing;
mod producer;
mod provider_table;
mod quota_draws;
mod republishing;
mod roles;
mod scheduler;
pub mod settle;
mod settler;
mod settler_inbox;
mod shared;
mod starter;
pub mod stats;
mod store_latency;
mod store_retry;
mod supervisor;
mod window;

use std::collections::HashSet;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, IdSource, instant_of};
use stentor_core::outcome::Reason;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::settled::SettledFeed;
use stentor_core::ports::store::{NodeEvent, ParkedLane, Recovery, Store, StoreError};
use stentor_core::quota::Level;
use stentor_core::time::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use admission::FullLane;
pub use backlog::{AcceptGuard, Backlog};
pub use config::PipelineConfig;
pub use node_standing::NodeStanding;
pub use provider_table::ProviderFactory;
pub use roles::{NodeRole, NodeRoles};
pub use stats::PipelineStats;
pub use supervisor::Failure;

use shared::PipelineContext;
pub(crate) use supervisor::Supervisor;

/// Settlements that may wait for the settler, in chunks; consumers wait beyond.
const SETTLER_INBOX_MAX_CHUNKS: usize = 1_024;
/// How long a drain goes on writing after its deadline.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// What the pipeline needs from outside.
pub struct Deps {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The transport of chunk ids.
    pub queue: Arc<dyn Queue>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Numbers for the messages of schedules.
    pub ids: Arc<IdSource>,
    /// Builds providers from credentials.
    pub factory: Arc<dyn ProviderFactory>,
    /// Where audiences are moved; with all the rest when `None`.
    pub bulk: Option<Handle>,
    /// Under which number this start of the server leases, never that of an earlier one, and whether it may.
    pub standing: Arc<NodeStanding>,
    /// What it does.
    pub roles: NodeRoles,
    /// Whether the queue is one that other nodes use as well.
    pub shares_queue: bool,
    /// Where it tells what other nodes must know of.
    pub event_sender: Option<mpsc::Sender<NodeEvent>>,
    /// The file in which quotas survive a restart; `None` to begin them anew.
    pub levels: Option<PathBuf>,
    /// Brings what was settled to devices that are connected to us.
    pub settled_feed: Option<Arc<dyn SettledFeed>>,
}

/// The running pipeline. Dropping it is a crash: what was in flight is recovered by the next one.
pub struct Pipeline {
    shared: Arc<PipelineContext>,
    tasks: Mutex<Tasks>,
    settler_stop: CancellationToken,
    /// Where audiences are moved.
    bulk: Handle,
}

/// What it runs, until it is drained.
#[derive(Default)]
struct Tasks {
    movers: JoinSet<()>,
    settlers: JoinSet<()>,
}

impl Pipeline {
    /// Takes over what dead processes left leased and starts moving; fails only if the store cannot tell.
    pub async fn start(deps: Deps, config: PipelineConfig) -> Result<Self, StoreError> {
        // Before the recovery, which notes the present.
        let known =
            Some(instant_of(deps.store.last_id().await?)).filter(|known| *known > Timestamp::default());
        let known = known.unwrap_or_else(|| deps.clock.now());
        let (recovery, released) = deps.store.recover(deps.standing.instance(), deps.clock.now()).await?;
        if recovery.chunks > 0 {
            let Recovery { chunks, deliveries } = recovery;
            tracing::warn!(chunks, deliveries, "recovered what another process had left unsettled");
        }
        let bulk = deps.bulk.clone().unwrap_or_else(Handle::current);
        let (settlers, inboxes) = settler_inbox::inboxes(SETTLER_INBOX_MAX_CHUNKS);
        let shared = Arc::new(PipelineContext::new(deps, config, (recovery, known), settlers));
        let settler_stop = CancellationToken::new();
        let mut pipeline = Self { shared, tasks: Mutex::default(), settler_stop, bulk };
        // Before anything leases from it.
        pipeline.prepare_queue(&released).await;
        // Before the movers: what they hand over must find somebody who writes.
        pipeline.start_settlers(inboxes);
        pipeline.start_movers();
        Ok(pipeline)
    }

    /// Frees the queue of what a dead process had leased from it, which would wait for its lease to run out. One that is this
    /// process's own is filled anew; one that others use keeps what they have put in and leased.
    async fn prepare_queue(&self, released: &[Ticket]) {
        if self.shared.shares_queue {
            return self.publish_released(released).await;
        }
        if let Err(error) = self.shared.queue.clear().await {
            tracing::warn!(%error, "emptying the queue failed; what was leased waits for its lease to run out");
        }
    }

    /// Starts what goes on to the last, so that all outcomes are written.
    fn start_settlers(&mut self, inboxes: settler_inbox::Inboxes) {
        for inbox in inboxes {
            let (shared, stop, home) = (self.shared.clone(), self.settler_stop.clone(), self.home(inbox.0));
            let work = settler::run(shared.clone(), inbox, stop.clone());
            self.tasks()
                .settlers
                .spawn_on(async move { shared.supervisor.lasting("settler", stop, work).await }, &home);
        }
        let (shared, stop) = (self.shared.clone(), self.settler_stop.clone());
        self.tasks().settlers.spawn(async move {
            let work = janitor::keep_leases(&shared, stop.clone());
            shared.supervisor.lasting("lease keeper", stop, work).await;
        });
        let (shared, stop) = (self.shared.clone(), self.settler_stop.clone());
        self.tasks().settlers.spawn(async move {
            let store = shared.supervisor.guarding("store's writer", stop.clone(), shared.store.broken());
            let queue = shared.supervisor.guarding("queue's writer", stop, shared.queue.broken());
            tokio::join!(store, queue);
        });
    }

    /// Starts what ends when the drain begins.
    fn start_movers(&mut self) {
        let roles = self.shared.roles.clone();
        if roles.has(NodeRole::Consumer) {
            self.start_consumers();
        }
        if roles.has(NodeRole::Producer) {
            self.start_mover("producers", TrafficClass::Bulk, producer::run(self.shared.clone()));
        }
        if roles.has(NodeRole::Scheduler) {
            self.start_mover("starter", TrafficClass::Urgent, starter::run(self.shared.clone()));
            self.start_mover("scheduler", TrafficClass::Urgent, scheduler::run(self.shared.clone()));
        }
        self.start_mover("janitor", TrafficClass::Urgent, janitor::run(self.shared.clone()));
    }

    /// Starts what sends, and gets its credentials ready.
    fn start_consumers(&mut self) {
        for kind in ProviderKind::ALL {
            for class in TrafficClass::ALL {
                let work = dispatcher::run(self.shared.clone(), *kind, *class);
                self.start_mover(format!("dispatcher of {kind}"), *class, work);
            }
        }
        if self.shared.standing.is_shared() {
            self.start_mover("quotas", TrafficClass::Urgent, quota_draws::run(self.shared.clone()));
        }
        // Before the task: one that is over at once would be followed by this, and it would stay set.
        self.shared.getting_ready.store(true, Ordering::Relaxed);
        let (shared, stop) = (self.shared.clone(), self.shared.stop.clone());
        self.tasks().movers.spawn(async move {
            let work = shared.providers.get_ready(shared.config.ready_max_credentials, shared.now());
            let _ = stop.run_until_cancelled(shared.supervisor.passing("getting ready", work)).await;
            shared.getting_ready.store(false, Ordering::Relaxed);
        });
    }

    /// Starts a part, at home where its class is; what it starts is at home there too.
    fn start_mover(
        &mut self,
        part: impl Into<String>,
        class: TrafficClass,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let (shared, part, home) = (self.shared.clone(), part.into(), self.home(class));
        let stop = shared.stop.clone();
        self.tasks().movers.spawn_on(async move { shared.supervisor.lasting(part, stop, work).await }, &home);
    }

    fn tasks(&mut self) -> &mut Tasks {
        self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn home(&self, class: TrafficClass) -> Handle {
        match class {
            TrafficClass::Urgent => Handle::current(),
            TrafficClass::Bulk => self.bulk.clone(),
        }
    }

    /// Returns what knows whether a part has failed.
    pub(crate) fn supervisor(&self) -> Arc<Supervisor> {
        self.shared.supervisor.clone()
    }

    /// Puts tickets of accepted messages and of resumed campaigns on the queue; a failure is made up for later.
    pub async fn published(&self, tickets: &[Ticket]) {
        self.shared.publish(tickets).await;
    }

    /// Notes that chunks were made that will be published.
    pub fn note_queued(&self, tickets: &[Ticket]) {
        self.shared.note_queued(tickets);
    }

    /// Returns whether an app may queue more messages beside those that are about to be accepted before them.
    #[must_use]
    pub fn has_room(&self, app: AppId, before: u64) -> bool {
        self.shared.has_room(app, before)
    }

    /// Lists those credentials of an app that rest, and for which no more may wait.
    #[must_use]
    pub fn full_lanes(&self, app: AppId) -> Vec<FullLane> {
        self.shared.full_lanes(app)
    }

    /// Notes that a message or schedule was accepted, or a campaign goes on.
    pub fn wake(&self) {
        self.shared.wakeups.scheduler.notify_one();
        self.shared.wakeups.producers.notify_one();
    }

    /// Publishes chunks that other nodes made after one.
    pub(crate) async fn look_for_chunks(&self, after: ChunkId) {
        if self.shared.shares_queue || !self.shared.roles.has(NodeRole::Consumer) {
            return;
        }
        if let Err(error) = republishing::publish_queued(&self.shared, after, Some).await {
            tracing::warn!(%error, "chunks of other servers could not be published; the janitor will publish again");
        }
    }

    /// Publishes what dead nodes had leased, whose tickets they may hold still.
    pub(crate) async fn publish_released(&self, tickets: &[Ticket]) {
        if tickets.is_empty() {
            return;
        }
        let chunks: Vec<ChunkId> = tickets.iter().map(|ticket| ticket.chunk).collect();
        // First: of a chunk that a dead server holds leased, publishing changes nothing.
        if let Err(error) = self.shared.queue.withdraw(&chunks).await {
            tracing::warn!(%error, "tickets of dead servers stay until their leases run out");
        }
        self.shared.publish(tickets).await;
    }

    /// Publishes all chunks again before it is time.
    pub(crate) fn look_for_all_chunks(&self) {
        self.shared.wakeups.republish.notify_one();
    }

    /// Looks for what other nodes have accepted, if it is due; `has_producers` says whether an audience is expanded anywhere.
    pub(crate) async fn look_for_work(&self, has_producers: bool) {
        if has_producers {
            self.shared.wakeups.producers.notify_one();
        }
        if !self.shared.roles.has(NodeRole::Scheduler) {
            return;
        }
        match self.shared.store.next_due().await {
            Ok(next) if next.is_some_and(|next| next <= self.shared.now()) => {
                self.shared.wakeups.scheduler.notify_one();
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "what is due cannot be looked for"),
        }
    }

    /// Parks a lane because its push service told another node so.
    pub(crate) fn park(&self, key: (AppId, ProviderKind), until: Timestamp, reason: Reason) {
        self.shared.providers.park_until(key, until, reason, self.shared.now());
    }

    /// Returns what is accepted and not begun.
    pub(crate) fn backlog(&self) -> Arc<Backlog> {
        self.shared.backlog.clone()
    }

    /// Notes that an app's credential was put or removed: its lanes are served anew.
    pub fn changed(&self, app: AppId, provider: ProviderKind) {
        // Before the lanes are woken, which would be served by the former provider.
        self.shared.providers.changed((app, provider));
        let now = self.shared.now();
        for class in TrafficClass::ALL {
            self.shared.due_index.insert(Lane { provider, app, class: *class }, now);
            self.shared.due_index.wake((provider, *class));
        }
    }

    /// Forgets the lanes and quotas of an app that was deleted.
    pub(crate) fn forget_app(&self, app: AppId) {
        self.shared.providers.forget(&HashSet::from([app]));
    }

    /// Tries a credential without sending; returns where it failed, if any host was asked, and why.
    pub(crate) async fn check(
        &self,
        app: AppId,
        provider: ProviderKind,
    ) -> Result<(), (Option<String>, String)> {
        self.shared.providers.check((app, provider), self.shared.now()).await
    }

    /// Compares all credentials with those in use and serves anew the lanes for which they differ or were refused.
    pub async fn reload(&self) -> Result<(), StoreError> {
        for (app, provider) in self.shared.providers.reload().await? {
            self.changed(app, provider);
        }
        Ok(())
    }

    /// Returns whether credentials are still being given their access tokens and connections, as they are once, at the start.
    #[must_use]
    pub fn is_getting_ready(&self) -> bool {
        self.shared.getting_ready.load(Ordering::Relaxed)
    }

    /// Returns why the lane of a credential rests, if it does.
    pub(crate) fn parking(&self, app: AppId, provider: ProviderKind) -> Option<settle::Parking> {
        self.shared.providers.parking((app, provider))
    }

    /// Returns the quota of a credential, if it has one.
    pub(crate) fn quota(&self, app: AppId, provider: ProviderKind) -> Option<stats::QuotaStats> {
        self.shared.providers.quota((app, provider), self.shared.now())
    }

    /// Returns how a quota stands that all nodes share: what it allows in a minute, and what the store has of it.
    pub(crate) fn shared_quota(
        &self,
        (app, provider): (AppId, ProviderKind),
        shared: (u32, Level),
    ) -> stats::QuotaStats {
        self.shared.providers.shared_quota((app, provider), shared, self.shared.now())
    }

    /// Lists the lanes that rest here, by app and push service, so many at most; none where nothing is sent from here.
    pub(crate) fn parked_lanes(&self, max: usize) -> Vec<ParkedLane> {
        if !self.shared.roles.has(NodeRole::Consumer) {
            return Vec::new();
        }
        let of_kind = |kind| {
            let lanes = self.shared.providers.parked(kind).into_iter();
            lanes.map(move |stats::ParkedStats { app, until, reason, detail }| ParkedLane {
                app,
                provider: kind,
                until,
                reason,
                detail,
            })
        };
        let mut lanes: Vec<_> = ProviderKind::ALL.iter().copied().flat_map(of_kind).collect();
        // In one order, so that the same lanes are found to be the same.
        lanes.sort_unstable_by_key(|lane| (lane.app, lane.provider));
        lanes.truncate(max);
        lanes
    }

    /// Returns what it has done and is doing.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        let shared = &self.shared;
        let providers = ProviderKind::ALL.iter().map(|kind| stats::DispatchStats {
            wire: shared.providers.provider_stats(*kind),
            parked: shared.providers.parked(*kind),
            quotas: shared.providers.quotas(*kind, shared.now()),
            ..shared.meter(*kind).picture(*kind)
        });
        PipelineStats {
            providers: providers.collect(),
            depths: shared.depths.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            producers: shared.producers.load(Ordering::Relaxed),
            unsettled_deliveries: shared.budget.used(),
            stale_settlements: shared.stale.load(Ordering::Relaxed),
            store_retries: shared.store_retries.load(Ordering::Relaxed),
            chunks_quarantined: shared.quarantined.load(Ordering::Relaxed),
            recovery: shared.recovery,
            failures: shared.supervisor.failures(),
        }
    }

    /// Stops leasing, waits for batches in flight up to `deadline`, writes what is known, gives back what was not
    /// sent, and closes the providers. Batches cut off at the deadline count as never answered.
    pub async fn drain(&self, deadline: Duration) {
        let Tasks { mut movers, mut settlers } =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        // Leasing ends first; what is under way may still be answered.
        self.shared.stop.cancel();
        if tokio::time::timeout(deadline, join(&mut movers)).await.is_err() {
            tracing::warn!("the drain's deadline has passed; batches in flight count as never answered");
        }
        // Now retries and batches end, too: nothing waits for the store or a peer any longer.
        self.shared.cut.cancel();
        let last = async {
            join(&mut movers).await;
            // After the movers: what they hand over last must find somebody who writes.
            self.settler_stop.cancel();
            join(&mut settlers).await;
            // Last: only batches that are over let a provider close.
            self.shared.providers.close().await;
        };
        if tokio::time::timeout(LAST_WRITES, last).await.is_err() {
            tracing::warn!("the drain did not end in time; the next start recovers the rest");
        }
    }
}

async fn join(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
