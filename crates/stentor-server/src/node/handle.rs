//! The interface of the pipeline for services and faces: non-blocking notifications, and snapshots of its state.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use stentor_core::chunk::Ticket;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{NodeEvent, ParkedLane};
use stentor_core::quota::Level;
use stentor_core::time::Timestamp;
use stentor_gateway::{Gateway, GatewayStats};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::AppError;
use super::dependencies::Dependencies;
use super::threads::Threads;
use crate::config::{Config, QueueEngine};
use crate::pipeline::stats::QuotaStats;
use crate::pipeline::{
    AcceptGuard, Backlog, Deps, Failure, FullLane, NodeStanding, Pipeline, PipelineStats, Supervisor,
};
use crate::providers::Adapters;
use crate::service::{CheckFailure, ParkReason, PipelinePort};

/// Batches of tickets that wait for publication; beyond this number the janitor publishes them.
const WAITING_MAX_COUNT: usize = 16_384;
/// Most batches that are published in one go.
const TOGETHER_MAX_COUNT: usize = 1_024;
/// Events that wait to be sent to other nodes.
const EVENTS_MAX_COUNT: usize = 1_024;
/// File in the data directory that holds the remaining quotas.
const LEVELS_FILE: &str = "quotas";
/// Time that a pipeline may need after its deadline for its last writes.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// The running pipeline.
pub struct PipelineHandle {
    standing: Arc<NodeStanding>,
    pipeline: Mutex<Option<Arc<Pipeline>>>,
    tickets: mpsc::Sender<Vec<Ticket>>,
    publisher: Mutex<Option<JoinHandle<()>>>,
    watch: Arc<Supervisor>,
    backlog: Arc<Backlog>,
    gateway: Gateway,
    events: AsyncMutex<mpsc::Receiver<NodeEvent>>,
    /// Dropped last: the pipeline's tasks run on these threads.
    _threads: Threads,
}

impl PipelineHandle {
    /// Recovers from a crash, if any, and starts the pipeline.
    pub(crate) async fn start(dependencies: &Dependencies, config: &Config) -> Result<Self, AppError> {
        let wrap = |cause: std::io::Error| AppError::Engine { what: "the threads", cause: cause.to_string() };
        let threads = Threads::start().map_err(wrap)?;
        let (event_sender, events) = mpsc::channel(EVENTS_MAX_COUNT);
        let deps = Deps {
            store: dependencies.store.clone(),
            queue: dependencies.queue.clone(),
            clock: dependencies.clock.clone(),
            ids: dependencies.ids.clone(),
            factory: Arc::new(
                Adapters::new(dependencies.clock.clone(), config.sender.limits(), config.outbound.policy())
                    .at_home_on(threads.handle()),
            ),
            bulk: threads.handle(),
            standing: dependencies.standing.clone(),
            roles: config.roles.clone(),
            shares_queue: matches!(config.queue.engine, QueueEngine::Postgres | QueueEngine::Nats),
            event_sender: Some(event_sender),
            levels: Some(config.data_dir.join(LEVELS_FILE)),
            settled_feed: Some(Arc::new(dependencies.gateway.clone())),
        };
        let started = Pipeline::start(deps, config.pipeline.clone()).await;
        let wrap = |cause: stentor_core::ports::store::StoreError| cause.to_string();
        let pipeline = started.map_err(|error| AppError::Engine { what: "the store", cause: wrap(error) })?;
        let pipeline = Arc::new(pipeline);
        let (tickets, waiting) = mpsc::channel(WAITING_MAX_COUNT);
        let (watch, backlog) = (pipeline.supervisor(), pipeline.backlog());
        let (watched, work) = (watch.clone(), publish(pipeline.clone(), waiting));
        let publisher = tokio::spawn(async move { watched.passing("publisher", work).await });
        let publisher = Mutex::new(Some(publisher));
        Ok(Self {
            standing: dependencies.standing.clone(),
            pipeline: Mutex::new(Some(pipeline)),
            tickets,
            publisher,
            watch,
            backlog,
            gateway: dependencies.gateway.clone(),
            events: AsyncMutex::new(events),
            _threads: threads,
        })
    }

