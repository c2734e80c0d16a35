//! Producers: one for each campaign and provider that expands, each with its own cursor, side by side.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stentor_core::device::ProviderKind;
use stentor_core::ports::store::{Expanded, Expansion, ProducerTask, StoreError};
use tokio::sync::futures::Notified;
use tokio::task::{Id, JoinSet};

use super::config::PipelineConfig;
use super::shared::PipelineContext;

/// How long a producer waits after a failure, and at most for progress.
const PAUSE: Duration = Duration::from_millis(500);
/// Pauses for which a producer does not look at its books while its lane rests.
const RESTING_MAX_PAUSES: u32 = 60;
/// Between two looks at the books at least: each settlement would otherwise have every producer read them.
const BREATH: Duration = Duration::from_millis(3);
/// Devices in the first chunks of an audience: nobody knows yet how many it has, and few may be in doubt at once.
const CHUNK_MIN_DEVICES: usize = 25;
/// Chunks are no larger than this part of what was expanded before them.
const CHUNK_PART: usize = 64;

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
    let mut devices = 0;
    while !shared.stop.is_cancelled() {
        // Hears what settles from here on, also while the books are read.
        let progress = shared.wakeups.progress.notified();
        let (chunk_max_devices, max_chunks) = chunks(&shared.config, task.provider, devices);
        let how = Expansion { chunk_max_devices, max_chunks, now: shared.now() };
        match step(&shared, task, how).await {
            Ok(Some(expanded)) => {
                devices += expanded.tickets.len() * chunk_max_devices;
                // Before anybody can lease them.
                shared.audiences.note((task.app, task.provider), task.message, devices as u64);
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
async fn step(
    shared: &PipelineContext,
    task: ProducerTask,
    how: Expansion,
) -> Result<Option<Expanded>, StoreError> {
    if !shared.may_expand((task.app, task.provider)) {
        return Ok(None);
    }
    if shared.store.queued_deliveries(task).await? >= shared.config.producer_max_queued_deliveries {
        return Ok(None);
    }
    shared.store.expand(task, how).await.map(Some)
}

/// Returns the size of the next chunks and their number, after so many devices: a small audience is cut into small chunks, lest one
/// of them be a large part of it, and the chunks of a large one soon have their full size.
fn chunks(config: &PipelineConfig, provider: ProviderKind, devices: usize) -> (usize, usize) {
    let most = config.chunk_max_devices;
    let size = match provider {
        // Nothing is given to our own devices before it is settled: a crash leaves none of it in doubt.
        ProviderKind::Gateway => most,
        _ => (devices / CHUNK_PART).clamp(CHUNK_MIN_DEVICES.min(most), most),
    };
    // No more devices in one transaction than in one of full chunks.
    let whole = config.expand_max_chunks * most / size;
    (size, if size == most { whole } else { whole.min(CHUNK_PART) })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Expands an audience without an end; returns the sizes of its chunks, up to one that is full.
    fn sizes(config: &PipelineConfig) -> Vec<usize> {
        let (mut devices, mut sizes) = (0, Vec::new());
        while sizes.last() != Some(&config.chunk_max_devices) {
            let (size, count) = chunks(config, ProviderKind::Fcm, devices);
            assert!(size * count <= config.chunk_max_devices * config.expand_max_chunks);
            devices += size * count;
            sizes.extend(vec![size; count]);
        }
        sizes
    }

    #[test]
    fn no_chunk_is_a_large_part_of_its_audience_and_those_of_a_large_one_are_soon_full() {
        let sizes = sizes(&PipelineConfig::default());
        let mut before = 0;
        for size in &sizes {
            assert!(*size == CHUNK_MIN_DEVICES || size * CHUNK_PART <= before, "{size} after {before}");
            before += size;
        }
        assert!(sizes.len() < 450 && before < 100_000, "{} chunks, {before} devices", sizes.len());
    }

    #[test]
    fn chunks_for_our_own_devices_are_full_from_the_first_on() {
        let config = PipelineConfig::default();
        assert_eq!(chunks(&config, ProviderKind::Gateway, 0), (1_000, config.expand_max_chunks));
    }

    #[test]
    fn chunks_are_never_larger_than_they_may_be() {
        let config = PipelineConfig { chunk_max_devices: 7, ..PipelineConfig::default() };
        assert_eq!(chunks(&config, ProviderKind::Apns, 0), (7, config.expand_max_chunks));
    }
}
