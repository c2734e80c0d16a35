//! The tasks of a running pipeline: how they start, and in which order they end.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::roles::NodeRole;
use super::settler_inbox::Inboxes;
use super::shared::PipelineContext;
use super::{acceptance, dispatcher, janitor, producer, quota_draws, scheduler, settler, starter};

/// Most batches of tickets that the publisher publishes in one go.
const TOGETHER_MAX_COUNT: usize = 1_024;
/// A drain may need this long after its deadline to write its last records.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// Everything that a pipeline runs, until it is drained.
pub(super) struct PipelineTasks {
    shared: Arc<PipelineContext>,
    /// Runtime for audiences.
    bulk: Handle,
    settler_stop: CancellationToken,
    publisher: JoinSet<()>,
    movers: JoinSet<()>,
    settlers: JoinSet<()>,
}

impl PipelineTasks {
    /// Starts everything. The settlers are first: the movers must not hand anything over before a settler writes it.
    pub(super) fn start(
        shared: Arc<PipelineContext>,
        bulk: Handle,
        inboxes: Inboxes,
        tickets: mpsc::Receiver<Vec<Ticket>>,
    ) -> Self {
        let (publisher, movers, settlers) = Default::default();
        let settler_stop = CancellationToken::new();
        let mut tasks = Self { shared, bulk, settler_stop, publisher, movers, settlers };
        tasks.start_settlers(inboxes);
        tasks.start_movers();
        tasks.start_publisher(tickets);
        tasks
    }

    /// Starts the tasks that run to the end of a drain, so that all outcomes are written.
    fn start_settlers(&mut self, inboxes: Inboxes) {
        for inbox in inboxes {
            let (shared, stop, home) =
                (self.shared.clone(), self.settler_stop.clone(), self.home(inbox.class));
            let work = settler::run(shared.clone(), inbox, stop.clone());
            self.settlers
                .spawn_on(async move { shared.supervisor.lasting("settler", stop, work).await }, &home);
        }
        let (shared, stop) = (self.shared.clone(), self.settler_stop.clone());
        self.settlers.spawn(async move {
            let work = janitor::keep_leases(&shared, stop.clone());
            shared.supervisor.lasting("lease keeper", stop, work).await;
        });
        let (shared, stop) = (self.shared.clone(), self.settler_stop.clone());
        self.settlers.spawn(async move {
            let store = shared.supervisor.guarding("store's writer", stop.clone(), shared.store.broken());
            let queue = shared.supervisor.guarding("queue's writer", stop, shared.queue.broken());
            tokio::join!(store, queue);
        });
    }

    /// Starts the tasks that end when a drain begins.
    fn start_movers(&mut self) {
        let roles = self.shared.roles.clone();
        if roles.has(NodeRole::Consumer) {
            self.start_consumers();
        }
        if roles.has(NodeRole::Producer) {
            self.start_mover("producers", TrafficClass::Bulk, producer::run(self.shared.clone()));
        }
        if roles.has(NodeRole::Scheduler) {
            self.start_mover("starter", TrafficClass::Urgent, starter::run(self.shared.clone()));
            self.start_mover("scheduler", TrafficClass::Urgent, scheduler::run(self.shared.clone()));
        }
        self.start_mover("janitor", TrafficClass::Urgent, janitor::run(self.shared.clone()));
    }

    /// Starts the dispatchers and prepares the credentials.
    fn start_consumers(&mut self) {
        for kind in ProviderKind::ALL {
            for class in TrafficClass::ALL {
                let work = dispatcher::run(self.shared.clone(), *kind, *class);
                self.start_mover(format!("dispatcher of {kind}"), *class, work);
            }
        }
        if self.shared.standing.is_shared() {
            self.start_mover("quotas", TrafficClass::Urgent, quota_draws::run(self.shared.clone()));
        }
        // Set before the task starts: otherwise a task that ends at once would clear it first, and it would stay set.
        self.shared.getting_ready.store(true, Ordering::Relaxed);
        let (shared, stop) = (self.shared.clone(), self.shared.stop.clone());
        self.movers.spawn(async move {
            let work = shared.providers.get_ready(shared.config.ready_max_credentials, shared.now());
            let _ = stop.run_until_cancelled(shared.supervisor.passing("getting ready", work)).await;
            shared.getting_ready.store(false, Ordering::Relaxed);
        });
    }

    /// Starts a part on the runtime of its class; tasks that it spawns run there too.
    fn start_mover(
        &mut self,
        part: impl Into<String>,
        class: TrafficClass,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let (shared, part, home) = (self.shared.clone(), part.into(), self.home(class));
        let stop = shared.stop.clone();
        self.movers.spawn_on(async move { shared.supervisor.lasting(part, stop, work).await }, &home);
    }

    /// Starts the task that publishes the tickets of accepted messages and of resumed campaigns.
    fn start_publisher(&mut self, tickets: mpsc::Receiver<Vec<Ticket>>) {
        let shared = self.shared.clone();
        self.publisher.spawn(async move {
            let work = publish(&shared, tickets);
            shared.supervisor.passing("publisher", work).await;
        });
    }

    fn home(&self, class: TrafficClass) -> Handle {
        match class {
            TrafficClass::Urgent => Handle::current(),
            TrafficClass::Bulk => self.bulk.clone(),
        }
    }

    /// Ends within `time`, in this order: publishing, leasing, batches in flight, settling, providers. Batches that the
    /// deadline cuts off count as never answered.
    pub(super) async fn drain(self, time: Duration) {
        let Self { shared, settler_stop, mut publisher, mut movers, mut settlers, .. } = self;
        // The next start publishes the tickets that are left.
        publisher.shutdown().await;
        // Leasing ends first; batches in flight may still be answered.
        shared.stop.cancel();
        // The last writes come after the deadline; of a short time at least half is for the work.
        let deadline = time.saturating_sub(LAST_WRITES).max(time / 2);
        if tokio::time::timeout(deadline, join(&mut movers)).await.is_err() {
            tracing::warn!("the drain's deadline has passed; batches in flight count as never answered");
        }
        // From here on retries and batches end too: no task waits for the store or a peer any longer.
        shared.cut.cancel();
        let last = async {
            join(&mut movers).await;
            acceptance::give_back(&shared).await;
            // After the movers, because the settlers write their last outcomes.
            settler_stop.cancel();
            join(&mut settlers).await;
            // Last, because a provider closes only when its batches are over.
            shared.providers.close().await;
        };
        if tokio::time::timeout(LAST_WRITES, last).await.is_err() {
            tracing::warn!("the drain did not end in time; the next start recovers the rest");
        }
    }
}

/// Publishes tickets, many batches at once when many come.
async fn publish(shared: &PipelineContext, mut waiting: mpsc::Receiver<Vec<Ticket>>) {
    let mut batches = Vec::new();
    while waiting.recv_many(&mut batches, TOGETHER_MAX_COUNT).await > 0 {
        let tickets: Vec<Ticket> = batches.drain(..).flatten().collect();
        shared.publish(&tickets).await;
    }
}

async fn join(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
