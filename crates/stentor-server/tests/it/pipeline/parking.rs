use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::queue::Queue;
use stentor_storage::conformance::PlainChanges;

use super::stub::Stub;
use super::*;

fn refused(_: &super::stub::Seen) -> Outcome {
    Outcome::Rejected { reason: Reason::CredentialRefused, scope: OutcomeScope::Credential }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_retry_after_then_one_probe_then_the_rest() {
    let open = Instant::now() + Duration::from_secs(60);
    let stub = Stub::scripted(10, move |seen| {
        let left = open.saturating_duration_since(seen.at);
        let wait = Outcome::Throttled { scope: OutcomeScope::Service, retry_after: Some(left) };
        if left.is_zero() { Outcome::Accepted } else { wait }
    });
    let house = House::open(stub, quick()).await;
    house.register(500).await;
    let id = house.send(everyone()).await;
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total().accepted, 500);
    let seen = house.stub.seen();
    let later: Vec<_> = seen.iter().filter(|seen| seen.at >= open).collect();
    assert!(seen.len() - later.len() <= 500, "nobody was asked twice before");
    assert!(seen.iter().all(|seen| seen.at < open - Duration::from_secs(50) || seen.at >= open));
    assert_eq!(later.iter().filter(|seen| seen.at == later[0].at).count(), 1, "one probe goes first");
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_ends_no_delivery_and_its_lane_goes_on_after_a_change() {
    let house = House::open(Stub::scripted(10, refused), quick()).await;
    house.register(5_000).await;
    let id = house.send(everyone()).await;
    pass(595).await;
    let total = house.ledger(id).await.total();
    assert_eq!((total.open(), total.sum()), (5_000, 5_000), "{total:?}");
    let seen = house.stub.seen().len();
    assert!(seen <= 1_000 + 10, "a revoked key asked {seen} times");
    let parked = house.dispatcher().parked;
    assert_eq!((parked.len(), parked[0].reason), (1, Reason::CredentialRefused));
    house.stub.answer(|_| Outcome::Accepted);
    house.pipeline().changed(APP, KIND);
    let began = Instant::now();
    assert_eq!(house.finished(id).await.total().accepted, 5_000);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(house.dispatcher().parked.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_tried_again_slowly_though_nobody_changes_it() {
    let house = House::open(Stub::scripted(10, refused), quick()).await;
    house.register(300).await;
    let id = house.send(everyone()).await;
    pass(30).await;
    house.stub.answer(|_| Outcome::Accepted);
    let began = Instant::now();
    assert_eq!(house.finished(id).await.total().accepted, 300);
    assert!(began.elapsed() < Duration::from_secs(40));
}

#[tokio::test(start_paused = true)]
async fn a_missing_credential_parks_the_lane_until_one_is_put() {
    let mut house = House::build(Stub::accepting(10)).await;
    house.start(quick()).await;
    let devices = house.register(1).await;
    let id = house.send(spec(Target::Device(devices[0]))).await;
    pass(20).await;
    assert_eq!(house.ledger(id).await.total().queued, 1);
    assert_eq!(house.dispatcher().parked[0].reason, Reason::CredentialMissing);
    house.put_credential().await;
    house.pipeline().reload().await;
    let began = Instant::now();
    house.finished(id).await;
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_silent_service_is_left_alone_ever_longer_and_its_deliveries_are_ambiguous() {
    let house = House::open(Stub::scripted(1_000, |_| Outcome::Unknown), quick()).await;
    house.register(2_000).await;
    let id = house.send(everyone()).await;
    pass(120).await;
    let seen = house.stub.seen().len();
    assert!(seen < 2_000, "{seen} attempts at a service that does not answer");
    house.stub.answer(|_| Outcome::Accepted);
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total().accepted, 2_000);
    let twice = house.stub.counts().values().filter(|count| **count > 1).count() as u64;
    let ambiguous: u64 = ledger.providers.iter().map(|books| books.ambiguous).sum();
    assert!(twice > 0 && ambiguous == twice, "{ambiguous} marked, {twice} sent twice");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_app_leaves_nothing_in_the_queue() {
    let house = House::open(Stub::scripted(10, refused), quick()).await;
    house.register(2_000).await;
    house.send(everyone()).await;
    pass(5).await;
    house.store.delete_app(APP).await.expect("there");
    house.pipeline().changed(APP, KIND);
    pass(5).await;
    assert_eq!(house.pipeline().stats().depths, []);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_credential_is_published_once_and_not_again_and_again() {
    let mut house = House::build(Stub::accepting(10)).await;
    house.start(quick()).await;
    let devices = house.register(50).await;
    let mut ids = Vec::new();
    for device in devices {
        ids.push(house.send(spec(Target::Device(device))).await);
    }
    pass(10).await;
    let published = house.queue.count("publish");
    pass(3_600).await;
    assert_eq!(house.queue.count("publish"), published, "in an hour of looks every 2 s");
    house.queue.clear().await.expect("thrown away");
    pass(10).await;
    assert_eq!(house.pipeline().stats().depths[0].ready, 50, "what is lost is published again all the same");
    house.put_credential().await;
    house.pipeline().changed(APP, KIND);
    for id in ids {
        house.finished(id).await;
    }
    assert_eq!(house.stub.seen().len(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_ticket_that_is_lost_while_its_lane_rests_is_published_when_the_lane_is_open() {
    let mut house = House::build(Stub::accepting(10)).await;
    house.start(quick()).await;
    let devices = house.register(2).await;
    let (accepted, _) = (house.send(spec(Target::Device(devices[0]))).await, pass(10).await);
    let lost = house.accept(spec(Target::Device(devices[1]))).await;
    assert_eq!(house.begin().await.len(), 1, "and nobody publishes it");
    pass(600).await;
    house.put_credential().await;
    house.pipeline().changed(APP, KIND);
    let began = Instant::now();
    house.finished(accepted).await;
    house.finished(lost).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}
