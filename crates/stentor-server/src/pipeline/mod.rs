//! The pipeline: moves messages from the store through the queue to the providers, and the outcomes back.
//!
//! [`Pipeline::start`] recovers the unfinished work of an earlier process and runs until it is drained. The scheduler fires due schedules.
//! Producers expand audiences into chunks. A dispatcher with consumers for each provider kind and class sends the chunks. Settlers write
//! the outcomes. The janitor repairs inconsistencies. Two modules are pure: [`settle`] interprets outcomes, and [`calendar`] computes the
//! ticks of schedules. The pipeline holds no state of record: every task may die at any moment, and the next process resumes from the
//! store. The supervisor notices a part that dies, and ends the pipeline.

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

/// Settlements that may wait for the settler, in chunks. At this limit consumers wait.
const SETTLER_INBOX_MAX_CHUNKS: usize = 1_024;
/// Time for writing outcomes after the deadline of a drain.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// The dependencies of the pipeline.
pub struct Deps {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The transport of chunk ids.
    pub queue: Arc<dyn Queue>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Source of ids for the messages of schedules.
    pub ids: Arc<IdSource>,
    /// Builds providers from credentials.
    pub factory: Arc<dyn ProviderFactory>,
    /// Runtime for audiences; `None` for the same one as the rest.
    pub bulk: Option<Handle>,
    /// The instance under which this process leases, never reused from an earlier start, and its permission to act.
    pub standing: Arc<NodeStanding>,
    /// Roles of this node.
    pub roles: NodeRoles,
    /// True if other nodes use the same queue.
    pub shares_queue: bool,
    /// Sends events to other nodes.
    pub event_sender: Option<mpsc::Sender<NodeEvent>>,
    /// File in which quotas survive a restart; `None` to start with fresh ones.
    pub levels: Option<PathBuf>,
    /// Delivers settled messages to devices connected to this server.
    pub settled_feed: Option<Arc<dyn SettledFeed>>,
}

/// The running pipeline. Dropping it is equivalent to a crash: the next one recovers the batches in flight.
pub struct Pipeline {
    shared: Arc<PipelineContext>,
    tasks: Mutex<Tasks>,
    settler_stop: CancellationToken,
    /// Runtime for audiences.
    bulk: Handle,
}

/// The running tasks, until the drain.
#[derive(Default)]
struct Tasks {
    movers: JoinSet<()>,
    settlers: JoinSet<()>,
}

impl Pipeline {
    /// Takes over the leases of dead processes and starts all parts. Fails only if the store cannot be read.
    pub async fn start(deps: Deps, config: PipelineConfig) -> Result<Self, StoreError> {
        // Before the recovery, which records the present time.
        let known =
            Some(instant_of(deps.store.last_id().await?)).filter(|known| *known > Timestamp::default());
        let known = known.unwrap_or_else(|| deps.clock.now());
        let (recovery, released) = deps.store.recover(deps.standing.instance(), deps.clock.now()).await?;
        if recovery.chunks > 0 {
            let Recovery { chunks, deliveries } = recovery;
            tracing::warn!(chunks, deliveries, "recovered chunks that another process had left unsettled");
        }
        let bulk = deps.bulk.clone().unwrap_or_else(Handle::current);
        let (settlers, inboxes) = settler_inbox::inboxes(SETTLER_INBOX_MAX_CHUNKS);
        let shared = Arc::new(PipelineContext::new(deps, config, (recovery, known), settlers));
        let settler_stop = CancellationToken::new();
        let mut pipeline = Self { shared, tasks: Mutex::default(), settler_stop, bulk };
        // Before any dispatcher leases from the queue.
        pipeline.prepare_queue(&released).await;
        // Before the movers, which hand their outcomes to the settlers.
        pipeline.start_settlers(inboxes);
        pipeline.start_movers();
        Ok(pipeline)
    }

