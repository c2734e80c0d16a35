//! A consumer: sends the batches it is handed, many at a time, and says what their outcomes mean.
//!
//! Outcomes are settled as they come: where most of a chunk is answered and the rest is late, what is answered is
//! settled, and the rest goes on as a chunk of its own under the same lease. One device that gets no answer for half a minute
//! thus holds up nobody else, and leaves nobody else in doubt after a crash.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use stentor_core::delivery::DeliveryState;
use stentor_core::outcome::Outcome;
use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::settled::SettledChunk;
use stentor_core::ports::store::{LeasedChunk, SendDecision};
use stentor_core::settlement::Settlement;
use tokio::sync::{mpsc, oneshot};

use super::attempt::{Attempt, Source};
use super::budget::Reservation;
use super::due_index::DispatcherKey;
use super::lease_table::LeaseGuard;
use super::provider_table::{BreakerState, Probe, ProviderHandle, Verdict};
use super::settle::evidence::Evidence;
use super::settle::{AnswerCounts, Settled, count_foreign, is_weak, settle};
use super::settler_inbox::{Continuation, LeaseParts, SettlerWork};
use super::shared::PipelineContext;

/// A leased chunk on its way to a provider.
pub(crate) struct SendJob {
    pub(crate) chunk: Box<LeasedChunk>,
    pub(crate) lease: QueueLease,
    pub(crate) hold: Reservation,
    pub(crate) guard: LeaseGuard,
    pub(crate) handle: Arc<ProviderHandle>,
    pub(crate) probe: Option<Probe>,
    /// Counts it as one of its consumer's batches, until most of it is answered.
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

/// Serves one dispatcher until its jobs end.
pub(crate) async fn run(
    shared: Arc<PipelineContext>,
    dispatcher: DispatcherKey,
    mut jobs: mpsc::Receiver<SendJob>,
) {
    let mut batches = FuturesUnordered::new();
    let mut open = true;
    while open || !batches.is_empty() {
        tokio::select! {
            // No more once it is closed, which is always ready: the loop would turn without end.
            job = jobs.recv(), if open => match job {
                Some(job) => batches.push(carry(&shared, dispatcher, job)),
                None => open = false,
            },
            // A place is free: the dispatcher may have stopped for want of one.
            Some(()) = batches.next(), if !batches.is_empty() => shared.due_index.wake(dispatcher),
        }
    }
}

/// Brings one chunk to its end: sent and settled, or given back unsent.
async fn carry(shared: &PipelineContext, dispatcher: DispatcherKey, mut job: SendJob) {
    let key = (job.chunk.message.app, job.chunk.provider);
    let source = Source { key, handle: job.handle.clone(), is_probe: job.probe.is_some() };
    // Answers to other batches may have opened the breaker since the ticket was leased.
    let is_open = !source.is_probe && shared.providers.state(key, shared.now()) != BreakerState::Closed;
    // What was leased before others took this node for dead is theirs by now.
    if is_open || shared.stop.is_cancelled() || !shared.standing.may_act() {
        let (id, epoch) = (job.chunk.id, job.chunk.epoch);
        return hand_over(shared, job, |over| SettlerWork::Release(id, epoch, shared.now(), over)).await;
    }
    let (tell, mut told) = oneshot::channel();
    let attempt = Attempt::of(&mut job.chunk, source.clone());
    // Pinned, not moved into the branch: after an early word the same future goes on.
    let mut sending = std::pin::pin!(attempt.send(shared, Box::new(|early| drop(tell.send(early)))));
    tokio::select! {
        // Outcomes first: what has come whole needs no chunk of its own for a rest.
        biased;
        outcomes = &mut sending => settle_whole(shared, &source, job, &outcomes).await,
        Ok(early) = &mut told => settle_apart(shared, dispatcher, &source, job, early, sending).await,
    }
}

async fn settle_whole(shared: &PipelineContext, source: &Source, job: SendJob, outcomes: &[Outcome]) {
    let settlement = decide(shared, source, &job.chunk, outcomes, Evidence::default());
    hand_over(shared, job, |over| SettlerWork::Settle(settlement, over, None)).await;
}

/// Settles what is answered, and the rest when it has come.
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
        return settle_whole(shared, source, job, &sending.await).await;
    }
    // Before the settler has the job: with its commit the budget gets the whole of its reservation back.
    let (rest, hold) = (job.chunk.part(&parts.awaited), job.hold.split(parts.awaited.len() as u64));
    let (settlement, before) = settle_answered(shared, source, &job.chunk, &parts);
    let (tell, told) = oneshot::channel();
    // Before the rest is waited for: what is answered is on disk soon, whatever becomes of the others.
    hand_over(shared, job, |over| SettlerWork::Settle(settlement, over, Some(tell))).await;
    // The job's place among the consumer's batches is free, though its rest is still waited for.
    shared.due_index.wake(dispatcher);
    let (outcomes, continuation) = join(sending, told).await;
    // Not told: the lease was lost, or the chunk set aside, and with it what was awaited.
    let Ok((awaited, guard)) = continuation as Result<Continuation, _> else { return };
    let rest = LeasedChunk { id: awaited.lease.chunk, epoch: awaited.lease.epoch, ..rest };
    let late: Vec<_> = parts.places.iter().filter_map(|at| outcomes.get(*at).cloned()).collect();
    let settlement = decide(shared, source, &rest, &late, before);
    let over = LeaseParts { lease: None, hold, guard, settled_chunk: None };
    let _ = shared.settlers.of(dispatcher.1).send(SettlerWork::Settle(settlement, over, None)).await;
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
    (settlement, Evidence::of(&parts.outcomes, is_weak(chunk, source.is_probe)))
}

