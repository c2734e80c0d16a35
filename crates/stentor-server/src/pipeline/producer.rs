//! Producers: one for each campaign and provider that expands, each with its own cursor, side by side.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stentor_core::ports::store::{Expanded, Expansion, ProducerTask, StoreError};
use tokio::sync::futures::Notified;
use tokio::task::{Id, JoinSet};

use super::shared::PipelineContext;

/// How long a producer waits after a failure, and at most for progress.
const PAUSE: Duration = Duration::from_millis(500);
/// Pauses for which a producer does not look at its books while its lane rests.
const RESTING_MAX_PAUSES: u32 = 60;
/// Between two looks at the books at least: each settlement would otherwise have every producer read them.
const BREATH: Duration = Duration::from_millis(3);

/// Starts a producer for each campaign and provider that needs one, until told to stop.
pub(crate) async fn run(shared: Arc<PipelineContext>) {
    let mut producers =
        ProducerSupervisor { shared, running: HashSet::new(), names: HashMap::new(), tasks: JoinSet::new() };
    let interval = Duration::from_millis(producers.shared.config.producers_interval_ms);
    while !producers.shared.stop.is_cancelled() {
        producers.start_missing().await;
        let shared = producers.shared.clone();
        tokio::select! {
            () = shared.stop.cancelled() => {}
            // A wake-up that came during the look left a permit.
            () = shared.wakeups.producers.notified() => {}
            () = tokio::time::sleep(interval) => {}
            Some(ended) = producers.tasks.join_next_with_id() => producers.note_end(ended),
        }
    }
    while producers.tasks.join_next().await.is_some() {}
}

struct ProducerSupervisor {
    shared: Arc<PipelineContext>,
    running: HashSet<ProducerTask>,
    names: HashMap<Id, ProducerTask>,
    tasks: JoinSet<()>,
}

impl ProducerSupervisor {
    async fn start_missing(&mut self) {
        // Those that have ended first: a campaign that was paused and goes on would find its former producer running.
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.note_end(ended);
        }
        let tasks = match self.shared.store.producers().await {
            Ok(tasks) => tasks,
            Err(error) => return tracing::warn!(%error, "producers could not be listed"),
        };
        for task in tasks {
            // The list names those that run here as well.
            if self.running.insert(task) {
                let shared = self.shared.clone();
                let part = format!("producer of {}", task.provider);
                let work = produce(shared.clone(), task);
                let handle = self.tasks.spawn(async move { shared.supervisor.passing(part, work).await });
                self.names.insert(handle.id(), task);
            }
        }
        self.count();
    }

    fn note_end(&mut self, ended: Result<(Id, ()), tokio::task::JoinError>) {
        let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
        if let Some(task) = self.names.remove(&id) {
            self.running.remove(&task);
        }
        self.count();
    }

    fn count(&self) {
        self.shared.producers.store(self.running.len(), Ordering::Relaxed);
    }
}

/// Expands one audience to its end; a paused campaign's producer ends too, and is started again when it goes on.
async fn produce(shared: Arc<PipelineContext>, task: ProducerTask) {
    while !shared.stop.is_cancelled() {
        // Hears what settles from here on, also while the books are read.
        let progress = shared.wakeups.progress.notified();
        match step(&shared, task).await {
            Ok(Some(expanded)) => {
                // Counted before they are published, so that the next step, and whoever accepts meanwhile, knows of
                // them.
                shared.note_queued(&expanded.tickets);
                shared.publish(&expanded.tickets).await;
                if expanded.done || expanded.paused {
                    return;
                }
            }
            Ok(None) => {
                wait_for_progress(&shared, progress).await;
                wait_while_resting(&shared, task).await;
            }
            Err(StoreError::NotFound(_)) => return,
            Err(error @ StoreError::Damaged(_)) if give_up(&shared, task, &error).await => return,
            Err(error) => {
                tracing::warn!(%error, message = %task.message, provider = %task.provider, "expanding failed");
                wait_for_progress(&shared, progress).await;
            }
        }
    }
}

/// Stops a campaign of which nothing more can be found out; returns whether that was written.
async fn give_up(shared: &PipelineContext, task: ProducerTask, why: &StoreError) -> bool {
    match shared.store.give_up_producer(task, shared.now()).await {
        Ok(()) => {
            tracing::error!(%why, message = %task.message, provider = %task.provider, "an audience cannot be expanded: its campaign is stopped there");
            shared.wakeups.progress.notify_waiters();
            true
        }
        Err(error) => {
            tracing::warn!(%error, message = %task.message, "a damaged campaign could not be stopped");
            false
        }
    }
}

/// Makes the next chunks, unless enough of the campaign waits already, or of all.
async fn step(shared: &PipelineContext, task: ProducerTask) -> Result<Option<Expanded>, StoreError> {
    if !shared.may_expand((task.app, task.provider)) {
        return Ok(None);
    }
    let config = &shared.config;
    if shared.store.queued_deliveries(task).await? >= config.producer_max_queued_deliveries {
        return Ok(None);
    }
    let how = Expansion {
        chunk_max_devices: config.chunk_max_devices,
        max_chunks: config.expand_max_chunks,
        now: shared.now(),
    };
    shared.store.expand(task, how).await.map(Some)
}

/// Waits while the lane rests, for some time: nothing of it can progress, whatever others settle.
async fn wait_while_resting(shared: &PipelineContext, task: ProducerTask) {
    for _ in 0..RESTING_MAX_PAUSES {
        if shared.providers.parking((task.app, task.provider)).is_none() {
            return;
        }
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn wait_for_progress(shared: &PipelineContext, progress: Notified<'_>) {
    // `progress` was made before the look and hears what comes during this pause, too.
    tokio::time::sleep(BREATH).await;
    tokio::select! {
        () = shared.stop.cancelled() => {}
        () = progress => {}
        () = tokio::time::sleep(PAUSE) => {}
    }
}
