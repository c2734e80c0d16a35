use super::stub::Stub;
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// Starts a pipeline with a credential that allows this number of messages per minute.
async fn open(per_minute: u32, config: PipelineConfig) -> House {
    let mut house = House::build(Stub::accepting(10)).await;
    house.quota = Some(per_minute);
    house.put_credential().await;
    house.start(config).await;
    house
}

fn warm() -> PipelineConfig {
    PipelineConfig { quota_ramp_ms: 0, ..quick() }
}

/// Returns the most attempts of any minute.
fn busiest_minute(house: &House) -> usize {
    let mut instants: Vec<_> = house.stub.seen().into_iter().map(|seen| seen.at).collect();
    instants.sort_unstable();
    let until = |start: Instant| instants.partition_point(|at| *at < start + MINUTE);
    instants.iter().enumerate().map(|(index, start)| until(*start) - index).max().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn an_audience_gets_its_quota_and_no_more() {
    let house = open(6_000, warm()).await;
    house.register(18_000).await;
    let began = Instant::now();
    let id = house.send(everyone()).await;
    assert_eq!(house.finished(id).await.total().accepted, 18_000);
    let (took, busiest) = (began.elapsed(), busiest_minute(&house));
    assert!(took <= Duration::from_secs(180 * 10 / 9), "{took:?}");
    // A second's worth is a hundred, and so is a chunk.
    assert!(busiest <= 6_000 + 2 * 100, "{busiest}");
}

#[tokio::test(start_paused = true)]
async fn a_cold_credential_is_warmed_up_over_a_minute() {
    let house = open(60_000, quick()).await;
    house.register(100_000).await;
    let began = Instant::now();
    let id = house.send(everyone()).await;
    house.finished(id).await;
    let seen = house.stub.seen();
    let within = |seconds| seen.iter().filter(|seen| seen.at < began + Duration::from_secs(seconds)).count();
    let (cold, half, all) = (within(5), within(60), within(120));
    assert!((500..=1_500).contains(&cold), "{cold}");
    assert!((27_000..=36_000).contains(&half), "{half}");
    assert!(all - half >= 54_000, "{all} less {half}");
}

#[tokio::test(start_paused = true)]
async fn a_single_message_does_not_wait_for_the_quota_that_an_audience_uses_up() {
    let house = open(600, warm()).await;
    let devices = house.register(2_000).await;
    house.send(everyone()).await;
    pass(30).await;
    let began = Instant::now();
    let single = house.send(spec(Target::Device(devices[7]))).await;
    house.finished(single).await;
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
    let quotas = house.dispatcher().quotas;
    assert_eq!((quotas.len(), quotas[0].per_minute), (1, 600));
    assert!(quotas[0].waited >= Duration::from_secs(20), "{quotas:?}");
}

#[tokio::test(start_paused = true)]
async fn many_single_messages_share_the_quota() {
    let house = open(600, warm()).await;
    let devices = house.register(1).await;
    let mut last = None;
    for _ in 0..300 {
        last = Some(house.send(spec(Target::Device(devices[0]))).await);
    }
    let began = Instant::now();
    house.finished(last.expect("sent")).await;
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(25) && took <= Duration::from_secs(35), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fleet_that_waits_for_its_quota_sleeps() {
    let house = open(60, warm()).await;
    house.register(200).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().accepted == 100).await;
    let before = house.queue.count("lease");
    pass(60).await;
    let leases = house.queue.count("lease") - before;
    assert!(leases <= 20, "the queue was asked {leases} times while nothing could go");
}

#[tokio::test(start_paused = true)]
async fn restarts_grant_no_second_burst_and_forget_no_debt() {
    // Slow enough that each chunk is a debt of five seconds.
    let mut house = open(1_200, warm()).await;
    house.register(6_000).await;
    let id = house.send(everyone()).await;
    for _ in 0..20 {
        pass(2).await;
        house.crash().await;
        house.start(warm()).await;
    }
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total().accepted, 6_000);
    let busiest = busiest_minute(&house);
    assert!(busiest <= 1_200 + 2 * 100, "{busiest}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_finds_a_credential_as_warm_as_it_was() {
    let mut house = open(6_000, quick()).await;
    house.register(18_000).await;
    let id = house.send(everyone()).await;
    pass(90).await;
    house.crash().await;
    house.start(quick()).await;
    pass(2).await;
    assert_eq!(house.dispatcher().quotas[0].per_minute_now, 6_000, "{:?}", house.ledger(id).await.total());
}
