//! Preparation of credentials before the first message.

use super::stub::Stub;
use super::*;
use stentor_storage::conformance::PlainChanges;

const HOUR_MS: u64 = 3_600_000;

#[tokio::test(start_paused = true)]
async fn providers_get_ready_at_the_start_without_sending() {
    let house = House::open(Stub::accepting(10), quick()).await;
    assert!(house.pipeline().is_getting_ready(), "the push service takes its time");
    pass(1).await;
    assert_eq!((house.stub.warmed(), house.stub.seen().len()), (1, 0));
    assert!(!house.pipeline().is_getting_ready());
}

#[tokio::test(start_paused = true)]
async fn a_push_service_that_never_gets_ready_holds_up_no_drain() {
    let mut house = House::open(Stub::accepting(HOUR_MS), quick()).await;
    pass(1).await;
    assert_eq!(house.stub.warmed(), 1);
    let began = Instant::now();
    house.pipeline.take().expect("started").drain(Duration::from_secs(30)).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn where_there_are_very_many_credentials_nobody_is_bothered_at_the_start() {
    let mut house = House::build(Stub::accepting(10)).await;
    for number in 2..35 {
        let (app, name) = (AppId::from_raw(number), Label::new(format!("app {number}")).expect("fits"));
        house.store.create_app(&App { id: app, name, created_at: house.clock.now() }).await.expect("kept");
        let (provider, secret, updated_at) = (KIND, "{}".to_owned(), house.clock.now());
        house.store.put_credential(&Credential { app, provider, secret, updated_at }).await.expect("kept");
    }
    house.start(quick()).await;
    pass(1).await;
    assert_eq!(house.stub.warmed(), 0);
}
