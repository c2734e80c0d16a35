//! Retries of writes to the store, for as long as nothing can be written. A chunk that fails while others can be written is given up after
//! a few tries, so that it delays no other.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stentor_core::id::ChunkId;
use stentor_core::ports::store::{Lease, StoreError, WriteProof};

use super::shared::PipelineContext;

const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_secs(5);
/// Tries of a chunk that fail while others succeed, before it is given up.
pub(super) const TRIES_MAX_COUNT: u32 = 5;
/// Failures in a row after which the store counts as unable to write in this round.
pub(super) const FAILURES_MAX_COUNT: usize = 4;

/// A write concerning one chunk.
pub(super) trait ChunkWrite: Clone {
    /// Returns the lease of the chunk.
    fn lease(&self) -> Lease;
}

/// The parts of the pipeline that a retry needs.
pub(super) trait RetryTerms {
    /// Returns true if no time is left.
    fn is_over(&self) -> bool;
    /// Returns true if the store can write now.
    async fn can_write(&self) -> bool;
    /// Waits before the next round, or until no time is left.
    async fn wait(&self, problem: &StoreError, wait: Duration);
    /// Quarantines a chunk for the given reason.
    async fn give_up(&self, chunk: ChunkId, epoch: u32, why: &StoreError);
}

impl RetryTerms for PipelineContext {
    fn is_over(&self) -> bool {
        self.cut.is_cancelled()
    }

    async fn can_write(&self) -> bool {
        self.store.keeps(WriteProof::Now).await.is_ok()
    }

    async fn wait(&self, problem: &StoreError, wait: Duration) {
        tracing::warn!(%problem, "the store is unavailable; outcomes are kept until it is back");
        self.store_retries.fetch_add(1, Ordering::Relaxed);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.cut.cancelled() => {}
        }
    }

    async fn give_up(&self, chunk: ChunkId, epoch: u32, why: &StoreError) {
        self.quarantine(chunk, Some(epoch), why).await;
    }
}

/// Calls the store until everything is written or given up, and returns the replies. An entry refused for a reason other than an
/// unavailable store is given up at once. Entries left when the time is over stay leased. If `late` is given, an entry that the engine
/// repeatedly refuses while it accepts the others is moved there, because others wait behind it.
pub(super) async fn retry_until_written<A: ChunkWrite, T, F>(
    terms: &impl RetryTerms,
    writes: Vec<A>,
    mut late: Option<&mut Vec<A>>,
    call: impl Fn(Vec<A>) -> F,
) -> Vec<T>
where
    F: Future<Output = Result<Vec<T>, StoreError>>,
{
    let mut left: Vec<(A, u32)> = writes.into_iter().map(|one| (one, 0)).collect();
    let (mut answers, mut wait) = (Vec::new(), RETRY_FIRST);
    while !left.is_empty() {
        let together = call(left.iter().map(|(one, _)| one.clone()).collect()).await;
        let problem = match together {
            Ok(more) => {
                answers.extend(more);
                return answers;
            }
            Err(problem) => problem,
        };
        let Round { failed, untried, worked, problem } =
            one_by_one(terms, left, problem, &call, &mut answers).await;
        if failed.is_empty() {
            left = untried;
            continue;
        }
        // While nothing can be written, a failure is not caused by the chunk.
        let worked = worked || terms.can_write().await;
        left = untried;
        for (one, tries, unread) in failed {
            let Lease { chunk, epoch } = one.lease();
            match (tries + u32::from(worked), &mut late) {
                (TRIES_MAX_COUNT.., _) if unread => terms.give_up(chunk, epoch, &problem).await,
                (TRIES_MAX_COUNT.., Some(late)) => late.push(one),
                (tries, _) => left.push((one, tries)),
            }
        }
        if terms.is_over() {
            return answers;
        }
        if !left.is_empty() {
            terms.wait(&problem, wait).await;
            wait = (wait * 2).min(RETRY_LAST);
        }
    }
    answers
}

/// The result of one round of single calls.
struct Round<A> {
    /// Entries with their number of failures, and true if the store could not read them in this round.
    failed: Vec<(A, u32, bool)>,
    untried: Vec<(A, u32)>,
    worked: bool,
    problem: StoreError,
}

async fn one_by_one<A: ChunkWrite, T, F>(
    terms: &impl RetryTerms,
    left: Vec<(A, u32)>,
    mut problem: StoreError,
    call: &impl Fn(Vec<A>) -> F,
    answers: &mut Vec<T>,
) -> Round<A>
where
    F: Future<Output = Result<Vec<T>, StoreError>>,
{
    let (mut failed, mut untried, mut worked) = (Vec::new(), Vec::new(), false);
    let mut repeat = (left.len() == 1).then(|| problem.clone());
    for (one, tries) in left {
        if !worked && failed.len() >= FAILURES_MAX_COUNT {
            untried.push((one, tries));
            continue;
        }
        // A single entry was already called alone.
        let answer = match repeat.take() {
            Some(problem) => Err(problem),
            None => call(vec![one.clone()]).await,
        };
        match answer {
            Ok(more) => {
                worked = true;
                answers.extend(more);
            }
            Err(why @ (StoreError::Unavailable(_) | StoreError::Unreadable(_))) => {
                let unread = matches!(why, StoreError::Unreadable(_));
                problem = why;
                failed.push((one, tries, unread));
            }
            Err(why) => {
                let Lease { chunk, epoch } = one.lease();
                terms.give_up(chunk, epoch, &why).await;
            }
        }
    }
    Round { failed, untried, worked, problem }
}

#[cfg(test)]
mod tests;
