//! The state shared by all parts of the pipeline.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, IdSource};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::{LaneDepth, Queue, QueueError, QueueLease};
use stentor_core::ports::settled::SettledFeed;
use stentor_core::ports::store::{
    BrokenWork, LeaseTerms, NodeEvent, QueuedFilter, Recovery, StoreError, WorkStore,
};
use stentor_core::repetition::RepeatedWord;
use stentor_core::time::Timestamp;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::{AdmissionControl, BacklogSize, FullLane};
use super::at_once_places::AtOncePlaces;
use super::audiences::Audiences;
use super::backlog::Backlog;
use super::budget::NodeBudget;
use super::clock_jump::ClockJumpDetector;
use super::config::PipelineConfig;
use super::dependencies::Dependencies;
use super::due_index::DueIndex;
use super::lease_table::LeaseTable;
use super::leased_inbox::LeasedInbox;
use super::node_standing::NodeStanding;
use super::provider_table::{BreakerRules, Levels, ProviderKey, ProviderTable, RateLimiterRules};
use super::roles::{NodeRole, NodeRoles};
use super::settler_inbox::Settlers;
use super::stats::DispatchMeter;
use super::store_latency::StoreLatency;
use super::supervisor::Supervisor;

/// Most chunks for which failed leases are counted.
const REFUSED_MAX_COUNT: usize = 10_000;

/// State shared by the tasks of one pipeline.
pub(crate) struct PipelineContext {
    pub(crate) store: Arc<dyn WorkStore>,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<IdSource>,
    pub(crate) standing: Arc<NodeStanding>,
    pub(crate) roles: NodeRoles,
    pub(crate) shares_queue: bool,
    pub(crate) config: PipelineConfig,
    pub(crate) providers: Arc<ProviderTable>,
    pub(crate) due_index: DueIndex,
    pub(crate) budget: Arc<NodeBudget>,
    pub(crate) audiences: Audiences,
    pub(crate) lease_table: Arc<LeaseTable>,
    pub(crate) leased_inbox: LeasedInbox,
    pub(crate) at_once_places: AtOncePlaces,
    /// Messages whose chunks may be leased before they are known here. Their leases are new, so that no sweep needs to wait for them.
    pub(crate) acceptances: TaskTracker,
    pub(crate) store_latency: StoreLatency,
    pub(crate) meters: HashMap<ProviderKind, Arc<DispatchMeter>>,
    pub(crate) settlers: Settlers,
    pub(crate) settled_feed: Option<Arc<dyn SettledFeed>>,
    /// Cancelled when leasing and expanding end.
    pub(crate) stop: CancellationToken,
    /// Cancelled when batches are no longer waited for.
    pub(crate) cut: CancellationToken,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) wakeups: Wakeups,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) depths: Mutex<Vec<LaneDepth>>,
    admission: AdmissionControl,
    pub(crate) producers: AtomicUsize,
    /// True while credentials get their access tokens and connections, which happens once at the start.
    pub(crate) getting_ready: AtomicBool,
    pub(crate) stale: AtomicU64,
    pub(crate) store_retries: AtomicU64,
    pub(crate) quarantined: AtomicU64,
    /// Chunks that could not be leased while others could, with the number of failures.
    refused: Mutex<HashMap<ChunkId, u32>>,
    pub(crate) recovery: Recovery,
    /// Detects a clock that jumped forward.
    clock_jumps: Mutex<ClockJumpDetector>,
}

/// Wake-ups of sleeping parts.
#[derive(Default)]
pub(crate) struct Wakeups {
    /// A schedule, or a message for later, was accepted.
    pub(crate) scheduler: Notify,
    /// A message for later is due.
    pub(crate) starter: Notify,
    /// A campaign may need producers.
    pub(crate) producers: Notify,
    /// A chunk was settled.
    pub(crate) progress: Notify,
    /// A lane waits for its share of a quota.
    pub(crate) quotas: Notify,
    /// The queue refused tickets.
    pub(crate) republish: Notify,
}

/// The values with which one start of a pipeline begins.
pub(crate) struct PipelineStart {
    /// The work that the store took back from an earlier process.
    pub(crate) recovery: Recovery,
    /// The instant of the last thing that the store knew before this start.
    pub(crate) known: Timestamp,
    pub(crate) settlers: Settlers,
    /// The way of events to other nodes.
    pub(crate) event_sender: mpsc::Sender<NodeEvent>,
}

