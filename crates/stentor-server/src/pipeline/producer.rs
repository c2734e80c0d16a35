//! Producers: one for each campaign and provider that expands, each with its own cursor. They run concurrently.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stentor_core::device::ProviderKind;
use stentor_core::ports::store::{BrokenWork, Expanded, Expansion, ProducerTask, StoreError};
use tokio::sync::futures::Notified;
use tokio::task::{Id, JoinSet};

use super::config::PipelineConfig;
use super::shared::PipelineContext;

/// Pause after a failure, and the longest wait for progress.
const PAUSE: Duration = Duration::from_millis(500);
/// Most pauses for which a producer does not read its books while its lane rests.
const RESTING_MAX_PAUSES: u32 = 60;
/// Shortest time between two readings of the books. Without it, every producer would read them after each settlement.
const BREATH: Duration = Duration::from_millis(3);
/// Devices in the first chunks of an audience. Its size is not known yet, and few deliveries may be in doubt at once.
const CHUNK_MIN_DEVICES: usize = 25;
/// A chunk is at most one part in this many of the devices expanded before it.
const CHUNK_PART: usize = 64;

/// Starts a producer for each campaign and provider that needs one, until the pipeline stops.
pub(crate) async fn run(shared: Arc<PipelineContext>) {
    let mut producers =
        ProducerSupervisor { shared, running: HashSet::new(), names: HashMap::new(), tasks: JoinSet::new() };
    let interval = Duration::from_millis(producers.shared.config.producers_interval_ms);
    while !producers.shared.stop.is_cancelled() {
        producers.start_missing().await;
        let shared = producers.shared.clone();
        tokio::select! {
            () = shared.stop.cancelled() => {}
            // A wake-up sent during the check left a permit.
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
        // Ended producers are removed first; otherwise a campaign that was paused and resumed would seem to have a running producer.
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.note_end(ended);
        }
        let tasks = match self.shared.store.producers().await {
            Ok(tasks) => tasks,
            Err(error) => return tracing::warn!(%error, "producers could not be listed"),
        };
        for task in tasks {
            // The store also lists the producers that run here.
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

/// Expands one audience to its end. The producer of a paused campaign ends too, and is started again when the campaign resumes.
async fn produce(shared: Arc<PipelineContext>, task: ProducerTask) {
    let mut devices = 0;
    while !shared.stop.is_cancelled() {
        // Created first, to be notified of settlements also while the books are read.
        let progress = shared.wakeups.progress.notified();
        let (chunk_max_devices, max_chunks) = chunks(&shared.config, task.provider, devices);
        let how = Expansion { chunk_max_devices, max_chunks, now: shared.now() };
        match step(&shared, task, how).await {
            Ok(Some(expanded)) => {
                devices += expanded.tickets.len() * chunk_max_devices;
                // Before the chunks can be leased.
                shared.audiences.note((task.app, task.provider), task.message, devices as u64);
                // Counted before they are published, so that the next step and concurrent requests take them into account.
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

/// Stops a campaign with damaged data. Returns true if that was written.
async fn give_up(shared: &PipelineContext, task: ProducerTask, why: &StoreError) -> bool {
    match shared.store.quarantine(BrokenWork::Producer(task), shared.now()).await {
        Ok(_) => {
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

/// Makes the next chunks, unless enough deliveries of the campaign, or of all campaigns, are queued.
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

/// Returns the size of the next chunks and their number, after `devices` devices. A small audience gets small chunks, so that none is a
/// large part of it. The chunks of a large audience soon reach the full size.
fn chunks(config: &PipelineConfig, provider: ProviderKind, devices: usize) -> (usize, usize) {
    let most = config.chunk_max_devices;
    let size = match provider {
        // Deliveries to our own devices are settled before they are handed over, so a crash leaves none of them in doubt.
        ProviderKind::Gateway => most,
        _ => (devices / CHUNK_PART).clamp(CHUNK_MIN_DEVICES.min(most), most),
    };
    // A transaction has no more devices than one of full chunks.
    let whole = config.expand_max_chunks * most / size;
    (size, if size == most { whole } else { whole.min(CHUNK_PART) })
}

/// Waits for a limited time while the lane rests, because none of its deliveries can progress.
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
    // `progress` was created before the books were read and also receives notifications during this pause.
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

    /// Expands an endless audience. Returns the sizes of its chunks up to the first full one.
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
