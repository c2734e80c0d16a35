//! The pipeline: moves messages from the store through the queue to the providers, and the outcomes back.
//!
//! [`Pipeline::start`] recovers the unfinished work of an earlier process and runs until it is drained. The scheduler fires due schedules.
//! Producers expand audiences into chunks. A dispatcher with consumers for each provider kind and class sends the chunks. Settlers write
//! the outcomes. The janitor repairs inconsistencies. Two modules are pure: [`settle`] interprets outcomes, and [`calendar`] computes the
//! ticks of schedules. The pipeline holds no state of record: every task may die at any moment, and the next process resumes from the
//! store. The supervisor notices a part that dies, and ends the pipeline.

mod acceptance;
mod admission;
mod at_once_places;
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
mod dependencies;
mod dispatcher;
mod due_index;
mod janitor;
mod lease_table;
mod leased_inbox;
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
mod tasks;
mod threads;
mod window;

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, instant_of};
use stentor_core::outcome::Reason;
use stentor_core::ports::provider::ServiceStanding;
use stentor_core::ports::store::{NodeEvent, ParkedLane, Recovery, StoreError};
use stentor_core::quota::Level;
use stentor_core::time::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio_util::sync::CancellationToken;

pub(crate) use acceptance::Acceptance;
pub use admission::FullLane;
pub(crate) use at_once_places::AtOncePlace;
pub use backlog::AcceptGuard;
pub use config::PipelineConfig;
pub use dependencies::Dependencies;
pub use node_standing::NodeStanding;
pub(crate) use provider_table::LentProvider;
pub use provider_table::{CheckFailure, ProviderFactory};
pub use roles::{NodeRole, NodeRoles};
pub use stats::PipelineStats;
pub use supervisor::Failure;
pub use threads::Threads;

use shared::{PipelineContext, PipelineStart};
use tasks::PipelineTasks;

/// Settlements that may wait for the settler, in chunks. At this limit consumers wait.
const SETTLER_INBOX_MAX_CHUNKS: usize = 1_024;
/// Most batches of tickets that wait for the publisher; the janitor publishes a batch that finds no place.
const WAITING_MAX_COUNT: usize = 16_384;
/// Most events that wait to go to other nodes.
const EVENTS_MAX_COUNT: usize = 1_024;

/// The running pipeline. Dropping it is equivalent to a crash: the next one recovers the batches in flight.
pub struct Pipeline {
    shared: Arc<PipelineContext>,
    /// `None` once a drain has begun.
    tasks: Mutex<Option<PipelineTasks>>,
    tickets: mpsc::Sender<Vec<Ticket>>,
    events: AsyncMutex<mpsc::Receiver<NodeEvent>>,
    /// The last field, so that it is dropped last: tasks of the pipeline run on these threads.
    _threads: Option<Arc<Threads>>,
}

impl Pipeline {
    /// Takes over the leases of dead processes and starts all parts. Fails only if the store cannot be read.
    pub async fn start(dependencies: &Dependencies, config: PipelineConfig) -> Result<Self, StoreError> {
        let Dependencies { store, clock, standing, threads, .. } = dependencies;
        // Before the recovery, which records the present time.
        let known = Some(instant_of(store.last_id().await?)).filter(|known| *known > Timestamp::default());
        let known = known.unwrap_or_else(|| clock.now());
        let (recovery, released) = store.recover(standing.instance(), clock.now()).await?;
        if recovery.chunks > 0 {
            let Recovery { chunks, deliveries } = recovery;
            tracing::warn!(chunks, deliveries, "recovered chunks that another process had left unsettled");
        }
        let bulk = threads.as_ref().and_then(|threads| threads.handle()).unwrap_or_else(Handle::current);
        let (settlers, inboxes) = settler_inbox::inboxes(SETTLER_INBOX_MAX_CHUNKS);
        let (event_sender, events) = mpsc::channel(EVENTS_MAX_COUNT);
        let found = PipelineStart { recovery, known, settlers, event_sender };
        let shared = Arc::new(PipelineContext::new(dependencies, config, found));
        // Before any dispatcher leases from the queue.
        prepare_queue(&shared, &released).await;
        let (tickets, waiting) = mpsc::channel(WAITING_MAX_COUNT);
        let tasks = Mutex::new(Some(PipelineTasks::start(shared.clone(), bulk, inboxes, waiting)));
        Ok(Self { shared, tasks, tickets, events: AsyncMutex::new(events), _threads: threads.clone() })
    }

