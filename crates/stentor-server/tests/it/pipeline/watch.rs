use super::stub::Stub;
use super::*;

/// Lets a part die in the middle of a campaign, checks the remaining work, and starts again.
async fn dies_and_is_started_again(call: &'static str, part: &str) {
    let mut house = House::open(Stub::accepting(50), quick()).await;
    house.register(5_000).await;
    house.queue.panic_at(call);
    let id = house.send(everyone()).await;
    let began = Instant::now();
    while house.pipeline().stats().failures.is_empty() {
        assert!(began.elapsed() < PATIENCE, "nobody noticed that {part} died");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let failures = house.pipeline().stats().failures;
    assert_eq!(failures[0].part, part);
    assert!(failures[0].cause.contains("the queue has a bug"), "{failures:?}");
    let seen = house.stub.seen().len();
    pass(3_600).await;
    assert_eq!(house.stub.seen().len(), seen, "nothing more is sent");
    assert!(seen < 5_000, "it died before the end");
    house.crash().await;
    house.start(quick()).await;
    assert_eq!(house.finished(id).await.total().accepted, 5_000, "a restart recovers");
}

#[tokio::test(start_paused = true)]
async fn a_dead_fleet_stops_the_sending_and_a_restart_recovers() {
    dies_and_is_started_again("lease", "dispatcher of fcm").await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_settler_stops_the_sending_and_a_restart_recovers() {
    dies_and_is_started_again("ack", "settler").await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_producer_stops_the_sending_and_a_restart_recovers() {
    dies_and_is_started_again("publish", "producer of fcm").await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_janitor_stops_the_sending_and_a_restart_recovers() {
    dies_and_is_started_again("depths", "janitor").await;
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_that_is_told_to_end_has_not_failed() {
    let mut house = House::open(Stub::accepting(50), quick()).await;
    house.register(500).await;
    let id = house.send(everyone()).await;
    house.finished(id).await;
    assert!(house.pipeline().stats().failures.is_empty());
    house.pipeline.take().expect("started").drain(Duration::from_secs(10)).await;
}
