use std::path::Path;

use stentor_core::campaign::Tally;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::StoreError;
use stentor_storage::sqlite::{SqliteQueue, SqliteSettings, SqliteStore};

use super::stub::{Stall, Stub};
use super::*;

#[tokio::test(start_paused = true)]
async fn a_queue_thrown_away_in_the_middle_loses_nothing_and_sends_nothing_twice() {
    let house = House::open(Stub::accepting(200), quick()).await;
    house.register(10_000).await;
    let id = house.send(everyone()).await;
    for share in [1_000, 4_000, 7_000] {
        house.until(id, |ledger| ledger.total().accepted >= share).await;
        house.queue.clear().await.expect("cleared");
    }
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total().accepted, 10_000);
    assert_eq!(house.stub.counts().values().max(), Some(&1));
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_had_leased_from_a_queue_that_outlived_it_goes_again_at_once() {
    let mut house = House::open(Stub::accepting(700), quick()).await;
    house.register(1_000).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().sending > 0).await;
    house.pipeline = None;
    tokio::task::yield_now().await;
    let began = Instant::now();
    house.start(quick()).await;
    assert_eq!(house.finished(id).await.total().accepted, 1_000);
    assert!(began.elapsed() < quick().lease_for() / 2, "it waited {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_accepted_and_not_begun_is_begun_by_the_next_process() {
    let mut house = House::open(Stub::accepting(10), quick()).await;
    let device = house.register(1).await[0];
    let id = house.accept(spec(Target::Device(device))).await;
    house.crash().await;
    assert_eq!(house.ledger(id).await.campaign.state, CampaignState::Scheduled);
    house.start(quick()).await;
    assert_eq!(house.finished(id).await.total().accepted, 1);
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_takes_no_lease_from_the_living_process() {
    let house = House::open(Stub::accepting(5_000), quick()).await;
    house.register(300).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().sending > 0).await;
    house.clock.ahead_ms.fetch_add(quick().lease_for_ms * 3, Ordering::SeqCst);
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.providers[0].duplicate_bound), (300, 0));
    assert_eq!(house.stub.counts().values().max(), Some(&1));
}

#[tokio::test(start_paused = true)]
async fn crashes_lose_nothing_and_duplicates_are_bounded_and_marked() {
    let mut house = House::open(Stub::accepting(700), quick()).await;
    house.register(40_000).await;
    let id = house.send(everyone()).await;
    let mut recovered = 0;
    for kill in 1..=5_u64 {
        let accepted = house.until(id, |ledger| ledger.total().accepted >= kill * 3_000).await;
        assert!(accepted.total().sending > 0);
        house.crash().await;
        house.start(quick()).await;
        recovered += house.pipeline().stats().recovery.deliveries;
    }
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total(), Tally { accepted: 40_000, ..Tally::default() });
    let counts = house.stub.counts();
    let duplicates: usize = counts.values().map(|count| count - 1).sum();
    let books = &ledger.providers[0];
    assert_eq!((counts.len(), books.duplicate_bound), (40_000, recovered));
    assert!(duplicates > 0 && duplicates as u64 <= recovered, "{duplicates} of {recovered}");
    let twice = counts.values().filter(|count| **count > 1).count() as u64;
    assert!(books.ambiguous >= twice, "{} marked, {twice} sent twice", books.ambiguous);
}

#[tokio::test(start_paused = true)]
async fn crash_upon_crash_before_anything_is_settled_puts_one_chunk_in_doubt_each_time() {
    let config = quick();
    let chunk = config.chunk_max_devices as u64;
    let mut house = House::open(Stub::accepting(700), config).await;
    house.register(20_000).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().sending > chunk).await;
    for _ in 0..5 {
        house.crash().await;
        house.start(quick()).await;
        let before = house.stub.seen().len();
        house.until(id, |ledger| ledger.total().sending > 0 && house.stub.seen().len() > before).await;
        let sending = house.ledger(id).await.total().sending;
        assert!((1..=chunk).contains(&sending), "{sending}");
    }
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total(), Tally { accepted: 20_000, ..Tally::default() });
    assert_eq!(house.stub.counts().len(), 20_000);
}

#[tokio::test(start_paused = true)]
async fn crash_upon_crash_repeats_less_than_a_tenth_of_a_small_campaign() {
    // Everything would be in flight at once: no answer comes within half a second.
    let mut house = House::open(Stub::accepting(500), PipelineConfig::default()).await;
    house.register(20_000).await;
    let id = house.send(everyone()).await;
    for kill in 1..=5_u64 {
        house.until(id, |ledger| ledger.total().accepted >= kill * 3_000).await;
        house.crash().await;
        house.start(PipelineConfig::default()).await;
    }
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total(), Tally { accepted: 20_000, ..Tally::default() });
    let bound = ledger.providers[0].duplicate_bound;
    assert!((1..=2_000).contains(&bound), "{bound}");
}

