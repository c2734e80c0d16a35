//! What the server knows of itself: whether it is ready, what its parts are doing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stentor_core::ports::clock::{Clock, Timestamp};
use stentor_core::ports::queue::{LaneDepth, Queue};
use stentor_core::ports::store::Store;

use crate::app::PipelineBelt;
use crate::config::Config;

/// Longest time that a part may take to say that it is well.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

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
}

/// Whether the server can do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The store answers.
    pub store: bool,
    /// The queue answers.
    pub queue: bool,
    /// Age of the oldest chunk that is due and not leased, in seconds.
    pub oldest_ready_seconds: u64,
    /// Chunks due and not leased.
    pub ready_chunks: u64,
}

impl Readiness {
    /// Tells whether everything answers.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.store && self.queue
    }
}

impl Board {
    /// Asks store and queue.
    pub async fn readiness(&self) -> Readiness {
        let (store, depths) = tokio::join!(self.store_answers(), self.depths());
        let now = self.clock.now();
        let lanes = depths.as_deref().unwrap_or_default();
        Readiness {
            store,
            queue: depths.is_some(),
            oldest_ready_seconds: oldest_ready(lanes, now).as_secs(),
            ready_chunks: lanes.iter().map(|lane| lane.ready).sum(),
        }
    }

    /// Asks how full the queue is; `None` when it does not answer.
    pub async fn depths(&self) -> Option<Vec<LaneDepth>> {
        let depths = tokio::time::timeout(PROBE_TIMEOUT, self.queue.depths(self.clock.now())).await;
        depths.ok()?.ok()
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
