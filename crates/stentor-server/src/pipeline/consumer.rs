//! A consumer: sends many batches at a time and passes their outcomes to the settler.
//!
//! Outcomes are settled as they arrive. If most of a chunk is answered and the rest is late, the answered part is settled, and the rest
//! continues as a chunk of its own under the same lease. A device that gets no answer for half a minute thus delays no other device, and
//! leaves no other device in doubt after a crash.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use stentor_core::delivery::DeliveryState;
use stentor_core::outcome::Outcome;
use stentor_core::ports::settled::SettledChunk;
use stentor_core::ports::store::{LeasedChunk, SendDecision};
use stentor_core::settlement::Settlement;
use tokio::sync::{mpsc, oneshot};

use super::attempt::{Attempt, Source};
use super::budget::Reservation;
use super::due_index::DispatcherKey;
use super::lease_table::LeaseGuard;
use super::provider_table::{BreakerState, Probe, ProviderHandle, Verdict};
use super::settle::evidence::{Evidence, evident};
use super::settle::{AnswerCounts, Settled, count_foreign, is_weak, settle};
use super::settler_inbox::{ChunkPlace, Continuation, LeaseParts, SettlerWork};
use super::shared::PipelineContext;

/// A leased chunk on its way to a provider.
pub(crate) struct SendJob {
    pub(crate) chunk: Box<LeasedChunk>,
    pub(crate) place: ChunkPlace,
    pub(crate) hold: Reservation,
    pub(crate) guard: LeaseGuard,
    pub(crate) handle: Arc<ProviderHandle>,
    pub(crate) probe: Option<Probe>,
    /// Counts the job as one of its consumer's batches, until most of it is answered.
    pub(crate) busy: Busy,
}

/// Counts one batch of a consumer for as long as it lives.
pub(crate) struct Busy(Arc<AtomicUsize>);