#[tokio::test(start_paused = true)]
async fn crash_upon_crash_repeats_few_of_a_large_campaign() {
    let mut house = House::open(Stub::accepting(500), PipelineConfig::default()).await;
    house.register(100_000).await;
    let id = house.send(everyone()).await;
    for kill in 1..=5_u64 {
        house.until(id, |ledger| ledger.total().accepted >= kill * 10_000).await;
        house.crash().await;
        house.start(PipelineConfig::default()).await;
        let recovered = house.pipeline().stats().recovery.deliveries;
        // No bound after the first crash: only a process that starts after a crash has a low limit.
        assert!(recovered > 0 && (kill == 1 || recovered <= 2_000), "{recovered}");
    }
    assert_eq!(house.finished(id).await.total().accepted, 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_drain_settles_what_is_in_flight_and_gives_back_the_rest() {
    let mut house = House::open(Stub::accepting(700), quick()).await;
    house.register(5_000).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().sending > 0).await;
    house.pipeline.take().expect("started").drain(Duration::from_secs(10)).await;
    let held = house.ledger(id).await.total();
    assert_eq!((held.sending, held.accepted as usize), (0, house.stub.seen().len()));
    house.start(quick()).await;
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.providers[0].ambiguous), (5_000, 0));
    assert_eq!(house.stub.seen().len(), 5_000);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_at_its_deadline_and_marks_what_it_cut_off() {
    let mut house = House::open(Stub::accepting(10), quick()).await;
    house.stub.stall(Stall::Everything);
    house.register(1_000).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().sending > 0).await;
    let began = Instant::now();
    house.pipeline.take().expect("started").drain(Duration::from_secs(10)).await;
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
    let cut = house.stub.seen().len() as u64;
    assert_eq!(house.ledger(id).await.total().sending, 0);
    house.stub.stall(Stall::Nothing);
    house.start(quick()).await;
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.providers[0].ambiguous), (1_000, cut));
}

#[tokio::test(start_paused = true)]
async fn a_lease_holds_for_as_long_as_its_batch_is_in_flight() {
    let config = PipelineConfig { lease_for_ms: 3_000, ..quick() };
    let house = House::open(Stub::accepting(10), config).await;
    house.stub.stall(Stall::Everything);
    house.register(300).await;
    let id = house.send(everyone()).await;
    pass(120).await;
    house.stub.stall(Stall::Nothing);
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.providers[0].duplicate_bound), (300, 0));
    assert_eq!(house.stub.seen().len(), 300);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_what_is_late_holds_and_a_drain_marks_it_alone() {
    let config = PipelineConfig { lease_for_ms: 3_000, ..quick() };
    let mut house = House::open(Stub::accepting(10), config).await;
    house.stub.stall(Stall::Last);
    house.register(3_000).await;
    let id = house.send(everyone()).await;
    pass(120).await;
    let books = house.ledger(id).await.providers[0].clone();
    let late = books.tally.sending;
    assert_eq!((books.tally.accepted + late, books.duplicate_bound), (3_000, 0));
    assert!(late > 0);
    house.pipeline.take().expect("started").drain(Duration::from_secs(10)).await;
    house.stub.stall(Stall::Nothing);
    house.start(quick()).await;
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.providers[0].ambiguous), (3_000, late));
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_never_answered_is_given_up_and_made_again() {
    let config = PipelineConfig { batch_timeout_ms: 30_000, ..quick() };
    let house = House::open(Stub::accepting(10), config).await;
    house.stub.stall(Stall::Everything);
    house.register(20).await;
    let id = house.send(everyone()).await;
    pass(29).await;
    assert_eq!(house.ledger(id).await.total().sending, 20);
    let began = Instant::now();
    house.until(id, |ledger| ledger.total().queued == 20).await;
    assert!(began.elapsed() < Duration::from_secs(2));
    house.stub.stall(Stall::Nothing);
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.providers[0].ambiguous), (20, 20));
}

/// Opens the files once the tasks of the dropped pipeline have closed them.
async fn files(folder: &Path) -> (Arc<dyn Store>, Arc<Trap>) {
    let began = Instant::now();
    loop {
        let store = SqliteStore::open(folder.join("stentor.db"), SqliteSettings::store());
        let queue = SqliteQueue::open(folder.join("queue.db"), SqliteSettings::queue());
        match (store, queue) {
            (Ok(store), Ok(queue)) => return (Arc::new(store), Arc::new(Trap::over(Box::new(queue)))),
            (Err(StoreError::Conflict(_)), _) | (_, Err(StoreError::Conflict(_))) => {}
            (store, queue) => panic!("{:?} {:?}", store.err(), queue.err()),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "somebody still has the files open");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_crash_over_files_loses_nothing_and_its_duplicates_are_bounded_and_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, queue) = files(folder.path()).await;
    let mut house = House::build_over(Stub::accepting(5), store, queue).await;
    house.put_credential().await;
    house.start(quick()).await;
    house.register(5_000).await;
    house.stub.stall(Stall::Everything);
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().sending > 0 && !house.stub.seen().is_empty()).await;
    let House { stub, clock, ids, instance, pipeline, store, queue, quota, folder: levels, neighbours } =
        house;
    drop((pipeline, store, queue));
    stub.stall(Stall::Nothing);
    let (store, queue) = files(folder.path()).await;
    let mut house =
        House { store, queue, clock, ids, stub, instance, quota, neighbours, folder: levels, pipeline: None };
    house.start(quick()).await;
    let recovered = house.pipeline().stats().recovery.deliveries;
    let ledger = house.finished(id).await;
    assert!(recovered > 0, "it crashed in the middle");
    assert_eq!(ledger.total(), Tally { accepted: 5_000, ..Tally::default() });
    let books = &ledger.providers[0];
    assert_eq!((books.duplicate_bound, books.ambiguous), (recovered, recovered));
    let counts = house.stub.counts();
    let twice = counts.values().filter(|count| **count > 1).count() as u64;
    assert_eq!((counts.len(), counts.values().max()), (5_000, Some(&2)));
    assert!(twice <= recovered, "{twice} of {recovered}");
}
