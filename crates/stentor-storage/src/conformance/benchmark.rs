//! A benchmark of a store's engine.

use crate::conformance::PlainChanges;
use std::time::Duration;

use stentor_core::chunk::Ticket;
use stentor_core::device::ProviderKind;
use stentor_core::ports::store::{Expansion, LeaseReply, Store};
use stentor_core::target::Target;

use super::scene::{Draft, Scene, accept_all, at, chunks, lease_at, registration};

/// The load of a benchmark.
#[derive(Debug, Clone, Copy)]
pub struct BenchmarkLoad {
    /// Devices to register and to reach.
    pub devices: usize,
    /// Devices registered in one call.
    pub batch_devices: usize,
    /// Most devices of a chunk.
    pub chunk_max_devices: usize,
}

/// The results of one engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BenchmarkFigures {
    /// Registrations, in batches.
    pub devices_per_second: f64,
    /// Chunks expanded, leased and settled, each chunk in calls of its own.
    pub chunks_per_second: f64,
    /// Deliveries in those chunks.
    pub deliveries_per_second: f64,
}

/// Measures an engine by the same program as all others; `elapsed` reads a clock that only goes forward.
pub async fn benchmark(
    store: &dyn Store,
    load: BenchmarkLoad,
    elapsed: impl Fn() -> Duration,
) -> BenchmarkFigures {
    let scene = Scene::new(store).await;
    let start = elapsed();
    register(&scene, load).await;
    let registered = elapsed();
    let chunks = deliver(&scene, load).await;
    let delivered = elapsed();
    let per_second = |count: usize, span: Duration| count as f64 / span.as_secs_f64().max(1e-9);
    BenchmarkFigures {
        devices_per_second: per_second(load.devices, registered.saturating_sub(start)),
        chunks_per_second: per_second(chunks, delivered.saturating_sub(registered)),
        deliveries_per_second: per_second(load.devices, delivered.saturating_sub(registered)),
    }
}

async fn register(scene: &Scene<'_>, load: BenchmarkLoad) {
    let numbers: Vec<_> = (0..load.devices).collect();
    for batch in numbers.chunks(load.batch_devices) {
        let one =
            |number: &usize| registration(ProviderKind::Fcm, &format!("benchmark-address-{number:012}"));
        let given: Vec<_> = batch.iter().map(one).collect();
        scene.store.register(scene.app, &given, at(0)).await.expect("registered");
    }
}

async fn deliver(scene: &Scene<'_>, load: BenchmarkLoad) -> usize {
    let new = scene.new_message(Draft::to(Target::Everyone));
    let message = new.message.id;
    scene.accept(new).await.expect("accepted");
    scene.start(at(1)).await;
    let how = Expansion { chunk_max_devices: load.chunk_max_devices, max_chunks: 1, now: at(1) };
    let mut count = 0;
    for task in scene.store.producers().await.expect("listed") {
        loop {
            let step = scene.store.expand(task, how).await.expect("expanded");
            count += step.tickets.len();
            finish(scene, &step.tickets).await;
            if step.done {
                break;
            }
        }
    }
    let tally = scene.tally(message).await;
    assert_eq!(tally.accepted, load.devices as u64, "everybody was reached: {tally:?}");
    count
}

async fn finish(scene: &Scene<'_>, tickets: &[Ticket]) {
    let replies = scene.store.lease(&chunks(tickets), lease_at(at(2))).await.expect("asked");
    for reply in replies {
        let LeaseReply::Leased(leased) = reply else { panic!("not leased: {reply:?}") };
        scene.settled(accept_all(&leased, at(3))).await;
    }
}