    /// Frees the queue of leases of a dead process, which would otherwise have to expire. A private queue is cleared and refilled. A shared
    /// queue keeps the tickets and leases of other nodes.
    async fn prepare_queue(&self, released: &[Ticket]) {
        if self.shared.shares_queue {
            return self.publish_released(released).await;
        }
        if let Err(error) = self.shared.queue.clear().await {
            tracing::warn!(%error, "emptying the queue failed; leased chunks wait until their leases expire");
        }
    }

    /// Starts the tasks that run to the end of a drain, so that all outcomes are written.
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

    /// Starts the tasks that end when a drain begins.
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

    /// Starts the dispatchers and prepares the credentials.
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
        // Set before the task starts: otherwise a task that ends at once would clear it first, and it would stay set.
        self.shared.getting_ready.store(true, Ordering::Relaxed);
        let (shared, stop) = (self.shared.clone(), self.shared.stop.clone());
        self.tasks().movers.spawn(async move {
            let work = shared.providers.get_ready(shared.config.ready_max_credentials, shared.now());
            let _ = stop.run_until_cancelled(shared.supervisor.passing("getting ready", work)).await;
            shared.getting_ready.store(false, Ordering::Relaxed);
        });
    }

    /// Starts a part on the runtime of its class; tasks that it spawns run there too.
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

    /// Returns the supervisor, which records failed parts.
    pub(crate) fn supervisor(&self) -> Arc<Supervisor> {
        self.shared.supervisor.clone()
    }

    /// Publishes the tickets of accepted messages and resumed campaigns. The janitor repeats a failed publication.
    pub async fn published(&self, tickets: &[Ticket]) {
        self.shared.publish(tickets).await;
    }

    /// Counts new chunks that will be published.
    pub fn note_queued(&self, tickets: &[Ticket]) {
        self.shared.note_queued(tickets);
    }

    /// Returns true if an app may queue another message. `before` messages of it are about to be accepted first.
    #[must_use]
    pub fn has_room(&self, app: AppId, before: u64) -> bool {
        self.shared.has_room(app, before)
    }

    /// Lists the resting credentials of an app that have reached their limit of waiting chunks.
    #[must_use]
    pub fn full_lanes(&self, app: AppId) -> Vec<FullLane> {
        self.shared.full_lanes(app)
    }

    /// Wakes the scheduler and the producers after a message or schedule was accepted or a campaign resumed.
    pub fn wake(&self) {
        self.shared.wakeups.scheduler.notify_one();
        self.shared.wakeups.producers.notify_one();
    }

    /// Publishes the chunks that other nodes made after the chunk `after`.
    pub(crate) async fn look_for_chunks(&self, after: ChunkId) {
        if self.shared.shares_queue || !self.shared.roles.has(NodeRole::Consumer) {
            return;
        }
        if let Err(error) = republishing::publish_queued(&self.shared, after, Some).await {
            tracing::warn!(%error, "chunks of other servers could not be published; the janitor will publish again");
        }
    }

    /// Publishes the chunks that dead nodes had leased; these nodes may still hold the tickets.
    pub(crate) async fn publish_released(&self, tickets: &[Ticket]) {
        if tickets.is_empty() {
            return;
        }
        let chunks: Vec<ChunkId> = tickets.iter().map(|ticket| ticket.chunk).collect();
        // Withdrawn first: publishing a chunk that a dead server still holds leased has no effect.
        if let Err(error) = self.shared.queue.withdraw(&chunks).await {
            tracing::warn!(%error, "tickets of dead servers stay until their leases run out");
        }
        self.shared.publish(tickets).await;
    }

    /// Publishes all chunks again before the interval is over.
    pub(crate) fn look_for_all_chunks(&self) {
        self.shared.wakeups.republish.notify_one();
    }

    /// Wakes the parts that handle work accepted by other nodes: the scheduler if something is due, and the producers if `has_producers`,
    /// that is if an audience is being expanded on any node.
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
            Err(error) => tracing::warn!(%error, "the next due time cannot be read"),
        }
    }

    /// Parks a lane because another node reported that its push service requested it.
    pub(crate) fn park(&self, key: (AppId, ProviderKind), until: Timestamp, reason: Reason) {
        self.shared.providers.park_until(key, until, reason, self.shared.now());
    }

    /// Returns the backlog.
    pub(crate) fn backlog(&self) -> Arc<Backlog> {
        self.shared.backlog.clone()
    }

    /// Replaces the provider of an app after its credential was put or removed, and serves its lanes again.
    pub fn changed(&self, app: AppId, provider: ProviderKind) {
        // Before the lanes are woken; otherwise the former provider would serve them.
        self.shared.providers.changed((app, provider));
        let now = self.shared.now();
        for class in TrafficClass::ALL {
            self.shared.due_index.insert(Lane { provider, app, class: *class }, now);
            self.shared.due_index.wake((provider, *class));
        }
    }

    /// Removes the lanes and quotas of a deleted app.
    pub(crate) fn forget_app(&self, app: AppId) {
        self.shared.providers.forget(&HashSet::from([app]));
    }

    /// Checks a credential without sending. An error holds the host that was contacted, if any, and the reason.
    pub(crate) async fn check(
        &self,
        app: AppId,
        provider: ProviderKind,
    ) -> Result<(), (Option<String>, String)> {
        self.shared.providers.check((app, provider), self.shared.now()).await
    }

    /// Compares all credentials with those in use, and serves the lanes of changed or refused credentials again.
    pub async fn reload(&self) -> Result<(), StoreError> {
        for (app, provider) in self.shared.providers.reload().await? {
            self.changed(app, provider);
        }
        Ok(())
    }

    /// Returns true while credentials get their access tokens and connections, which happens once at the start.
    #[must_use]
    pub fn is_getting_ready(&self) -> bool {
        self.shared.getting_ready.load(Ordering::Relaxed)
    }

    /// Returns the reason why the lane of a credential rests, if it does.
    pub(crate) fn parking(&self, app: AppId, provider: ProviderKind) -> Option<settle::Parking> {
        self.shared.providers.parking((app, provider))
    }

    /// Returns the quota of a credential, if it has one.
    pub(crate) fn quota(&self, app: AppId, provider: ProviderKind) -> Option<stats::QuotaStats> {
        self.shared.providers.quota((app, provider), self.shared.now())
    }

    /// Returns the state of a quota that all nodes share; `shared` holds its limit per minute and its level in the store.
    pub(crate) fn shared_quota(
        &self,
        (app, provider): (AppId, ProviderKind),
        shared: (u32, Level),
    ) -> stats::QuotaStats {
        self.shared.providers.shared_quota((app, provider), shared, self.shared.now())
    }

    /// Lists the lanes that rest on this node, by app and push service, at most `max`. Empty on nodes without the consumer role.
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
        // Sorted, so that equal lists compare equal.
        lanes.sort_unstable_by_key(|lane| (lane.app, lane.provider));
        lanes.truncate(max);
        lanes
    }

    /// Returns the statistics of the pipeline.
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

    /// Stops leasing, waits for batches in flight up to `deadline`, writes the known outcomes, releases unsent chunks, and closes the
    /// providers. Batches cut off at the deadline count as unanswered.
    pub async fn drain(&self, deadline: Duration) {
        let Tasks { mut movers, mut settlers } =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        // Leasing ends first; batches in flight may still be answered.
        self.shared.stop.cancel();
        if tokio::time::timeout(deadline, join(&mut movers)).await.is_err() {
            tracing::warn!("the drain's deadline has passed; batches in flight count as never answered");
        }
        // From here on retries and batches end too: no task waits for the store or a peer any longer.
        self.shared.cut.cancel();
        let last = async {
            join(&mut movers).await;
            // After the movers, because the settlers write their last outcomes.
            self.settler_stop.cancel();
            join(&mut settlers).await;
            // Last, because a provider closes only when its batches are over.
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
