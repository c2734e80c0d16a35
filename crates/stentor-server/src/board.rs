//! What the server knows of itself: whether it is ready, what its parts are doing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stentor_core::ports::clock::{Clock, Timestamp};
use stentor_core::ports::queue::{LaneDepth, Queue};
use stentor_core::ports::store::Store;
use tokio::sync::Mutex;

use crate::app::PipelineBelt;
use crate::config::Config;

/// Longest time that a part may take to say that it is well.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an answer of the queue does for everybody who asks: its writer must not be slowed by who looks on.
const DEPTHS_FRESH: Duration = Duration::from_secs(1);

/// The queue's last answer and when it came; whoever asks meanwhile waits for it.
type LastDepths = Mutex<Option<(Instant, Option<Vec<LaneDepth>>)>>;

/// The parts that are asked.
pub struct Board {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Since when the server runs.
    pub started: Instant,
    /// The pipeline.
    pub belt: Arc<PipelineBelt>,
    /// The settings in force.
    pub config: Config,
    last_depths: LastDepths,
}

/// Whether the server can do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// The store answers.
    pub store: bool,
    /// The queue answers.
    pub queue: bool,
    /// Parts of the pipeline that failed; with one of them nothing is sent.
    pub failed: Vec<String>,
    /// Credentials get their access tokens and connections.
    pub getting_ready: bool,
    /// Age of the oldest chunk that is due and not leased, in seconds.
    pub oldest_ready_seconds: u64,
    /// Chunks due and not leased.
    pub ready_chunks: u64,
}

impl Readiness {
    /// Tells whether everything answers and moves.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.store && self.queue && self.failed.is_empty()
    }
}

impl Board {
    /// Puts the parts together; the server runs from now.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        queue: Arc<dyn Queue>,
        clock: Arc<dyn Clock>,
        belt: Arc<PipelineBelt>,
        config: Config,
    ) -> Self {
        let (started, last_depths) = (Instant::now(), Mutex::default());
        Self { store, queue, clock, started, belt, config, last_depths }
    }

    /// Asks store and queue.
    pub async fn readiness(&self) -> Readiness {
        let (store, depths) = tokio::join!(self.store_answers(), self.depths());
        let now = self.clock.now();
        let lanes = depths.as_deref().unwrap_or_default();
        Readiness {
            store,
            queue: depths.is_some(),
            failed: self.belt.failures().into_iter().map(|failure| failure.part).collect(),
            oldest_ready_seconds: oldest_ready(lanes, now).as_secs(),
            getting_ready: self.belt.is_getting_ready(),
            ready_chunks: lanes.iter().map(|lane| lane.ready).sum(),
        }
    }

    /// Tells how full the queue is, as of a second ago at most; `None` when it does not answer.
    pub async fn depths(&self) -> Option<Vec<LaneDepth>> {
        let mut last = self.last_depths.lock().await;
        if let Some((at, depths)) = &*last
            && at.elapsed() < DEPTHS_FRESH
        {
            return depths.clone();
        }
        let asked = tokio::time::timeout(PROBE_TIMEOUT, self.queue.depths(self.clock.now())).await;
        let depths = asked.ok().and_then(Result::ok);
        *last = Some((Instant::now(), depths.clone()));
        depths
    }

    /// Counts the chunks that were set aside; `None` when the store does not answer.
    pub async fn damaged_chunks(&self) -> Option<u64> {
        let asked = tokio::time::timeout(PROBE_TIMEOUT, self.store.set_aside_count()).await;
        asked.ok()?.ok()
    }

    /// Tells how long the store's write-ahead log is; `None` when the store does not answer.
    pub async fn log_bytes(&self) -> Option<u64> {
        self.store.log_bytes().await.ok()
    }

    /// Tells how long the server runs.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    async fn store_answers(&self) -> bool {
        matches!(tokio::time::timeout(PROBE_TIMEOUT, self.store.last_id()).await, Ok(Ok(_)))
    }
}

/// Gives the age of the oldest chunk that is due and not leased.
#[must_use]
pub fn oldest_ready(lanes: &[LaneDepth], now: Timestamp) -> Duration {
    let oldest = lanes.iter().filter_map(|lane| lane.oldest_due).min();
    oldest.map(|due| now.since(due)).unwrap_or_default()
}
