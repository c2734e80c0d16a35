use stentor_core::outcome::{Outcome, OutcomeScope, Reason};

use super::stub::Stub;
use super::*;

const HOUR_MS: u64 = 3_600_000;

#[tokio::test(start_paused = true)]
async fn what_a_clock_that_was_ahead_put_off_does_not_wait_until_that_time_comes_again() {
    let house = House::open(Stub::accepting(10), quick()).await;
    let answers: [fn(&super::stub::Seen) -> Outcome; 2] = [
        |_| Outcome::Throttled { scope: OutcomeScope::Device, retry_after: None },
        |_| Outcome::Rejected { reason: Reason::CredentialRefused, scope: OutcomeScope::Credential },
    ];
    let devices = house.register(500).await;
    for answer in answers {
        house.stub.answer(answer);
        house.clock.ahead_ms.fetch_add(HOUR_MS, Ordering::SeqCst);
        let id = house.send(everyone()).await;
        let single = house.send(spec(Target::Device(devices[0]))).await;
        pass(3).await;
        house.clock.ahead_ms.fetch_sub(HOUR_MS, Ordering::SeqCst);
        house.stub.answer(|_| Outcome::Accepted);
        let began = Instant::now();
        assert_eq!(house.finished(id).await.total().accepted, 500);
        assert_eq!(house.finished(single).await.total().accepted, 1);
        assert!(began.elapsed() < Duration::from_secs(90), "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_goes_ahead_and_back_and_ahead_again_takes_no_lease_from_the_living_process() {
    let house = House::open(Stub::accepting(9_000), quick()).await;
    house.clock.ahead_ms.fetch_add(2 * HOUR_MS, Ordering::SeqCst);
    house.register(300).await;
    let id = house.send(everyone()).await;
    pass(2).await;
    house.clock.ahead_ms.fetch_sub(2 * HOUR_MS, Ordering::SeqCst);
    let late = house.send(everyone()).await;
    house.until(late, |ledger| ledger.total().sending > 0).await;
    pass(2).await;
    house.clock.ahead_ms.fetch_add(HOUR_MS, Ordering::SeqCst);
    for campaign in [id, late] {
        let ledger = house.finished(campaign).await;
        assert_eq!((ledger.total().accepted, ledger.providers[0].duplicate_bound), (300, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_goes_back_in_the_middle_sends_nothing_twice() {
    let house = House::open(Stub::accepting(700), quick()).await;
    house.clock.ahead_ms.fetch_add(HOUR_MS, Ordering::SeqCst);
    house.register(10_000).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().accepted >= 1_000).await;
    house.clock.ahead_ms.fetch_sub(HOUR_MS, Ordering::SeqCst);
    let began = Instant::now();
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.providers[0].duplicate_bound), (10_000, 0));
    assert_eq!(house.stub.counts().values().max(), Some(&1));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_forward_makes_nothing_forgotten() {
    let config = PipelineConfig { prune_interval_ms: 1_000, ..quick() };
    let mut house = House::open(Stub::accepting(10), config.clone()).await;
    house.register(10).await;
    let id = house.send(everyone()).await;
    house.finished(id).await;
    house.clock.ahead_ms.fetch_add(40 * 24 * HOUR_MS, Ordering::SeqCst);
    pass(60).await;
    assert_eq!(house.ledger(id).await.total().accepted, 10);
    house.pipeline.take().expect("started").drain(Duration::from_secs(10)).await;
    house.clock.ahead_ms.fetch_add(40 * 24 * HOUR_MS, Ordering::SeqCst);
    house.start(config).await;
    pass(60).await;
    assert_eq!(house.ledger(id).await.total().accepted, 10, "nor by a start with a wrong clock");
}
