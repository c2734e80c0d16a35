use super::stub::{Stall, Stub};
use super::*;

#[tokio::test(start_paused = true)]
async fn a_single_message_overtakes_a_campaign_that_hangs() {
    let house = House::open(Stub::accepting(20), quick()).await;
    let devices = house.register(50_000).await;
    house.stub.stall(Stall::Audiences);
    let campaign = house.send(everyone()).await;
    pass(60).await;
    let began = Instant::now();
    let single = house.send(spec(Target::Device(devices[7]))).await;
    house.finished(single).await;
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
    assert_eq!(house.ledger(campaign).await.total().accepted, 0);
}

#[tokio::test(start_paused = true)]
async fn a_single_message_overtakes_a_campaign_that_is_slow() {
    let house = House::open(Stub::accepting(1_000), quick()).await;
    let devices = house.register(50_000).await;
    let campaign = house.send(everyone()).await;
    house.until(campaign, |ledger| ledger.total().accepted > 0).await;
    let began = Instant::now();
    let single = house.send(spec(Target::Device(devices[7]))).await;
    house.finished(single).await;
    assert!(began.elapsed() < Duration::from_millis(1_200), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn consumers_come_with_work_and_go_when_idle() {
    let house = House::open(Stub::accepting(500), quick()).await;
    house.register(20_000).await;
    assert_eq!(house.dispatcher().consumers, 0);
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().accepted > 5_000).await;
    let busy = house.dispatcher().consumers;
    assert!(busy > 1 && busy <= quick().consumers_max, "{busy}");
    house.finished(id).await;
    pass(5).await;
    assert_eq!(house.dispatcher().consumers, 0);
    assert_eq!(house.pipeline().stats().unsettled_deliveries, 0);
}

#[tokio::test(start_paused = true)]
async fn the_minimum_of_consumers_stays_though_idle() {
    let house = House::open(Stub::accepting(500), PipelineConfig { consumers_min: 2, ..quick() }).await;
    house.register(5_000).await;
    let id = house.send(everyone()).await;
    house.finished(id).await;
    pass(60).await;
    assert_eq!(house.dispatcher().consumers, 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_allowed_is_ever_unsettled() {
    let config = PipelineConfig { max_unsettled_deliveries: 1_500, ..quick() };
    let house = House::open(Stub::accepting(5_000), config).await;
    house.register(20_000).await;
    let id = house.send(everyone()).await;
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total().accepted, 20_000);
    let peak = house.stub.peak();
    assert!(peak > 400 && peak <= 1_500, "{peak}");
}

#[tokio::test(start_paused = true)]
async fn the_window_follows_what_is_in_flight_before_the_first_answer() {
    let house = House::open(Stub::telling_inflight(60_000), quick()).await;
    house.register(40_000).await;
    house.send(everyone()).await;
    pass(1).await;
    let peak = house.stub.peak();
    assert!(peak >= 10_000, "{peak} of 40,000 within a second, of which none was answered");
}

#[tokio::test(start_paused = true)]
async fn the_window_grows_with_the_latency_of_the_service() {
    let house = House::open(Stub::accepting(2_000), quick()).await;
    house.register(100_000).await;
    let id = house.send(everyone()).await;
    house.finished(id).await;
    let slow = house.stub.peak();
    assert!(slow > 5_000, "{slow}");
}

#[tokio::test(start_paused = true)]
async fn a_producer_waits_while_enough_of_its_campaign_is_queued() {
    let config = PipelineConfig { producer_max_queued_deliveries: 3_000, ..quick() };
    let house = House::open(Stub::accepting(100), config).await;
    house.stub.stall(Stall::Everything);
    house.register(20_000).await;
    let id = house.send(everyone()).await;
    pass(60).await;
    let ledger = house.ledger(id).await;
    assert!(ledger.total().queued < 3_000 + 1_600, "{ledger:?}");
    house.stub.stall(Stall::Nothing);
    assert_eq!(house.finished(id).await.total().accepted, 20_000);
}