    /// Returns what the tasks share, until a drain begins.
    fn running(&self) -> Option<&PipelineContext> {
        let tasks = self.tasks.lock();
        tasks.is_some().then_some(&*self.shared)
    }

    /// Returns the number under which this start of the server leases.
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.shared.standing.instance()
    }

    /// Lists the parts that failed, the first first.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        self.shared.supervisor.failures()
    }

    /// Waits until a part fails.
    pub(crate) async fn failed(&self) -> Failure {
        self.shared.supervisor.failed().await
    }

    /// Runs a part that does not belong to the pipeline but must last as long; its end counts as a failure as well.
    pub(crate) async fn watched(&self, part: &str, stop: CancellationToken, work: impl Future<Output = ()>) {
        self.shared.supervisor.lasting(part, stop, work).await;
    }

    /// Has the publisher put tickets of accepted messages and of resumed campaigns on the queue.
    pub fn published(&self, tickets: Vec<Ticket>) {
        // Counted before they wait: a caller that comes meanwhile would find their room free.
        self.shared.note_queued(&tickets);
        if !tickets.is_empty() && self.tickets.try_send(tickets).is_err() {
            tracing::debug!("tickets are not published now: the janitor publishes them later");
        }
    }

    /// Counts a caller that waits for a message to be accepted, while the guard lives.
    pub(crate) fn accepting(&self) -> AcceptGuard {
        self.shared.backlog.accepting()
    }

    /// Takes a place for a message that is sent at once; `None` if there is none.
    pub(crate) async fn place_at_once(&self, app: AppId) -> Option<AtOncePlace> {
        self.sending()?.at_once_places.take(app).await
    }

    /// Begins to accept messages, which are sent at once if this node can send them.
    pub(crate) fn accept(&self) -> Acceptance<'_> {
        Acceptance::begin(self.sending())
    }

    fn sending(&self) -> Option<&PipelineContext> {
        self.running().filter(|shared| shared.roles.has(NodeRole::Consumer))
    }

    /// Returns true if an app may queue another message. `before` messages of it are about to be accepted first.
    #[must_use]
    pub fn has_room(&self, app: AppId, before: u64) -> bool {
        self.running().is_none_or(|shared| shared.has_room(app, before))
    }

    /// Lists the resting credentials of an app that have reached their limit of waiting chunks.
    #[must_use]
    pub fn full_lanes(&self, app: AppId) -> Vec<FullLane> {
        self.running().map(|shared| shared.full_lanes(app)).unwrap_or_default()
    }

    /// Wakes the scheduler and the producers after a message or schedule was accepted or a campaign resumed.
    pub fn wake(&self) {
        self.shared.wakeups.scheduler.notify_one();
        self.shared.wakeups.producers.notify_one();
    }

    /// Waits for the next event of which other nodes must know.
    pub(crate) async fn next_event(&self) -> Option<NodeEvent> {
        self.events.lock().await.recv().await
    }

    /// Publishes the chunks that other nodes made after the chunk `after`.
    pub(crate) async fn look_for_chunks(&self, after: ChunkId) {
        let Some(shared) = self.running() else { return };
        if shared.shares_queue || !shared.roles.has(NodeRole::Consumer) {
            return;
        }
        if let Err(error) = republishing::publish_queued(shared, after, Some).await {
            tracing::warn!(%error, "chunks of other servers could not be published; the janitor will publish again");
        }
    }

    /// Publishes the chunks that dead nodes had leased; these nodes may still hold the tickets.
    pub(crate) async fn publish_released(&self, tickets: &[Ticket]) {
        if let Some(shared) = self.running() {
            republishing::publish_released(shared, tickets).await;
        }
    }

    /// Publishes all chunks again before the interval is over.
    pub(crate) fn look_for_all_chunks(&self) {
        self.shared.wakeups.republish.notify_one();
    }

    /// Wakes the parts that handle work accepted by other nodes: the scheduler if something is due, and the producers if `has_producers`,
    /// that is if an audience is being expanded on any node.
    pub(crate) async fn look_for_work(&self, has_producers: bool) {
        let Some(shared) = self.running() else { return };
        if has_producers {
            shared.wakeups.producers.notify_one();
        }
        if !shared.roles.has(NodeRole::Scheduler) {
            return;
        }
        match shared.store.next_due().await {
            Ok(next) if next.is_some_and(|next| next <= shared.now()) => {
                shared.wakeups.scheduler.notify_one();
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the next due time cannot be read"),
        }
    }

    /// Parks a lane because another node reported that its push service requested it.
    pub(crate) fn park(&self, key: (AppId, ProviderKind), until: Timestamp, reason: Reason) {
        self.shared.providers.park_until(key, until, reason, self.shared.now());
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

    /// Checks a credential without sending.
    pub(crate) async fn check(&self, app: AppId, provider: ProviderKind) -> Result<(), CheckFailure> {
        let Some(shared) = self.running() else {
            return Err(CheckFailure::of_the_end());
        };
        shared.providers.check((app, provider), shared.now()).await
    }

    /// Lends a provider for requests that are no pushes.
    pub(crate) async fn lend(
        &self,
        app: AppId,
        provider: ProviderKind,
    ) -> Result<LentProvider, CheckFailure> {
        let Some(shared) = self.running() else { return Err(CheckFailure::of_the_end()) };
        shared.providers.lend((app, provider), shared.now()).await
    }

    /// Compares all credentials with those in use, and serves the lanes of changed or refused credentials again.
    pub async fn reload(&self) {
        let Some(shared) = self.running() else { return };
        match shared.providers.reload().await {
            Ok(changed) => changed.into_iter().for_each(|(app, provider)| self.changed(app, provider)),
            Err(error) => {
                tracing::warn!(%error, "the pipeline could not look at the credentials again");
            }
        }
    }

    /// Returns true while credentials get their access tokens and connections, which happens once at the start.
    #[must_use]
    pub fn is_getting_ready(&self) -> bool {
        self.running().is_some_and(|shared| shared.getting_ready.load(Ordering::Relaxed))
    }

    /// Returns the reason why the lane of a credential rests, if it does.
    pub(crate) fn parking(&self, app: AppId, provider: ProviderKind) -> Option<settle::Parking> {
        self.shared.providers.parking((app, provider))
    }

    /// Returns the quota of a credential, if it has one.
    pub(crate) fn quota(&self, app: AppId, provider: ProviderKind) -> Option<stats::QuotaStats> {
        self.shared.providers.quota((app, provider), self.shared.now())
    }

    /// Lists the push services behind a credential's provider that limit it or rest.
    pub(crate) fn services(&self, app: AppId, provider: ProviderKind) -> Vec<ServiceStanding> {
        self.shared.providers.services((app, provider))
    }

    /// Returns the state of a quota that all nodes share; `shared` holds its limit per minute and its level in the store.
    pub(crate) fn shared_quota(
        &self,
        app: AppId,
        provider: ProviderKind,
        per_minute: u32,
        level: Level,
    ) -> stats::QuotaStats {
        self.shared.providers.shared_quota((app, provider), per_minute, level, self.shared.now())
    }

    /// Lists the lanes that rest on this node, by app and push service, at most `max`. Empty on nodes without the consumer role.
    pub(crate) fn parked_lanes(&self, max: usize) -> Vec<ParkedLane> {
        let Some(shared) = self.running().filter(|shared| shared.roles.has(NodeRole::Consumer)) else {
            return Vec::new();
        };
        let of_kind = |kind| {
            let lanes = shared.providers.parked(kind).into_iter();
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
            depths: shared.depths.lock().clone(),
            producers: shared.producers.load(Ordering::Relaxed),
            unsettled_deliveries: shared.budget.used(),
            stale_settlements: shared.stale.load(Ordering::Relaxed),
            store_retries: shared.store_retries.load(Ordering::Relaxed),
            chunks_quarantined: shared.quarantined.load(Ordering::Relaxed),
            recovery: shared.recovery,
            failures: shared.supervisor.failures(),
        }
    }

    /// Leases nothing more, settles what is in flight, gives back what was not sent, and ends within `time`.
    pub async fn drain(&self, time: Duration) {
        let tasks = self.tasks.lock().take();
        if let Some(tasks) = tasks {
            tasks.drain(time).await;
        }
    }
}

/// Frees the queue of leases of a dead process, which would otherwise have to expire. A private queue is cleared and refilled. A shared
/// queue keeps the tickets and leases of other nodes.
async fn prepare_queue(shared: &PipelineContext, released: &[Ticket]) {
    if shared.shares_queue {
        return republishing::publish_released(shared, released).await;
    }
    if let Err(error) = shared.queue.clear().await {
        tracing::warn!(%error, "emptying the queue failed; what was leased waits for its lease to run out");
    }
}
