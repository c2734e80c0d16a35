use std::sync::atomic::AtomicBool;

use super::*;
use crate::batch::{Keep, Request, RequestBatch};

fn pool(limits: Limits) -> Arc<Pool> {
    Pool::new(Box::new(|_, _| Box::pin(async {})), Vec::new(), limits, |_| false)
}

#[test]
fn as_many_connections_open_at_once_as_are_there_and_at_least_four() {
    let pool = pool(Limits::default());
    assert_eq!([0, 1, 4, 9, 40].map(|there| pool.openings_at_once(4_096, 10, there)), [4, 4, 4, 9, 40]);
    assert_eq!(pool.openings_at_once(15, 10, 40), 2, "no more than the waiting requests need");
    let brief = self::pool(Limits { max_requests_per_connection: 1, ..Limits::default() });
    assert_eq!(brief.openings_at_once(4_096, 10, 1), 64, "where each is soon used up");
}

#[test]
fn connections_are_put_in_order_though_their_loads_change_meanwhile() {
    let members: Vec<Arc<PooledConnection>> =
        (0..100).map(|_| Arc::new(PooledConnection::default())).collect();
    members.iter().for_each(|member| member.room.store(1, Relaxed));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut load = 1_usize;
            while !over.load(Relaxed) {
                for member in &members {
                    load = load.wrapping_mul(25_214_903_917).wrapping_add(11);
                    member.open.store(load >> 16 & 0xff, Relaxed);
                }
            }
        });
        let listed: Vec<usize> = (0..5_000).map(|_| ready(&members).len()).collect();
        over.store(true, Relaxed);
        assert!(listed.iter().all(|count| *count == 100));
    });
}

#[test]
fn the_least_loaded_connection_with_room_comes_first() {
    let members: Vec<Arc<PooledConnection>> = (0..3).map(|_| Arc::new(PooledConnection::default())).collect();
    for (member, (room, open)) in members.iter().zip([(5, 9), (0, 0), (5, 2)]) {
        member.room.store(room, Relaxed);
        member.open.store(open, Relaxed);
    }
    let loads: Vec<usize> = ready(&members).iter().map(|member| member.open.load(Relaxed)).collect();
    assert_eq!(loads, [2, 9]);
}

fn run_of(requests: usize) -> Run {
    let path = http::uri::PathAndQuery::from_static("/");
    let request = Request { path, headers: Vec::new(), body: bytes::Bytes::new() };
    let requests = Arc::new(vec![request; requests]);
    let batch = RequestBatch {
        constant: Vec::new(),
        path: None,
        requests,
        start_within: None,
        keep: Keep::default(),
        repeated: false,
    };
    let work = Work::new(batch, &[], Instant::now());
    Run { from: 0, to: work.count, work, resends: 0 }
}

fn waiting(batches: &[usize]) -> (PoolState, Vec<Run>) {
    let runs: Vec<Run> = batches.iter().map(|requests| run_of(*requests)).collect();
    let waiting = batches.iter().sum();
    (PoolState { large: runs.iter().cloned().collect(), waiting, ..PoolState::default() }, runs)
}

/// Returns of which batch, by its place, each part is that is taken.
fn order(state: &mut PoolState, runs: &[Run], most: usize) -> Vec<usize> {
    let part = |state: &mut PoolState| state.pop(most, false);
    let parts = std::iter::from_fn(|| part(state));
    let mut order: Vec<usize> = parts
        .map(|part| runs.iter().position(|run| Arc::ptr_eq(&run.work, &part.work)).expect("one of these"))
        .collect();
    order.dedup();
    order
}

#[test]
fn a_batch_goes_whole_before_the_next_so_that_it_ends_early() {
    let (mut state, runs) = waiting(&[1_000, 1_000, 700]);
    assert_eq!(order(&mut state, &runs, 50), [0, 1, 2]);
    assert_eq!(state.waiting, 0);
}

#[test]
fn none_is_stuck_behind_a_very_large_batch() {
    let (mut state, runs) = waiting(&[2_500, 100]);
    assert_eq!(order(&mut state, &runs, 400), [0, 1, 0]);
    assert_eq!(state.waiting, 0);
}
