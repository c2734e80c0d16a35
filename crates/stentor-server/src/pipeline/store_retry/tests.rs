use std::cell::{Cell, RefCell};
use std::future::ready;

use super::*;

/// Scripted terms that record the chunks given up and the number of waits.
#[derive(Default)]
struct Script {
    writes: bool,
    /// Rounds until no time is left.
    rounds: usize,
    waits: Cell<usize>,
    given_up: RefCell<Vec<u64>>,
}

impl RetryTerms for Script {
    fn is_over(&self) -> bool {
        self.waits.get() >= self.rounds
    }

    async fn can_write(&self) -> bool {
        self.writes
    }

    async fn wait(&self, _: &StoreError, _: Duration) {
        self.waits.set(self.waits.get() + 1);
    }

    async fn give_up(&self, chunk: ChunkId, _: u32, _: &StoreError) {
        self.given_up.borrow_mut().push(chunk.raw());
    }
}

impl ChunkWrite for u64 {
    fn lease(&self) -> Lease {
        Lease { chunk: ChunkId::from_raw(*self), epoch: 1 }
    }
}

/// Writes chunks 0 to 9 to a store that refuses some of them, and with them every call that contains them.
async fn asked(script: &Script, refuses: impl Fn(u64) -> Option<StoreError>) -> (Vec<u64>, usize) {
    let calls = Cell::new(0);
    let answers = retry_until_written(script, (0..10).collect(), None, |some: Vec<u64>| {
        calls.set(calls.get() + 1);
        let refusal = some.iter().find_map(|one| refuses(*one));
        ready(refusal.map_or(Ok(some), Err))
    });
    (answers.await, calls.get())
}

fn down() -> StoreError {
    StoreError::Unavailable("disk I/O error".into())
}

fn unread() -> StoreError {
    StoreError::Unreadable("disk I/O error".into())
}

#[tokio::test]
async fn what_alone_cannot_be_written_is_given_up_after_a_few_tries_and_the_rest_is_written_at_once() {
    let script = Script { writes: true, rounds: 1_000, ..Script::default() };
    let (mut answers, calls) = asked(&script, |one| (one == 3).then(unread)).await;
    answers.sort_unstable();
    assert_eq!(answers, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(*script.given_up.borrow(), [3]);
    assert_eq!((script.waits.get(), calls), (TRIES_MAX_COUNT as usize - 1, 15));
}

#[tokio::test]
async fn while_nothing_can_be_written_nothing_is_given_up_and_few_calls_are_made() {
    let script = Script { rounds: 50, ..Script::default() };
    let (answers, calls) = asked(&script, |_| Some(unread())).await;
    assert!(answers.is_empty() && script.given_up.borrow().is_empty());
    assert_eq!(calls, 51 * (1 + FAILURES_MAX_COUNT));
}

#[tokio::test]
async fn a_disk_that_comes_back_loses_nothing() {
    let script = Script { rounds: 1_000, ..Script::default() };
    let (mut answers, _) = asked(&script, |_| (script.waits.get() < 20).then(down)).await;
    answers.sort_unstable();
    assert_eq!(answers, (0..10).collect::<Vec<_>>());
    assert!(script.given_up.borrow().is_empty());
}

#[tokio::test]
async fn a_disk_that_fails_to_sync_now_and_then_costs_no_chunk() {
    let script = Script { writes: true, rounds: 1_000, ..Script::default() };
    let (mut answers, _) = asked(&script, |one| (one == 3 && script.waits.get() < 20).then(down)).await;
    answers.sort_unstable();
    assert_eq!(answers, (0..10).collect::<Vec<_>>());
    assert!(script.given_up.borrow().is_empty());
}

#[tokio::test]
async fn a_refusal_is_not_repeated_and_costs_the_others_nothing() {
    let script = Script { writes: true, rounds: 1_000, ..Script::default() };
    let refusal = |one| (one == 7).then(|| StoreError::Conflict("incoherent".into()));
    let (answers, calls) = asked(&script, refusal).await;
    assert_eq!((answers.len(), calls, script.waits.get()), (9, 11, 0));
    assert_eq!(*script.given_up.borrow(), [7]);
}

#[tokio::test]
async fn many_that_cannot_be_written_hide_none_that_can() {
    let script = Script { writes: true, rounds: 1_000, ..Script::default() };
    let (answers, _) = asked(&script, |one| (one < 8).then(unread)).await;
    assert_eq!(answers, [8, 9]);
    let mut given_up = script.given_up.borrow().clone();
    given_up.sort_unstable();
    assert_eq!(given_up, (0..8).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_the_engine_alone_does_not_take_is_put_off_and_holds_up_nothing() {
    let script = Script { writes: true, rounds: 1_000, ..Script::default() };
    let mut late = Vec::new();
    let refuse = |some: Vec<u64>| ready(if some.contains(&3) { Err(down()) } else { Ok(some) });
    let answers = retry_until_written(&script, (0..10).collect(), Some(&mut late), refuse).await;
    assert_eq!((answers.len(), late), (9, vec![3]));
    assert!(script.given_up.borrow().is_empty());
    assert_eq!(script.waits.get(), TRIES_MAX_COUNT as usize - 1);
}

#[tokio::test]
async fn while_nothing_can_be_written_nothing_is_put_off() {
    let script = Script { rounds: 20, ..Script::default() };
    let mut late = Vec::new();
    let refuse = |_: Vec<u64>| ready(Err::<Vec<u64>, _>(down()));
    let answers = retry_until_written(&script, (0..10).collect(), Some(&mut late), refuse).await;
    assert!(answers.is_empty() && late.is_empty());
}
