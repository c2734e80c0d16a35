//! The consumers of a dispatcher: spawned when all are busy, reaped when idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::consumer::{self, Busy, SendJob};
use super::due_index::DispatcherKey;
use super::shared::PipelineContext;

/// Consumers of one dispatcher.
pub(crate) struct ConsumerPool {
    shared: Arc<PipelineContext>,
    dispatcher: DispatcherKey,
    consumers: Vec<Consumer>,
    tasks: JoinSet<()>,
}

struct Consumer {
    jobs: mpsc::Sender<SendJob>,
    busy: Arc<AtomicUsize>,
    idle_since: Option<Instant>,
}

impl Consumer {
    fn busy(&self) -> usize {
        self.busy.load(Ordering::Acquire)
    }
}

impl ConsumerPool {
    pub(crate) fn new(shared: Arc<PipelineContext>, dispatcher: DispatcherKey) -> Self {
        Self { shared, dispatcher, consumers: Vec::new(), tasks: JoinSet::new() }
    }

    /// Returns the number of consumers.
    pub(crate) fn len(&self) -> usize {
        self.consumers.len()
    }

    /// Returns the number of their batches in flight.
    pub(crate) fn busy(&self) -> usize {
        self.consumers.iter().map(Consumer::busy).sum()
    }

    /// Returns the most batches that all consumers may have in flight.
    pub(crate) fn max_batches(&self) -> usize {
        self.shared.config.consumers_max * self.shared.config.consumer_max_batches
    }

    /// Hands a job to the least busy consumer, or to a new one when all are busy and more are allowed.
    pub(crate) fn hand(&mut self, job: impl FnOnce(Busy) -> SendJob) {
        let least = self.consumers.iter().enumerate().min_by_key(|(_, one)| one.busy());
        let full = self.consumers.len() >= self.shared.config.consumers_max;
        let at = match least {
            Some((at, one)) if one.busy() == 0 || full => at,
            _ => self.spawn(),
        };
        let consumer = &mut self.consumers[at];
        consumer.idle_since = None;
        // Counted before it is sent, because the consumer may finish the job before this thread continues.
        let busy = Busy::of(&consumer.busy);
        if consumer.jobs.try_send(job(busy)).is_err() {
            tracing::error!(provider = %self.dispatcher.0, "a consumer ended; its chunk waits until its lease expires");
        }
    }

    /// Ends consumers that have been idle for long enough, down to the minimum.
    pub(crate) fn reap_idle(&mut self) {
        // The results of finished tasks stay in memory until they are joined.
        while self.tasks.try_join_next().is_some() {}
        let idle_for = Duration::from_millis(self.shared.config.consumer_idle_ms);
        let min = self.shared.config.consumers_min;
        let now = Instant::now();
        let mut left = self.consumers.len();
        self.consumers.retain_mut(|one| {
            one.idle_since = if one.busy() == 0 { one.idle_since.or(Some(now)) } else { None };
            let idle = one.idle_since.is_some_and(|since| now.duration_since(since) >= idle_for);
            // A consumer with an ended task is removed regardless of the minimum: its jobs would wait for their leases to expire.
            let goes = one.jobs.is_closed() || idle && left > min;
            left -= usize::from(goes);
            !goes
        });
    }

    /// Waits until all consumers have finished their jobs.
    pub(crate) async fn finish(&mut self) {
        // Drops the senders first: a consumer ends when no more jobs can arrive.
        self.consumers.clear();
        while self.tasks.join_next().await.is_some() {}
    }

    fn spawn(&mut self) -> usize {
        let (jobs, inbox) = mpsc::channel(2 * self.shared.config.consumer_max_batches);
        let busy = Arc::new(AtomicUsize::new(0));
        let shared = self.shared.clone();
        let work = consumer::run(shared.clone(), self.dispatcher, inbox);
        let part = format!("consumer of {}", self.dispatcher.0);
        self.tasks.spawn(async move { shared.supervisor.passing(part, work).await });
        self.consumers.push(Consumer { jobs, busy, idle_since: None });
        self.consumers.len() - 1
    }
}