    /// Returns the number of this instance.
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.standing.instance()
    }

    /// Returns a snapshot of the pipeline's statistics.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        self.pipeline().map(|pipeline| pipeline.stats()).unwrap_or_default()
    }

    /// Returns true if receipts of devices are written in time.
    pub(crate) fn receipts_keep_up(&self) -> bool {
        self.gateway.keeps_up()
    }

    /// Returns a snapshot of the gateway's counters.
    #[must_use]
    pub fn gateway_stats(&self) -> GatewayStats {
        self.gateway.stats()
    }

    /// Returns true while credentials are still getting their access tokens and connections.
    #[must_use]
    pub fn is_getting_ready(&self) -> bool {
        self.pipeline().is_some_and(|pipeline| pipeline.is_getting_ready())
    }

    /// Lists the failed parts of the pipeline, in order of failure.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        self.watch.failures()
    }

    /// Runs a part that does not belong to the pipeline but must last as long; its end counts as a failure as well.
    pub(crate) async fn watched(&self, part: &str, stop: CancellationToken, work: impl Future<Output = ()>) {
        self.watch.lasting(part, stop, work).await;
    }

    /// Waits until a part fails.
    pub(crate) async fn failed(&self) -> Failure {
        self.watch.failed().await
    }

    /// Compares all credentials with those in use.
    pub(crate) async fn reload(&self) {
        let Some(pipeline) = self.pipeline() else { return };
        if let Err(error) = pipeline.reload().await {
            tracing::warn!(%error, "the pipeline could not read the credentials again");
        }
    }

    /// Waits for the next event for other nodes.
    pub(crate) async fn next_event(&self) -> Option<NodeEvent> {
        self.events.lock().await.recv().await
    }

    /// Publishes tickets released from dead nodes.
    pub(crate) async fn publish_released(&self, tickets: Vec<Ticket>) {
        if let Some(pipeline) = self.pipeline().filter(|_| !tickets.is_empty()) {
            pipeline.publish_released(&tickets).await;
        }
    }

    /// Publishes chunks that other nodes have created after the given one.
    pub(crate) async fn look_for_chunks(&self, after: ChunkId) {
        if let Some(pipeline) = self.pipeline() {
            pipeline.look_for_chunks(after).await;
        }
    }

    /// Publishes all chunks again ahead of schedule.
    pub(crate) fn look_for_all_chunks(&self) {
        if let Some(pipeline) = self.pipeline() {
            pipeline.look_for_all_chunks();
        }
    }

    /// Looks for campaigns accepted by other nodes, if that is due. `has_producers` is true if any node expands an audience.
    pub(crate) async fn look_for_work(&self, has_producers: bool) {
        if let Some(pipeline) = self.pipeline() {
            pipeline.look_for_work(has_producers).await;
        }
    }

    /// Parks a lane after a report of its push service to another node.
    pub(crate) fn park(&self, key: (AppId, ProviderKind), until: Timestamp, reason: Reason) {
        if let Some(pipeline) = self.pipeline() {
            pipeline.park(key, until, reason);
        }
    }

    /// Lists the parked lanes of this node, at most `max`.
    pub(crate) fn parked_lanes(&self, max: usize) -> Vec<ParkedLane> {
        self.pipeline().map(|pipeline| pipeline.parked_lanes(max)).unwrap_or_default()
    }

    /// Stops leasing, settles work in flight, and ends within `time`.
    pub(crate) async fn drain(&self, time: Duration) {
        let publisher = self.publisher.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(publisher) = publisher {
            // First: it holds the pipeline. Unpublished tickets are published after the next start.
            publisher.abort();
            let _aborted_on_purpose = publisher.await;
        }
        let taken = self.pipeline.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(pipeline) = taken else { return };
        // Its last writes may take a little longer; of a short time at least half is for the work.
        pipeline.drain(time.saturating_sub(LAST_WRITES).max(time / 2)).await;
    }

    fn pipeline(&self) -> Option<Arc<Pipeline>> {
        self.pipeline.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PipelinePort for PipelineHandle {
    fn published(&self, tickets: Vec<Ticket>) {
        if let Some(pipeline) = self.pipeline() {
            // Counted before they wait for publication: otherwise a concurrent check would see their room as free.
            pipeline.note_queued(&tickets);
        }
        if !tickets.is_empty() && self.tickets.try_send(tickets).is_err() {
            tracing::debug!("tickets are not published now: the janitor publishes them later");
        }
    }

    fn wake(&self) {
        if let Some(pipeline) = self.pipeline() {
            pipeline.wake();
        }
    }

    fn hold(&self, app: AppId, message: MessageId) {
        self.gateway.hold(app, message);
    }

    fn release(&self, app: AppId, message: MessageId) {
        self.gateway.release(app, message);
    }

    fn cut_off(&self, app: AppId, device: Option<DeviceId>) {
        match device {
            Some(device) => self.gateway.cut_off(device),
            None => self.gateway.cut_off_app(app),
        }
    }

    fn changed(&self, app: AppId, provider: ProviderKind) {
        if let Some(pipeline) = self.pipeline() {
            pipeline.changed(app, provider);
        }
    }

    fn accepting(&self) -> AcceptGuard {
        self.backlog.accepting()
    }

    fn has_room(&self, app: AppId, before: u64) -> bool {
        self.pipeline().is_none_or(|pipeline| pipeline.has_room(app, before))
    }

    fn full_lanes(&self, app: AppId) -> Vec<FullLane> {
        self.pipeline().map(|pipeline| pipeline.full_lanes(app)).unwrap_or_default()
    }

    fn parked(&self, app: AppId, provider: ProviderKind) -> Option<ParkReason> {
        let parking = self.pipeline()?.parking(app, provider)?;
        Some(ParkReason { reason: parking.reason, detail: parking.detail, until: parking.until })
    }

    fn check(&self, app: AppId, provider: ProviderKind) -> BoxFuture<'_, Result<(), CheckFailure>> {
        let Some(pipeline) = self.pipeline() else {
            let cause = "the server is stopping: try again when it runs".to_owned();
            return Box::pin(std::future::ready(Err(CheckFailure { host: None, cause })));
        };
        Box::pin(async move {
            let tried = pipeline.check(app, provider).await;
            tried.map_err(|(host, cause)| CheckFailure { host, cause })
        })
    }

    fn forget_app(&self, app: AppId) {
        if let Some(pipeline) = self.pipeline() {
            pipeline.forget_app(app);
        }
    }

    fn quota(&self, app: AppId, provider: ProviderKind) -> Option<QuotaStats> {
        self.pipeline()?.quota(app, provider)
    }

    fn shared_quota(&self, key: (AppId, ProviderKind), shared: (u32, Level)) -> Option<QuotaStats> {
        Some(self.pipeline()?.shared_quota(key, shared))
    }
}

/// Publishes accepted tickets, many at once under load.
async fn publish(pipeline: Arc<Pipeline>, mut waiting: mpsc::Receiver<Vec<Ticket>>) {
    let mut batches = Vec::new();
    while waiting.recv_many(&mut batches, TOGETHER_MAX_COUNT).await > 0 {
        let tickets: Vec<Ticket> = batches.drain(..).flatten().collect();
        pipeline.published(&tickets).await;
    }
}
