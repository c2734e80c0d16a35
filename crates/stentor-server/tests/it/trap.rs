//! A queue in which a call can be made to panic or to hang, as a bug in a real one might.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::{LaneDepth, Queue, QueueError, QueueLease};
use stentor_core::time::Timestamp;
use stentor_storage::sqlite::SqliteQueue;
use tokio::sync::watch;

/// The queue with its trap.
pub(crate) struct Trap {
    queue: Box<dyn Queue>,
    panics: Mutex<Option<&'static str>>,
    hangs: watch::Sender<Option<&'static str>>,
    calls: Mutex<Vec<&'static str>>,
    ends: watch::Sender<bool>,
    full: AtomicBool,
}

impl Default for Trap {
    fn default() -> Self {
        Self::over(Box::new(SqliteQueue::temporary().expect("a queue")))
    }
}

impl Trap {
    /// Sets it up over a queue.
    pub(crate) fn over(queue: Box<dyn Queue>) -> Self {
        let (hangs, ends) = (watch::Sender::default(), watch::Sender::default());
        Self {
            queue,
            panics: Mutex::default(),
            hangs,
            calls: Mutex::default(),
            ends,
            full: AtomicBool::new(false),
        }
    }

    /// Lets the next call of this name panic, once.
    pub(crate) fn panic_at(&self, call: &'static str) {
        *self.panics() = Some(call);
    }

    /// Lets calls of this name hang until another is named, or none.
    pub(crate) fn hang_at(&self, call: Option<&'static str>) {
        self.hangs.send_replace(call);
    }

    /// Simulates the death of the thread behind the queue, as seen from outside.
    pub(crate) fn lose_its_thread(&self) {
        self.ends.send_replace(true);
    }

    /// Lets the queue refuse new entries, or accept them again.
    pub(crate) fn be_full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// Counts the calls of a name so far.
    pub(crate) fn count(&self, call: &str) -> usize {
        self.calls.lock().expect("nobody panics inside").iter().filter(|one| **one == call).count()
    }

    async fn enter(&self, call: &'static str) -> &dyn Queue {
        self.calls.lock().expect("nobody panics inside").push(call);
        let springs = self.panics().take_if(|panics| *panics == call).is_some();
        assert!(!springs, "the queue has a bug in {call}");
        let mut hangs = self.hangs.subscribe();
        let free = hangs.wait_for(|hangs| *hangs != Some(call)).await;
        drop(free.expect("its sender is in here"));
        &*self.queue
    }

    /// Returns true once the call that was to panic has panicked.
    pub(crate) fn has_sprung(&self) -> bool {
        self.panics().is_none()
    }

    fn panics(&self) -> MutexGuard<'_, Option<&'static str>> {
        self.panics.lock().expect("nobody panics inside")
    }
}

#[async_trait]
impl Queue for Trap {
    async fn publish(&self, tickets: &[Ticket]) -> Result<(), QueueError> {
        self.enter("publish").await.publish(tickets).await
    }

    async fn lease(
        &self,
        lane: Lane,
        max: usize,
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<QueueLease>, QueueError> {
        self.enter("lease").await.lease(lane, max, lease_for, now).await
    }

    async fn extend(
        &self,
        leases: &[QueueLease],
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, QueueError> {
        self.enter("extend").await.extend(leases, lease_for, now).await
    }

    async fn ack(&self, leases: Vec<QueueLease>) -> Result<(), QueueError> {
        self.enter("ack").await.ack(leases).await
    }

    async fn nack(&self, leases: Vec<QueueLease>, due_at: Timestamp) -> Result<(), QueueError> {
        self.enter("nack").await.nack(leases, due_at).await
    }

    async fn withdraw(&self, chunks: &[ChunkId]) -> Result<(), QueueError> {
        self.enter("withdraw").await.withdraw(chunks).await
    }

    async fn depths(&self, now: Timestamp) -> Result<Vec<LaneDepth>, QueueError> {
        self.enter("depths").await.depths(now).await
    }

    async fn keeps(&self) -> Result<(), QueueError> {
        match self.full.load(Ordering::SeqCst) {
            true => Err(QueueError::Unavailable("it is full".to_owned())),
            false => self.queue.keeps().await,
        }
    }

    async fn broken(&self) -> String {
        let mut ends = self.ends.subscribe();
        drop(ends.wait_for(|ended| *ended).await.expect("its sender is in here"));
        "it panicked: the thread is gone".to_owned()
    }

    async fn clear(&self) -> Result<(), QueueError> {
        self.enter("clear").await.clear().await
    }

    async fn changed(&self) {
        self.queue.changed().await;
    }
}
