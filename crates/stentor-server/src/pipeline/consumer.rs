//! A consumer: sends the batches it is handed, many at a time, and says what their outcomes mean.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use stentor_core::chunk::{Class, TokenList};
use stentor_core::delivery::DeliveryState;
use stentor_core::device::ProviderKind;
use stentor_core::id::DeviceId;
use stentor_core::outcome::Outcome;
use stentor_core::ports::provider::Batch;
use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::store::{Fate, LeasedChunk};
use stentor_core::settlement::Settlement;
use tokio::sync::mpsc;

use super::budget::Reservation;
use super::evidence::Evidence;
use super::lanes::{Key, Look, Outlet, Probe, Verdict};
use super::settle::{Settled, count_foreign, health_of, is_foreign, is_weak, settle};
use super::settler::{Over, Work};
use super::shared::{Kept, Shared};

/// A leased chunk on its way to a provider.
pub(crate) struct Job {
    pub(crate) chunk: Box<LeasedChunk>,
    pub(crate) lease: QueueLease,
    pub(crate) hold: Reservation,
    pub(crate) kept: Kept,
    pub(crate) outlet: Arc<Outlet>,
    pub(crate) probe: Option<Probe>,
}

impl Job {
    fn key(&self) -> Key {
        (self.chunk.message.app, self.chunk.provider)
    }
}

/// Serves one fleet until its jobs end; `busy` counts the jobs it was handed and has not finished.
pub(crate) async fn run(
    shared: Arc<Shared>,
    fleet: (ProviderKind, Class),
    mut jobs: mpsc::Receiver<Job>,
    busy: Arc<AtomicUsize>,
) {
    let mut batches = FuturesUnordered::new();
    let mut open = true;
    while open || !batches.is_empty() {
        tokio::select! {
            job = jobs.recv(), if open => match job {
                Some(job) => batches.push(carry(&shared, job)),
                None => open = false,
            },
            Some(()) = batches.next(), if !batches.is_empty() => {
                busy.fetch_sub(1, Ordering::AcqRel);
                shared.agenda.wake(fleet);
            }
        }
    }
}

/// Brings one chunk to its end: sent and settled, or given back unsent.
async fn carry(shared: &Shared, mut job: Job) {
    let key = job.key();
    let shut = job.probe.is_none() && shared.lanes.look(key, shared.now()) != Look::Open;
    if shut || shared.stop.is_cancelled() {
        let (id, epoch) = (job.chunk.id, job.chunk.epoch);
        hand_over(shared, job, |over| Work::Release(id, epoch, shared.now(), over)).await;
        return;
    }
    let outcomes = send(shared, &mut job).await;
    let settlement = decide(shared, &job, &outcomes);
    let now = settlement.now;
    let accepted = settlement.records.iter().filter(|record| record.state() == DeliveryState::Accepted);
    let after = now.since(job.chunk.message.due_at);
    shared.meter(key.1).note_accepted(after, accepted.count() as u64);
    hand_over(shared, job, |over| Work::Settle(settlement, over)).await;
}

/// Decides what the outcomes mean, and lets the lane learn from them.
fn decide(shared: &Shared, job: &Job, outcomes: &[Outcome]) -> Settlement {
    let (key, is_probe) = (job.key(), job.probe.is_some());
    let (jitter, now) = (rand::random(), shared.now());
    let evidence = Evidence::of(outcomes, is_weak(&job.chunk, is_probe));
    let evidence = evidence.and_foreign(count_foreign(job.chunk.provider, outcomes));
    let standing = shared.lanes.weigh(key, &job.outlet, evidence, is_probe);
    let Settled { settlement, parking, health } =
        settle(&job.chunk, outcomes, standing, &shared.config.retry(), jitter, now);
    let repeated = is_weak(&job.chunk, false);
    shared.lanes.judge(key, &job.outlet, Verdict { parking, health, standing, repeated, jitter }, now);
    settlement
}

async fn hand_over(shared: &Shared, job: Job, work: impl FnOnce(Over) -> Work) {
    let Job { lease, hold, kept, probe, .. } = job;
    drop(probe);
    // A closed channel means that the pipeline is gone: the lease is recovered by the next one.
    let settler = shared.settlers.of(lease.ticket.lane.class);
    let _ = settler.send(work(Over { lease, hold, kept })).await;
}

/// Sends what is to be sent; behind a gate that was shut, one delivery first and the rest only if it was answered.
async fn send(shared: &Shared, job: &mut Job) -> Vec<Outcome> {
    let devices = to_send(&job.chunk);
    let tokens = std::mem::take(&mut job.chunk.tokens);
    if devices.is_empty() || job.chunk.message.is_expired(shared.now()) {
        return Vec::new();
    }
    if job.probe.is_none() || devices.len() == 1 {
        return attempt(shared, job, devices, tokens).await;
    }
    let (first, rest) = (vec![devices[0]], devices[1..].to_vec());
    let mut outcomes = attempt(shared, job, first, part(&tokens, 0, 1)).await;
    let provider = job.chunk.provider;
    let is_well = health_of(&outcomes, false).answered > 0;
    if is_well && !outcomes.iter().any(|outcome| is_foreign(provider, outcome)) {
        outcomes.extend(attempt(shared, job, rest, part(&tokens, 1, devices.len())).await);
    }
    outcomes
}

fn to_send(chunk: &LeasedChunk) -> Vec<DeviceId> {
    if chunk.fates.len() == chunk.devices.len() && chunk.fates.iter().all(|fate| *fate == Fate::Send) {
        return chunk.devices.clone();
    }
    let fates = chunk.devices.iter().zip(&chunk.fates);
    fates.filter(|(_, fate)| **fate == Fate::Send).map(|(device, _)| *device).collect()
}

fn part(tokens: &TokenList, from: usize, to: usize) -> TokenList {
    let mut list = TokenList::default();
    (from..to).filter_map(|index| tokens.get(index)).for_each(|token| list.push(token));
    list
}

/// Hands one batch to the provider; what it has not noted when it is cut off, or panics, counts as never answered.
async fn attempt(shared: &Shared, job: &Job, devices: Vec<DeviceId>, tokens: TokenList) -> Vec<Outcome> {
    let count = devices.len();
    let batch = Batch { message: job.chunk.message.clone(), now: shared.now(), devices, tokens };
    let (provider, _in_use) = job.outlet.enter();
    let began = tokio::time::Instant::now();
    let longest = Duration::from_millis(shared.config.batch_timeout_ms);
    let cut = Box::pin(async {
        let _ = tokio::time::timeout(longest, shared.cut.cancelled()).await;
    });
    let sent = AssertUnwindSafe(provider.send_until(batch, cut)).catch_unwind().await;
    let mut outcomes = sent.unwrap_or_default();
    outcomes.resize(count, Outcome::Unknown);
    let unknown = outcomes.iter().filter(|outcome| **outcome == Outcome::Unknown).count();
    if unknown > 0 {
        tracing::warn!(provider = %provider.kind(), count, unknown, "a batch was not answered whole");
    }
    shared.meter(provider.kind()).note_batch(&outcomes, began.elapsed());
    outcomes
}
