//! Puts right what crashes and lost calls leave behind, ends what is too late, forgets what is old, prolongs leases.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use stentor_core::chunk::TrafficClass;
use stentor_core::id::ChunkId;
use stentor_core::ports::store::Swept;
use stentor_core::time::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::republishing::{DutyError, publish_queued};
use super::shared::{PipelineContext, report_queue_failure};

/// Most rows in one call of the store.
const PAGE_MAX_COUNT: usize = 1_000;
/// What a device sent outlives its expiry by this: whoever holds it can still put it on the list of dead letters.
const UPSTREAM_GRACE_HOURS: u64 = 1;
/// Shortest time between two looks at the queue's depths.
const DEPTHS_PAUSE: Duration = Duration::from_millis(250);
/// How much longer than a look at the depths the pause after it is.
const DEPTHS_REST: u32 = 20;
/// How much longer than a duty the pause after it is at least.
const DUTY_REST: u32 = 2;

/// Does all duties at their intervals until told to stop.
pub(crate) async fn run(shared: Arc<PipelineContext>) {
    let config = &shared.config;
    let duty = |name, interval_ms| Duty { name, interval_ms, early: None };
    let publishing = Duty {
        early: Some(&shared.wakeups.republish),
        ..duty("publishing again", config.republish_interval_ms)
    };
    tokio::join!(
        every(&shared, publishing, republish),
        every(&shared, duty("sweeping", config.sweep_interval_ms), sweep),
        every(&shared, duty("going on with what was begun", config.sweep_interval_ms), go_on),
        every(&shared, duty("pruning", config.prune_interval_ms), prune),
        every(&shared, duty("pruning what devices sent", config.prune_interval_ms), prune_upstream),
        every(&shared, duty("pruning the audit trail", config.prune_interval_ms), prune_audit),
        every(
            &shared,
            duty("forgetting what servers told each other", config.sweep_interval_ms),
            prune_events
        ),
        every(&shared, duty("forgetting apps", config.prune_interval_ms), forget_apps),
        watch_depths(&shared),
        make_up_for_losses(&shared),
        super::clock_step::watch(&shared),
    );
}

/// What is done at intervals.
#[derive(Clone, Copy)]
struct Duty<'a> {
    /// What the log calls it.
    name: &'static str,
    interval_ms: u64,
    /// What makes it due before its interval is over.
    early: Option<&'a Notify>,
}

/// Does one duty at once and then at its interval, or less often if it takes long; a failure is logged and tried again at the
/// next.
async fn every<'a, F>(shared: &'a PipelineContext, duty: Duty<'a>, work: impl Fn(&'a PipelineContext) -> F)
where
    F: Future<Output = Result<(), DutyError>>,
{
    let interval = Duration::from_millis(duty.interval_ms.max(1));
    while !shared.stop.is_cancelled() {
        let began = Instant::now();
        if let Err(error) = work(shared).await {
            tracing::warn!(%error, duty = duty.name, "a duty failed");
        }
        let pause = interval.max(began.elapsed() * DUTY_REST);
        tokio::select! {
            () = shared.stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
            () = notified(duty.early) => {
                // What was refused once is likely refused again at once.
                tokio::time::sleep(DEPTHS_PAUSE).await;
            }
        }
    }
}

async fn notified(early: Option<&Notify>) {
    match early {
        Some(early) => early.notified().await,
        None => std::future::pending().await,
    }
}

/// Publishes queued chunks: what the queue has already stays as it is. Of a lane that rests nothing is needed but a probe, so
/// that its chunks are published again when it is open.
async fn republish(shared: &PipelineContext) -> Result<(), DutyError> {
    if !shared.publishes() {
        return Ok(());
    }
    let resting = shared.resting_lanes();
    publish_queued(shared, ChunkId::from_raw(0), |ticket| {
        Some(ticket).filter(|ticket| !resting.contains(&ticket.lane))
    })
    .await
}

/// Ends what is past its ttl and takes back leases that ran out.
async fn sweep(shared: &PipelineContext) -> Result<(), DutyError> {
    loop {
        let swept = sweep_once(shared).await?;
        // What others may send goes before what has ended: a ticket without a chunk costs one look.
        shared.publish(&swept.released).await;
        if swept.expired.is_empty() {
            return Ok(());
        }
        shared.wakeups.progress.notify_waiters();
        shared.queue.withdraw(&swept.expired).await?;
    }
}

/// Sweeps at one instant.
///
/// After a store that was away, or a clock that jumped, the leases of what this process holds may have run out, too:
/// they are prolonged first, lest outcomes that it still has to write be thrown away and sent again. For that all that
/// are taken must be noted, and the sweep must not know a later time than the prolonging.
async fn sweep_once(shared: &PipelineContext) -> Result<Swept, DutyError> {
    let _all_are_noted = shared.lease_table.complete().await;
    let now = shared.now();
    if shared.lease_table.is_stale(now, shared.config.lease_for() / 2) {
        prolong(shared).await?;
    }
    Ok(shared.store.sweep(PAGE_MAX_COUNT, now).await?)
}

/// Removes what is left of what was removed, and ends what is left of what was ended, a part in each transaction.
async fn go_on(shared: &PipelineContext) -> Result<(), DutyError> {
    while shared.store.continue_work(shared.now()).await? && !shared.stop.is_cancelled() {}
    Ok(())
}

