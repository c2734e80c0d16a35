//! The status of the server: its readiness, and the figures of its parts.

mod show;

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::{LaneDepth, Queue};
use stentor_core::ports::store::{StatusStore, StoreFigures, WriteProof};
use stentor_core::repetition::RepeatedWord;
use stentor_core::time::Timestamp;
use stentor_gateway::Gateway;
use tokio::sync::Mutex;
use tokio::time::error::Elapsed;

use crate::config::Config;
use crate::listen::ListenerState;
use crate::operation_meter::OperationMeter;
use crate::pipeline::{Dependencies, Pipeline};

/// Longest wait for the reply of a part.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for which a reading of the queue's depths is reused, so that observers do not slow its writer down.
const DEPTHS_FRESH: Duration = Duration::from_secs(1);

/// Time for which a readiness check is reused.
const READINESS_FRESH: Duration = Duration::from_millis(100);

/// The last reading of the queue's depths, and its time. The lock is held while the queue is queried, so concurrent callers wait for the
/// result.
type LastDepths = Mutex<Option<(Instant, Option<Vec<LaneDepth>>)>>;

/// The status of the server and the parts that it queries.
pub struct ServerStatus {
    /// The store.
    pub store: Arc<dyn StatusStore>,
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Start time of the server.
    pub started: Instant,
    /// The pipeline.
    pub pipeline: Arc<Pipeline>,
    /// The connections of devices.
    pub(crate) gateway: Gateway,
    /// The settings in force.
    pub config: Config,
    /// The listener.
    pub(crate) listener: ListenerState,
    /// Counts of operations.
    pub operations: OperationMeter,
    last_depths: LastDepths,
    /// The last readiness check and its end. The lock is held during a check, so concurrent callers wait for the result.
    last_readiness: Mutex<Option<(Instant, Readiness)>>,
}

/// The readiness of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// The store answers and accepts writes.
    pub store: bool,
    /// The queue answers and accepts writes.
    pub queue: bool,
    /// The store keeps up with the receipts of devices.
    pub receipts: bool,
    /// Failed parts of the pipeline. After a failure nothing more is sent.
    pub failed: Vec<String>,
    /// True while credentials get their access tokens and connections.
    pub getting_ready: bool,
    /// Age of the oldest chunk that is due and not leased, in seconds.
    pub oldest_ready_seconds: u64,
    /// Chunks due and not leased.
    pub ready_chunks: u64,
}

impl Readiness {
    /// Returns true if all parts answer and none has failed.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.store && self.queue && self.receipts && self.failed.is_empty()
    }
}

impl ServerStatus {
    /// Combines the parts; the uptime counts from now.
    pub(crate) fn new(
        dependencies: &Dependencies,
        pipeline: Arc<Pipeline>,
        gateway: Gateway,
        config: Config,
        listener: ListenerState,
    ) -> Self {
        Self {
            store: dependencies.store.clone(),
            queue: dependencies.queue.clone(),
            clock: dependencies.clock.clone(),
            started: Instant::now(),
            pipeline,
            gateway,
            config,
            listener,
            operations: OperationMeter::default(),
            last_depths: Mutex::default(),
            last_readiness: Mutex::default(),
        }
    }

    /// Returns the readiness of the server, at most a tenth of a second old.
    pub async fn readiness(&self) -> Readiness {
        let mut last = self.last_readiness.lock().await;
        if let Some((at, readiness)) = &*last
            && at.elapsed() < READINESS_FRESH
        {
            return readiness.clone();
        }
        let readiness = self.look().await;
        *last = Some((Instant::now(), readiness.clone()));
        readiness
    }

    /// Queries store and queue. If nothing was written for a second, tests them with a small write.
    async fn look(&self) -> Readiness {
        let (answers, depths) = tokio::join!(self.store_answers(), self.depths());
        let (store_keeps, queue_keeps) = self.keep().await;
        let now = self.clock.now();
        let lanes = depths.as_deref().unwrap_or_default();
        Readiness {
            store: answers && store_keeps,
            queue: depths.is_some() && queue_keeps,
            receipts: self.gateway.keeps_up(),
            failed: self.pipeline.failures().into_iter().map(|failure| failure.part).collect(),
            oldest_ready_seconds: oldest_ready(lanes, now).as_secs(),
            getting_ready: self.pipeline.is_getting_ready(),
            ready_chunks: lanes.iter().map(|lane| lane.ready).sum(),
        }
    }

    /// Returns the depths of the queue, at most a second old; `None` if it does not answer.
    pub async fn depths(&self) -> Option<Vec<LaneDepth>> {
        let mut last = self.last_depths.lock().await;
        if let Some((at, depths)) = &*last
            && at.elapsed() < DEPTHS_FRESH
        {
            return depths.clone();
        }
        let result = tokio::time::timeout(PROBE_TIMEOUT, self.queue.depths(self.clock.now())).await;
        let depths = answer("the queue", result);
        *last = Some((Instant::now(), depths.clone()));
        depths
    }

    /// Returns the figures of the store about damage and its log; `None` if it does not answer.
    pub async fn store_figures(&self) -> Option<StoreFigures> {
        let figures = tokio::time::timeout(PROBE_TIMEOUT, self.store.figures()).await;
        figures.ok()?.ok()
    }

    /// Returns the uptime.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns for store and queue if they accept writes.
    async fn keep(&self) -> (bool, bool) {
        let (store, queue) = tokio::join!(
            tokio::time::timeout(PROBE_TIMEOUT, self.store.keeps(WriteProof::Recent)),
            tokio::time::timeout(PROBE_TIMEOUT, self.queue.keeps()),
        );
        (answer("the store", store).is_some(), answer("the queue", queue).is_some())
    }

    async fn store_answers(&self) -> bool {
        answer("the store", tokio::time::timeout(PROBE_TIMEOUT, self.store.last_id()).await).is_some()
    }
}

/// Returns a part's reply. If there is none, logs the reason, rate limited, because the readiness response only states that the part is not
/// ready.
fn answer<T, E: Display>(part: &str, result: Result<Result<T, E>, Elapsed>) -> Option<T> {
    static NOT_WELL: RepeatedWord = RepeatedWord::new();
    let why = match result {
        Ok(Ok(answer)) => return Some(answer),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it gave no answer for {} ms", PROBE_TIMEOUT.as_millis()),
    };
    if let Some(kept_back) = NOT_WELL.may_say(Instant::now()) {
        tracing::warn!(part, why, kept_back, "the server is not ready");
    }
    None
}

/// Returns the age of the oldest chunk that is due and not leased.
#[must_use]
pub fn oldest_ready(lanes: &[LaneDepth], now: Timestamp) -> Duration {
    let oldest = lanes.iter().filter_map(|lane| lane.oldest_due).min();
    oldest.map(|due| now.since(due)).unwrap_or_default()
}
