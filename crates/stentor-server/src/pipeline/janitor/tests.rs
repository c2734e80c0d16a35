use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::FutureExt;
use stentor_core::app::Credential;
use stentor_core::audit::{Actor, AuditAction, AuditNote};
use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::id::IdSource;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::Provider;
use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::store::{
    AuditFilter, AuditStore, Change, NewAuditEntry, Page, PipelineStore, QueuedFilter, Recovery,
};
use stentor_core::target::Target;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::{Draft, Scene, accept_all, at};
use stentor_storage::sqlite::{SqliteQueue, SqliteStore};

use super::*;
use crate::pipeline::clock_step::{StepBack, bring_forward};
use crate::pipeline::shared::PipelineStart;
use crate::pipeline::{Dependencies, NodeRoles, NodeStanding, PipelineConfig, settler_inbox};

struct JumpingClock(AtomicI64);

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

fn store() -> SqliteStore {
    SqliteStore::temporary().expect("a store")
}

fn shared(store: &SqliteStore, clock: &Arc<JumpingClock>) -> PipelineContext {
    let nobody = |_: &Credential| Err::<Arc<dyn Provider>, _>(Invalid::new("credential", "is not asked for"));
    let dependencies = Dependencies {
        store: Arc::new(store.clone()),
        queue: Arc::new(SqliteQueue::temporary().expect("a queue")),
        clock: clock.clone(),
        ids: Arc::new(IdSource::after(0)),
        factory: Arc::new(nobody),
        threads: None,
        standing: NodeStanding::alone(1),
        roles: NodeRoles::default(),
        shares_queue: false,
        levels: None,
        settled_feed: None,
    };
    let start = PipelineStart {
        recovery: Recovery::default(),
        known: Timestamp::default(),
        settlers: settler_inbox::inboxes(1).0,
        event_sender: tokio::sync::mpsc::channel(1).0,
    };
    PipelineContext::new(&dependencies, PipelineConfig::default(), start)
}

#[tokio::test]
async fn a_lease_that_is_being_taken_while_the_clock_jumps_is_not_taken_back() {
    let (store, clock) = (store(), Arc::new(JumpingClock(AtomicI64::new(at(1).as_millis()))));
    let shared = shared(&store, &clock);
    let scene = Scene::new(&store).await;
    scene.fcm(1).await;
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let taking = shared.lease_table.taking().await;
    let replies = store.lease(&[tickets[0].chunk], shared.lease(TrafficClass::Bulk)).await.expect("asked");
    let [stentor_core::ports::store::LeaseReply::Leased(leased)] = &replies[..] else {
        panic!("{replies:?}")
    };
    clock.0.store(at(3_600).as_millis(), Ordering::SeqCst);
    let mut sweeping = Box::pin(sweep(&shared));
    assert!(sweeping.as_mut().now_or_never().is_none(), "it waits until the lease is noted");
    let ticket = QueueLease { ticket: tickets[0], token: 1 };
    let _kept = shared.lease_table.keep(leased.id, leased.epoch, Some(&ticket));
    drop(taking);
    sweeping.await.expect("swept");
    assert_eq!(scene.settled(accept_all(leased, shared.now())).await, [], "the lease was not lost");
}

#[tokio::test]
async fn a_lease_that_nobody_notes_is_taken_back_when_it_has_run_out() {
    let (store, clock) = (store(), Arc::new(JumpingClock(AtomicI64::new(at(1).as_millis()))));
    let shared = shared(&store, &clock);
    let scene = Scene::new(&store).await;
    scene.fcm(1).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    store.lease(&[tickets[0].chunk], shared.lease(TrafficClass::Bulk)).await.expect("asked");
    clock.0.store(at(3_600).as_millis(), Ordering::SeqCst);
    sweep(&shared).await.expect("swept");
    assert_eq!(scene.tally(message).await.queued, 1);
}

#[tokio::test]
async fn the_lanes_of_apps_that_are_gone_are_forgotten_and_others_are_not() {
    let (store, clock) = (store(), Arc::new(JumpingClock(AtomicI64::new(at(1).as_millis()))));
    let shared = shared(&store, &clock);
    let (gone, stays) = (Scene::in_app(&store, 1).await.app, Scene::in_app(&store, 2).await.app);
    for app in [gone, stays] {
        assert!(shared.providers.handle((app, ProviderKind::Fcm), shared.now()).await.is_none(), "parked");
    }
    store.delete_app(gone).await.expect("deleted");
    forget_apps(&shared).await.expect("forgotten");
    assert_eq!(shared.providers.apps().into_iter().collect::<Vec<_>>(), [stays]);
}

#[tokio::test]
async fn a_clock_that_went_back_brings_forward_in_the_store_what_waits_and_what_is_dated_meanwhile() {
    let (store, clock) = (store(), Arc::new(JumpingClock(AtomicI64::new(at(100).as_millis()))));
    let shared = shared(&store, &clock);
    let scene = Scene::new(&store).await;
    scene.fcm(1).await;
    // Defers a chunk by a clock that was an hour ahead, until ten seconds later by that clock.
    let defer = async || {
        let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
        let replies =
            store.lease(&[tickets[0].chunk], shared.lease(TrafficClass::Bulk)).await.expect("asked");
        let [stentor_core::ports::store::LeaseReply::Leased(leased)] = &replies[..] else {
            panic!("{replies:?}")
        };
        store.release(&[leased.lease()], at(3_710)).await.expect("given back");
    };
    let due = async || {
        let queued = store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed");
        queued.iter().map(|ticket| ticket.due_at).collect::<Vec<_>>()
    };
    defer().await;
    let mut step = StepBack::noticed(Duration::from_secs(3_600), shared.now());
    bring_forward(&shared, &mut step).await.expect("brought forward");
    assert_eq!(due().await, [at(110)]);
    defer().await;
    let mut step = step.passed().expect("there is a second pass");
    bring_forward(&shared, &mut step).await.expect("brought forward");
    assert_eq!(due().await, [at(110), at(110)]);
}

#[tokio::test(start_paused = true)]
async fn nothing_of_the_audit_trail_is_forgotten_for_a_day_by_a_clock_that_seems_to_have_jumped() {
    let now = at(2 * 365 * 24 * 3_600);
    let (store, clock) = (store(), Arc::new(JumpingClock(AtomicI64::new(now.as_millis()))));
    // The last record of the store is old.
    let shared = shared(&store, &clock);
    let note = AuditNote {
        at: at(0),
        actor: Actor::Root,
        app: None,
        action: AuditAction::CredentialPut,
        thing: String::new(),
        detail: String::new(),
        address: None,
        request_id: String::new(),
        refused: true,
    };
    store.change(Change::Refused, Some(NewAuditEntry { note, max_count: 10 })).await.expect("kept");
    for (hours, left) in [(0, 1), (23, 1), (1, 0)] {
        tokio::time::advance(Duration::from_secs(hours * 3_600)).await;
        prune_audit(&shared).await.expect("pruned");
        let all = Page { after: 0, limit: 10 };
        assert_eq!(store.audit(AuditFilter::default(), all).await.expect("listed").len(), left);
    }
}
