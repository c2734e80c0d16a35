use super::*;
use crate::batch::{Keep, Request, RequestBatch};

pub(in crate::pool) fn run_of(requests: usize) -> Run {
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
    let work = Work::new(batch, &[], tokio::time::Instant::now());
    Run { from: 0, to: work.count, work, resends: 0 }
}

fn waiting(batches: &[usize]) -> (RunQueue, Vec<Run>) {
    let runs: Vec<Run> = batches.iter().map(|requests| run_of(*requests)).collect();
    let waiting = batches.iter().sum();
    (RunQueue { large: runs.iter().cloned().collect(), waiting, ..RunQueue::default() }, runs)
}

/// Returns the index of the batch of each part taken.
fn order(queue: &mut RunQueue, runs: &[Run], most: usize) -> Vec<usize> {
    let part = |queue: &mut RunQueue| queue.pop(most, false);
    let parts = std::iter::from_fn(|| part(queue));
    let mut order: Vec<usize> = parts
        .map(|part| runs.iter().position(|run| Arc::ptr_eq(&run.work, &part.work)).expect("one of these"))
        .collect();
    order.dedup();
    order
}

#[test]
fn a_batch_goes_whole_before_the_next_so_that_it_ends_early() {
    let (mut queue, runs) = waiting(&[1_000, 1_000, 700]);
    assert_eq!(order(&mut queue, &runs, 50), [0, 1, 2]);
    assert_eq!(queue.waiting, 0);
}

#[test]
fn none_is_stuck_behind_a_very_large_batch() {
    let (mut queue, runs) = waiting(&[2_500, 100]);
    assert_eq!(order(&mut queue, &runs, 400), [0, 1, 0]);
    assert_eq!(queue.waiting, 0);
}
