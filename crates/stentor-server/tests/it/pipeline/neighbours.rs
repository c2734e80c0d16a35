//! Apps beside each other at one push service: slow answers to one of them do not affect the others.

use super::stub::Stub;
use super::*;
use stentor_storage::conformance::PlainChanges;

const BULK_MAX: usize = 8_000;

/// Starts a pipeline with this number of other apps beside the first. Their push services answer everything after twenty seconds.
async fn beside_tarpits(count: u64) -> House {
    let mut house = House::build(Stub::accepting(20)).await;
    house.put_credential().await;
    for raw in 2..2 + count {
        let (id, name) = (AppId::from_raw(raw), Label::new("a neighbour").expect("fits"));
        house.store.create_app(&App { id, name, created_at: house.clock.now() }).await.expect("kept");
        house.put_credential_in(id, KIND).await;
        house.neighbours.push((id, Arc::new(Stub::telling_inflight(20_000))));
    }
    house.start(PipelineConfig { max_unsettled_deliveries: 10_000, ..quick() }).await;
    house
}

impl House {
    async fn neighbours_send(&self, devices: usize) -> Vec<MessageId> {
        let mut ids = Vec::new();
        for (app, _) in &self.neighbours {
            self.register_in(*app, KIND, "n", devices).await;
            ids.push(self.send_in(*app, everyone()).await);
        }
        ids
    }

    fn neighbours_peak(&self) -> usize {
        self.neighbours.iter().map(|(_, stub)| stub.peak()).sum()
    }
}

#[tokio::test(start_paused = true)]
async fn a_tarpit_holds_half_of_what_may_be_unsettled_and_others_go_on() {
    let house = beside_tarpits(1).await;
    house.register(5_000).await;
    house.neighbours_send(30_000).await;
    pass(50).await;
    let peak = house.neighbours_peak();
    // The last chunk may begin below the half and end beyond it.
    let half = BULK_MAX / 2 + quick().chunk_max_devices / 2;
    assert!(peak > BULK_MAX / 4 && peak <= half, "{peak}");
    let began = Instant::now();
    let id = house.send(everyone()).await;
    assert_eq!(house.finished(id).await.total().accepted, 5_000);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn many_tarpits_leave_something_for_who_comes_next() {
    let house = beside_tarpits(4).await;
    house.register(5_000).await;
    house.neighbours_send(10_000).await;
    for second in 0..50 {
        pass(1).await;
        let unsettled = house.pipeline().stats().unsettled_deliveries;
        assert!(unsettled < BULK_MAX as u64, "{unsettled} after {second} s");
    }
    assert!(house.neighbours.iter().all(|(_, stub)| stub.peak() > 0), "each has its turn");
    let began = Instant::now();
    let id = house.send(everyone()).await;
    assert_eq!(house.finished(id).await.total().accepted, 5_000);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn single_messages_to_a_tarpit_leave_places_for_those_of_others() {
    let house = beside_tarpits(1).await;
    let own = house.register(1).await[0];
    let (neighbour, stub) = house.neighbours[0].clone();
    let theirs = house.register_in(neighbour, KIND, "n", 1).await[0];
    for _ in 0..2_000 {
        house.send_in(neighbour, spec(Target::Device(theirs))).await;
    }
    pass(5).await;
    let places = quick().consumers_max * quick().consumer_max_batches;
    assert!(stub.peak() >= places / 4 && stub.peak() <= places / 2, "{} of {places}", stub.peak());
    let began = Instant::now();
    let id = house.send(spec(Target::Device(own))).await;
    house.finished(id).await;
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_push_service_that_answers_nothing_at_all_holds_nobody_else_up() {
    let house = beside_tarpits(1).await;
    let own = house.register(1).await[0];
    let ids = house.neighbours_send(20_000).await;
    house.neighbours[0].1.stall(super::stub::Stall::Everything);
    pass(2).await;
    let began = Instant::now();
    let id = house.send(spec(Target::Device(own))).await;
    house.finished(id).await;
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
    assert_eq!(
        house.store.ledger(house.neighbours[0].0, ids[0].into()).await.expect("there").total().accepted,
        0
    );
}