/// Forgets the lanes and quotas of apps that are gone.
async fn forget_apps(shared: &PipelineContext) -> Result<(), DutyError> {
    // Asked in this order: an app made in between is not remembered yet.
    let mut gone = shared.providers.apps();
    for app in shared.store.apps().await? {
        gone.remove(&app.id);
    }
    shared.providers.forget(&gone);
    Ok(())
}

/// Forgets ended campaigns, replies and unregistered tokens that were kept long enough, unless the clock has just jumped forward.
async fn prune(shared: &PipelineContext) -> Result<(), DutyError> {
    if !shared.may_forget() {
        return Ok(());
    }
    let ended = hours_ago(shared, shared.config.campaign_retention_hours);
    let replies = hours_ago(shared, shared.config.idempotency_retention_hours);
    while shared.store.prune(ended, replies, PAGE_MAX_COUNT).await? > 0 && !shared.stop.is_cancelled() {}
    // After the campaigns: their chunks count tokens that may go with them.
    let unlisted = hours_ago(shared, shared.config.unlisted_retention_hours);
    let mut next = Some(0);
    while let Some(after) = next.filter(|_| !shared.stop.is_cancelled()) {
        next = shared.store.prune_unlisted(unlisted, after).await?.1;
    }
    Ok(())
}

/// Forgets what devices sent and nobody needs any more, unless the clock has just jumped forward.
async fn prune_upstream(shared: &PipelineContext) -> Result<(), DutyError> {
    if !shared.may_forget() {
        return Ok(());
    }
    let expired = hours_ago(shared, UPSTREAM_GRACE_HOURS);
    let dead = hours_ago(shared, shared.config.campaign_retention_hours);
    let store = &shared.store;
    while store.prune_upstream(expired, dead, PAGE_MAX_COUNT).await? > 0 && !shared.stop.is_cancelled() {}
    Ok(())
}

/// Forgets entries of the audit trail that were kept long enough, unless the clock has just jumped forward.
async fn prune_audit(shared: &PipelineContext) -> Result<(), DutyError> {
    if !shared.may_forget() {
        return Ok(());
    }
    let before = hours_ago(shared, shared.config.audit_retention_hours);
    while shared.store.prune_audit(before, PAGE_MAX_COUNT).await? > 0 && !shared.stop.is_cancelled() {}
    Ok(())
}

/// Forgets what the servers that use the store have told each other and all of them heard.
async fn prune_events(shared: &PipelineContext) -> Result<(), DutyError> {
    while shared.store.prune_events(PAGE_MAX_COUNT).await? > 0 && !shared.stop.is_cancelled() {}
    Ok(())
}

fn hours_ago(shared: &PipelineContext, hours: u64) -> Timestamp {
    let span = i64::try_from(hours.saturating_mul(3_600_000)).unwrap_or(i64::MAX);
    Timestamp::from_millis(shared.now().as_millis().saturating_sub(span))
}

/// Prolongs the leases of what is being sent, well before they run out, until told to stop.
pub(crate) async fn keep_leases(shared: &PipelineContext, stop: CancellationToken) {
    // One try may fail: the next still comes in time.
    let interval = shared.config.lease_for() / 3;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(interval) => {}
        }
        if let Err(error) = prolong(shared).await {
            tracing::warn!(%error, "prolonging leases failed");
        }
    }
}

async fn prolong(shared: &PipelineContext) -> Result<(), DutyError> {
    // The instant before the list: a lease that is taken in between lasts longer than noted here, never shorter.
    let lease = shared.lease(TrafficClass::Urgent);
    let (chunks, tickets) = shared.lease_table.list();
    if !chunks.is_empty() {
        shared.store.extend(&chunks, lease).await?;
    }
    // The store's leases alone count: a ticket whose lease runs out is leased again and found void.
    shared.lease_table.prolonged(lease.now);
    if tickets.is_empty() {
        return Ok(());
    }
    shared.queue.extend(&tickets, shared.config.lease_for(), shared.now()).await?;
    Ok(())
}

/// Publishes again at once when the queue has noticed that it lost what it held.
async fn make_up_for_losses(shared: &PipelineContext) {
    while shared.stop.run_until_cancelled(shared.queue.emptied()).await.is_some() {
        tracing::warn!("the queue has lost what it held: what waits is published again");
        shared.wakeups.republish.notify_one();
    }
}

/// Looks at the queue's depths when it has changed, and now and then: the less often the longer a look takes.
async fn watch_depths(shared: &PipelineContext) {
    let interval = Duration::from_millis(shared.config.depths_interval_ms.max(1));
    let look = async || {
        let began = Instant::now();
        let rest = match shared.queue.depths(shared.now()).await {
            Ok(depths) => {
                shared.note_depths(depths);
                began.elapsed() * DEPTHS_REST
            }
            Err(error) => {
                report_queue_failure(&error, "the queue's depths could not be read");
                // It cost the queue nothing, and the next one may tell what it has lost.
                Duration::ZERO
            }
        };
        tokio::select! {
            () = tokio::time::sleep(interval.max(rest)) => {}
            () = shared.queue.changed() => tokio::time::sleep(DEPTHS_PAUSE.min(interval).max(rest)).await,
        }
    };
    // A look changes nothing, and the pause after a slow one is long: nobody who stops the server waits for either.
    while shared.stop.run_until_cancelled(look()).await.is_some() {}
}

#[cfg(test)]
mod tests;