/// A chunk of which a part is answered.
struct Parts {
    /// Positions that are answered, or need no answer.
    answered: Vec<u32>,
    /// Outcomes of those that were sent.
    outcomes: Vec<Outcome>,
    /// The other positions.
    awaited: Vec<u32>,
    /// Their places among all that was sent.
    places: Vec<usize>,
}

impl Parts {
    /// `early` belongs to the positions that were sent, in order.
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

/// Decides what the outcomes mean, and lets the lane learn from them; `before` is what was answered of the same batch
/// earlier.
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
    let evidence = Evidence::of(outcomes, is_weak(chunk, *is_probe)).and_fine(before);
    let evidence = evidence.and_foreign(count_foreign(chunk.provider, outcomes));
    // Weighed before it is judged: `settle` needs to know how the push service stands with these outcomes in, and
    // `judge` what `settle` made of them.
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

async fn hand_over(shared: &PipelineContext, job: SendJob, work: impl FnOnce(LeaseParts) -> SettlerWork) {
    let SendJob { chunk, lease, hold, guard, probe, busy, .. } = job;
    // Before anything that waits: while the probe lives, the breaker lets nobody else try.
    drop(probe);
    let settled_chunk = chunk.provider.has_receipts().then(|| settled_chunk(*chunk));
    // A closed channel means that the pipeline is gone: the lease is recovered by the next one.
    let settler = shared.settlers.of(lease.ticket.lane.class);
    let _ = settler.send(work(LeaseParts { lease: Some(lease), hold, guard, settled_chunk })).await;
    // Its place is free only once the settler has room.
    drop(busy);
}

/// Returns what connected devices of a chunk are to be given: those that were sent to.
fn settled_chunk(chunk: LeasedChunk) -> SettledChunk {
    let sent = chunk.devices.into_iter().zip(&chunk.decisions);
    let devices = sent.filter(|(_, decision)| **decision == SendDecision::Send).map(|(device, _)| device);
    SettledChunk { chunk: chunk.id, message: chunk.message, devices: devices.collect(), is_certain: true }
}

#[cfg(test)]
mod tests;