impl Busy {
    pub(super) fn of(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Serves one dispatcher until its job channel is closed.
pub(crate) async fn run(
    shared: Arc<PipelineContext>,
    dispatcher: DispatcherKey,
    mut jobs: mpsc::Receiver<SendJob>,
) {
    let mut batches = FuturesUnordered::new();
    let mut open = true;
    while open || !batches.is_empty() {
        tokio::select! {
            // Not polled after the channel is closed: it would always be ready, and the loop would spin.
            job = jobs.recv(), if open => match job {
                Some(job) => batches.push(carry(&shared, dispatcher, job)),
                None => open = false,
            },
            // A place is free: the dispatcher may be waiting for one.
            Some(()) = batches.next(), if !batches.is_empty() => shared.due_index.wake(dispatcher),
        }
    }
}

/// Completes one chunk: sends and settles it, or releases it unsent.
async fn carry(shared: &PipelineContext, dispatcher: DispatcherKey, mut job: SendJob) {
    let key = (job.chunk.message.app, job.chunk.provider);
    let source = Source { key, handle: job.handle.clone(), is_probe: job.probe.is_some() };
    // Answers to other batches may have opened the breaker since the ticket was leased.
    let is_open = !source.is_probe && shared.providers.state(key, shared.now()) != BreakerState::Closed;
    // If other nodes removed this one as dead, they own the chunks that it leased before.
    if is_open || shared.stop.is_cancelled() || !shared.standing.may_act() {
        let (id, epoch) = (job.chunk.id, job.chunk.epoch);
        return hand_over(shared, dispatcher, job, |lease_parts| {
            SettlerWork::Release(id, epoch, shared.now(), lease_parts)
        })
        .await;
    }
    let (tell, mut early_outcomes) = oneshot::channel();
    let attempt = Attempt::of(&mut job.chunk, source.clone());
    // Pinned, not moved into the branch: the same future continues after early outcomes.
    let mut sending = std::pin::pin!(attempt.send(shared, Box::new(|early| drop(tell.send(early)))));
    tokio::select! {
        // Outcomes first: a batch that is fully answered needs no separate chunk for a rest.
        biased;
        outcomes = &mut sending => settle_whole(shared, dispatcher, &source, job, &outcomes).await,
        Ok(early) = &mut early_outcomes => settle_apart(shared, dispatcher, &source, job, early, sending).await,
    }
}

async fn settle_whole(
    shared: &PipelineContext,
    dispatcher: DispatcherKey,
    source: &Source,
    job: SendJob,
    outcomes: &[Outcome],
) {
    let settlement = decide(shared, source, &job.chunk, outcomes, Evidence::default());
    hand_over(shared, dispatcher, job, |lease_parts| SettlerWork::Settle(settlement, lease_parts, None))
        .await;
}

/// Settles the answered part, and the rest when its outcomes arrive.
async fn settle_apart(
    shared: &PipelineContext,
    dispatcher: DispatcherKey,
    source: &Source,
    mut job: SendJob,
    early: Vec<Option<Outcome>>,
    sending: impl Future<Output = Vec<Outcome>>,
) {
    let parts = Parts::of(&job.chunk, early);
    if parts.awaited.is_empty() {
        return settle_whole(shared, dispatcher, source, job, &sending.await).await;
    }
    // Before the job is sent to the settler: its commit gives the whole reservation back to the budget.
    let (rest, reservation) = (job.chunk.part(&parts.awaited), job.hold.split(parts.awaited.len() as u64));
    let (settlement, before) = settle_answered(shared, source, &job.chunk, &parts);
    let (tell, receiver) = oneshot::channel();
    // Before waiting for the rest, so that the answered part is soon on disk.
    hand_over(shared, dispatcher, job, |lease_parts| {
        SettlerWork::Settle(settlement, lease_parts, Some(tell))
    })
    .await;
    // The job's place among the consumer's batches is free, although its rest is still awaited.
    shared.due_index.wake(dispatcher);
    let (outcomes, continuation) = join(sending, receiver).await;
    // The sender was dropped: the lease was lost or the chunk quarantined, and the awaited part with it.
    let Ok((awaited, guard)) = continuation as Result<Continuation, _> else { return };
    let rest = LeasedChunk { id: awaited.lease.chunk, epoch: awaited.lease.epoch, ..rest };
    let late: Vec<_> = parts.places.iter().filter_map(|at| outcomes.get(*at).cloned()).collect();
    let settlement = decide(shared, source, &rest, &late, before);
    let lease_parts = LeaseParts { place: None, hold: reservation, guard, settled_chunk: None };
    let _ = shared.settlers.of(dispatcher.1).send(SettlerWork::Settle(settlement, lease_parts, None)).await;
}

fn settle_answered(
    shared: &PipelineContext,
    source: &Source,
    chunk: &LeasedChunk,
    parts: &Parts,
) -> (Settlement, Evidence) {
    let answered = chunk.part(&parts.answered);
    let settlement = decide(shared, source, &answered, &parts.outcomes, Evidence::default());
    let settlement = settlement.spread(&parts.answered, parts.awaited.clone(), chunk.ambiguous);
    (settlement, Evidence::of(&evident(chunk.provider, &parts.outcomes), is_weak(chunk, source.is_probe)))
}

/// A chunk of which a part is answered.
struct Parts {
    /// Positions that are answered, or need no answer.
    answered: Vec<u32>,
    /// Outcomes of those that were sent.
    outcomes: Vec<Outcome>,
    /// The other positions.
    awaited: Vec<u32>,
    /// The indices of the awaited positions among the outcomes of the batch.
    places: Vec<usize>,
}

impl Parts {
    /// Splits a chunk by its early outcomes; `early` has one entry per position that was sent, in order.
    fn of(chunk: &LeasedChunk, early: Vec<Option<Outcome>>) -> Self {
        let (mut answered, mut outcomes) = (Vec::new(), Vec::with_capacity(early.len()));
        let (mut awaited, mut places) = (Vec::new(), Vec::new());
        let mut early = early.into_iter().enumerate();
        for (position, decision) in (0..).zip(&chunk.decisions) {
            let sent = if *decision == SendDecision::Send { early.next() } else { None };
            if let Some((place, None)) = sent {
                awaited.push(position);
                places.push(place);
                continue;
            }
            answered.push(position);
            outcomes.extend(sent.and_then(|(_, outcome)| outcome));
        }
        Self { answered, outcomes, awaited, places }
    }
}

/// Turns outcomes into a settlement, and updates the lane's breaker and statistics. `before` is the evidence of the outcomes of the same
/// batch that were settled earlier.
fn decide(
    shared: &PipelineContext,
    source: &Source,
    chunk: &LeasedChunk,
    outcomes: &[Outcome],
    before: Evidence,
) -> Settlement {
    let Source { key, handle, is_probe } = source;
    // Drawn once here: `settle` stays a function of its arguments.
    let (jitter, now) = (rand::random(), shared.now());
    let evidence =
        Evidence::of(&evident(chunk.provider, outcomes), is_weak(chunk, *is_probe)).and_fine(before);
    let evidence = evidence.and_foreign(count_foreign(chunk.provider, outcomes));
    // Weighed before it is judged: `settle` needs the standing of the push service with these outcomes included, and `judge` needs the
    // result of `settle`.
    let standing = shared.providers.weigh(*key, handle, evidence, *is_probe);
    let Settled { settlement, parking, health } =
        settle(chunk, outcomes, standing, &shared.config.retry(), jitter, now);
    let health = AnswerCounts { answered: health.answered + before.fine, ..health };
    let repeated = is_weak(chunk, false);
    shared.providers.judge(*key, handle, Verdict { parking, health, standing, repeated, jitter }, now);
    let accepted = settlement.records.iter().filter(|record| record.state() == DeliveryState::Accepted);
    let after = now.since(chunk.message.due_at);
    shared.meter(key.1).note_accepted(after, accepted.count() as u64);
    settlement
}

async fn hand_over(
    shared: &PipelineContext,
    dispatcher: DispatcherKey,
    job: SendJob,
    work: impl FnOnce(LeaseParts) -> SettlerWork,
) {
    let SendJob { chunk, place, hold: reservation, guard, probe, busy, .. } = job;
    // Dropped before anything that waits: while the probe lives, the breaker allows no other attempt.
    drop(probe);
    let settled_chunk = chunk.provider.has_receipts().then(|| settled_chunk(*chunk));
    // A closed channel means that the pipeline has ended; the next process recovers the lease.
    let settler = shared.settlers.of(dispatcher.1);
    let parts = LeaseParts { place: Some(place), hold: reservation, guard, settled_chunk };
    let _ = settler.send(work(parts)).await;
    // The place is freed only when the settler has room.
    drop(busy);
}

/// Returns the part of a chunk that connected devices receive: the deliveries that were sent.
fn settled_chunk(chunk: LeasedChunk) -> SettledChunk {
    let sent = chunk.devices.into_iter().zip(&chunk.decisions);
    let devices = sent.filter(|(_, decision)| **decision == SendDecision::Send).map(|(device, _)| device);
    SettledChunk { chunk: chunk.id, message: chunk.message, devices: devices.collect(), is_certain: true }
}

#[cfg(test)]
mod tests;