impl PipelineContext {
    /// Puts everything together.
    pub(crate) fn new(deps: &Dependencies, config: PipelineConfig, start: PipelineStart) -> Self {
        let PipelineStart { recovery, known, settlers, event_sender } = start;
        let rules = BreakerRules {
            probe_after: Duration::from_millis(config.credential_probe_ms),
            unanswered_max_attempts: config.unanswered_max_attempts,
            policy: config.retry(),
        };
        let limiter_rules = RateLimiterRules {
            ramp: Duration::from_millis(config.quota_ramp_ms),
            urgent_share_percent: config.urgent_share_percent,
            chunk_max_devices: config.chunk_max_devices as u64,
            is_shared: deps.standing.is_shared(),
        };
        let levels = Levels::open(deps.levels.as_deref());
        let (stop, cut) = (CancellationToken::new(), CancellationToken::new());
        let budget = if recovery.deliveries > 0 { NodeBudget::behind_crash } else { NodeBudget::new };
        Self {
            supervisor: Arc::new(Supervisor::new(stop.clone(), cut.clone())),
            providers: Arc::new(ProviderTable::new(
                deps.store.clone(),
                deps.factory.clone(),
                rules,
                limiter_rules,
                levels,
                event_sender,
            )),
            store: deps.store.clone(),
            queue: deps.queue.clone(),
            clock: deps.clock.clone(),
            ids: deps.ids.clone(),
            standing: deps.standing.clone(),
            roles: deps.roles.clone(),
            shares_queue: deps.shares_queue,
            due_index: DueIndex::new(),
            budget: budget(config.max_unsettled_deliveries, config.bulk_max_unsettled_deliveries()),
            audiences: Audiences::new(config.producer_max_queued_deliveries),
            lease_table: Arc::default(),
            leased_inbox: LeasedInbox::default(),
            at_once_places: AtOncePlaces::default(),
            acceptances: TaskTracker::new(),
            store_latency: StoreLatency::default(),
            meters: ProviderKind::ALL.iter().map(|kind| (*kind, Arc::default())).collect(),
            settlers,
            settled_feed: deps.settled_feed.clone(),
            stop,
            cut,
            wakeups: Wakeups::default(),
            backlog: Arc::default(),
            depths: Mutex::default(),
            admission: AdmissionControl::new(config.max_queued_chunks, config.parked_max_chunks()),
            producers: AtomicUsize::new(0),
            getting_ready: AtomicBool::new(false),
            stale: AtomicU64::new(0),
            store_retries: AtomicU64::new(0),
            quarantined: AtomicU64::new(0),
            refused: Mutex::default(),
            recovery,
            clock_jumps: Mutex::new(ClockJumpDetector::since(known, Instant::now())),
            config,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns true if the clock is trusted enough to delete old records.
    pub(crate) fn may_forget(&self) -> bool {
        self.clock_jumps.lock().look(Instant::now(), self.now())
    }

    /// Returns the terms of a lease that is taken now.
    pub(crate) fn lease(&self, class: TrafficClass) -> LeaseTerms {
        let now = self.now();
        LeaseTerms {
            instance: self.standing.instance(),
            until: now.plus(self.config.lease_for()),
            now,
            class,
        }
    }

    /// Returns the most deliveries of its audiences that a lane may have unsettled.
    pub(crate) fn share(&self, lane: ProviderKey) -> u64 {
        let is_careful = self.budget.is_careful();
        // A quota limits the deliveries in flight by itself, and must be usable at any latency.
        match !is_careful && self.providers.has_quota(lane) {
            true => u64::MAX,
            false => self.audiences.share(lane, is_careful),
        }
    }

    /// Returns a provider kind's counters.
    pub(crate) fn meter(&self, kind: ProviderKind) -> Arc<DispatchMeter> {
        self.meters.get(&kind).cloned().unwrap_or_default()
    }

    /// Publishes tickets and wakes their dispatchers. Tickets that the queue refuses are published again later.
    pub(crate) async fn publish(&self, tickets: &[Ticket]) {
        // Without the consumer role, a private queue would keep tickets that no dispatcher reads. The sending nodes find the chunks in the
        // store.
        if tickets.is_empty() || !self.publishes() {
            return;
        }
        if let Err(error) = self.queue.publish(tickets).await {
            report_queue_failure(&error, "publishing failed; the janitor will publish again");
            self.wakeups.republish.notify_one();
        }
        // After they are in the queue: a dispatcher woken earlier would find nothing there and use up the hint. Also after a failure,
        // because some may be in the queue.
        self.due_index.note(tickets);
    }

    /// Returns true if published tickets are consumed, here or on another node.
    pub(crate) fn publishes(&self) -> bool {
        self.shares_queue || self.roles.has(NodeRole::Consumer)
    }

    /// Publishes waiting chunks that were paused when their lease was tried. If the campaign was resumed while their tickets were still in
    /// the queue, publishing them then had no effect.
    pub(crate) async fn publish_resumed(&self, chunks: &[ChunkId]) {
        if chunks.is_empty() {
            return;
        }
        match self.store.queued(QueuedFilter::Among(chunks)).await {
            Ok(tickets) => self.publish(&tickets).await,
            Err(error) => {
                tracing::warn!(%error, "paused chunks could not be read again; the janitor will publish again");
                self.wakeups.republish.notify_one();
            }
        }
    }

    /// Removes tickets from the queue. After a failure they remain and are found void later.
    pub(crate) async fn ack(&self, leases: Vec<QueueLease>) {
        if leases.is_empty() {
            return;
        }
        self.admission.note_gone(leases.iter().map(|lease| lease.ticket.lane));
        if let Err(error) = self.queue.ack(leases).await {
            report_queue_failure(&error, "acknowledging failed; the tickets will be found void");
        }
    }

    /// Returns tickets to the queue. After a failure they wait for their lease to expire.
    pub(crate) async fn nack(&self, leases: Vec<QueueLease>, due_at: Timestamp) {
        if leases.is_empty() {
            return;
        }
        let lanes: Vec<Lane> = leases.iter().map(|lease| lease.ticket.lane).collect();
        if let Err(error) = self.queue.nack(leases, due_at).await {
            report_queue_failure(&error, "putting tickets back failed; their leases will run out");
        }
        // After they are in the queue, as in `publish`.
        lanes.into_iter().for_each(|lane| self.due_index.insert(lane, due_at));
    }

    /// Quarantines a chunk that can neither be leased nor settled, so that it delays no other. Returns true if that was written.
    pub(crate) async fn quarantine(&self, chunk: ChunkId, epoch: Option<u32>, why: &StoreError) -> bool {
        match self.store.quarantine(BrokenWork::Chunk { chunk, epoch }, self.now()).await {
            Ok(was_there) => {
                tracing::error!(%chunk, %why, was_there, "a chunk was set aside: its deliveries count as failed, damaged");
                self.quarantined.fetch_add(u64::from(was_there), Ordering::Relaxed);
                // After the write, so that a waiting producer reads the new books.
                self.wakeups.progress.notify_waiters();
                true
            }
            Err(error) => {
                tracing::error!(%chunk, %why, %error, "a chunk can be neither processed nor set aside");
                false
            }
        }
    }

    /// Records that a chunk could not be leased although others could. Returns the number of such failures.
    pub(crate) fn note_refused(&self, chunk: ChunkId) -> u32 {
        let mut refused = self.refused.lock();
        // Cleared all at once: a chunk counted from zero again only takes a few more tries until it is given up.
        if refused.len() >= REFUSED_MAX_COUNT {
            refused.clear();
        }
        let tries = refused.entry(chunk).or_default();
        *tries += 1;
        *tries
    }

    /// Counts chunks on their way to the queue.
    pub(crate) fn note_queued(&self, tickets: &[Ticket]) {
        self.admission.note(tickets);
    }

    /// Returns true if an app may queue another message that can be sent, in addition to `before` messages about to be accepted.
    pub(crate) fn has_room(&self, app: AppId, before: u64) -> bool {
        let BacklogSize { of_all, of_app } = self.backlog.size(app);
        // Messages that are sent at once are not in the queue, and count like those in it.
        let at_once = self.at_once_places.used(app);
        let (of_all, of_app) = (of_all + at_once.0 + before, of_app + at_once.1 + before);
        self.admission.is_open_to(app, BacklogSize { of_all, of_app })
    }

    /// Lists the credentials of an app that have reached their limit of waiting chunks.
    pub(crate) fn full_lanes(&self, app: AppId) -> Vec<FullLane> {
        let lanes = ProviderKind::ALL
            .iter()
            .filter_map(|kind| Some((*kind, self.admission.full_lane((app, *kind))?)));
        lanes
            .filter_map(|(provider, chunks)| {
                let detail = self.providers.parking((app, provider))?.detail;
                Some(FullLane { provider, chunks, detail })
            })
            .collect()
    }

    /// Returns true if more of an audience may be queued.
    pub(crate) fn may_expand(&self, key: ProviderKey) -> bool {
        self.has_room(key.0, 0) && self.admission.full_lane(key).is_none()
    }

    /// Stores the depths of the queue and passes them to admission control and the due index.
    pub(crate) fn note_depths(&self, depths: Vec<LaneDepth>) {
        self.admission.count(&depths, self.providers.resting());
        // After the counts, because woken producers query them.
        self.due_index.note_depths(&depths, self.now());
        *self.depths.lock() = depths;
    }

    /// Lists the lanes that rest and have tickets in the queue, one of which can serve as the probe.
    pub(crate) fn resting_lanes(&self) -> HashSet<Lane> {
        let resting = self.providers.resting();
        let depths = self.depths.lock();
        let lanes = depths.iter().map(|depth| depth.lane);
        lanes.filter(|lane| resting.contains(&(lane.app, lane.provider))).collect()
    }
}

/// Sleeps until the clock shows `instant`, at most `longest`.
pub(crate) async fn sleep_until(clock: &dyn Clock, instant: Timestamp, longest: Duration) {
    let wait = instant.since(clock.now()).min(longest);
    tokio::time::sleep(wait).await;
}

/// Logs a failure of the queue, rate limited, because one cause makes every lane fail.
pub(super) fn report_queue_failure(error: &QueueError, what: &str) {
    static QUEUE_TROUBLES: RepeatedWord = RepeatedWord::new();
    if let Some(kept_back) = QUEUE_TROUBLES.may_say(std::time::Instant::now()) {
        tracing::warn!(%error, kept_back, what, "the queue failed");
    }
}
