//! The janitor: repairs the effects of crashes and failed calls, ends expired work, deletes old records, extends leases.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use stentor_core::chunk::TrafficClass;
use stentor_core::id::ChunkId;
use stentor_core::ports::store::{PruneTask, Swept};
use stentor_core::time::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::republishing::{DutyError, publish_queued};
use super::shared::{PipelineContext, report_queue_failure};

/// Most rows in one call of the store.
const PAGE_MAX_COUNT: usize = 1_000;
/// Upstream messages are kept this long after their expiry, so that a consumer that holds one can still dead-letter it.
const UPSTREAM_GRACE_HOURS: u64 = 1;
/// Shortest time between two readings of the queue's depths.
const DEPTHS_PAUSE: Duration = Duration::from_millis(250);
/// The pause after a reading of the depths is at least this many times as long as the reading.
const DEPTHS_REST: u32 = 20;
/// The pause after a duty is at least this many times as long as the duty.
const DUTY_REST: u32 = 2;

/// Runs all duties at their intervals until the pipeline stops.
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
        every(&shared, duty("continuing unfinished work", config.sweep_interval_ms), go_on),
        every(&shared, duty("pruning", config.prune_interval_ms), prune),
        every(&shared, duty("pruning the messages of devices", config.prune_interval_ms), prune_upstream),
        every(&shared, duty("pruning the audit trail", config.prune_interval_ms), prune_audit),
        every(&shared, duty("pruning the events of servers", config.sweep_interval_ms), prune_events),
        every(&shared, duty("forgetting apps", config.prune_interval_ms), forget_apps),
        watch_depths(&shared),
        make_up_for_losses(&shared),
        super::clock_step::watch(&shared),
    );
}

/// A periodic duty.
#[derive(Clone, Copy)]
struct Duty<'a> {
    /// Name of the duty in the log.
    name: &'static str,
    interval_ms: u64,
    /// Makes the duty due before its interval is over.
    early: Option<&'a Notify>,
}

/// Runs one duty at once and then at its interval, or less often if it takes long. A failure is logged, and the duty runs again at the next
/// interval.
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
                // A call that was refused just now would probably be refused again.
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

/// Publishes queued chunks again; chunks that are already in the queue stay as they are. Lanes that rest are left out, because they need at
/// most a probe; their chunks are published again when the lane opens.
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

/// Ends chunks past their ttl and takes back expired leases.
async fn sweep(shared: &PipelineContext) -> Result<(), DutyError> {
    loop {
        let swept = sweep_once(shared).await?;
        // Released chunks are published before expired ones are withdrawn: a ticket without a chunk costs only one read.
        shared.publish(&swept.released).await;
        if swept.expired.is_empty() {
            return Ok(());
        }
        shared.wakeups.progress.notify_waiters();
        shared.queue.withdraw(&swept.expired).await?;
    }
}

/// Sweeps once.
///
/// After an unavailable store or a clock jump, the leases that this process holds may have expired as well. They are extended first;
/// otherwise outcomes that it still has to write would be discarded and their deliveries sent again. For that, all leases must be in the
/// table, and the sweep must not use a later time than the extension.
async fn sweep_once(shared: &PipelineContext) -> Result<Swept, DutyError> {
    let _all_are_noted = shared.lease_table.complete().await;
    let now = shared.now();
    if shared.lease_table.is_stale(now, shared.config.lease_for() / 2) {
        prolong(shared).await?;
    }
    Ok(shared.store.sweep(PAGE_MAX_COUNT, now).await?)
}

/// Continues unfinished deletions and endings, a part in each transaction.
async fn go_on(shared: &PipelineContext) -> Result<(), DutyError> {
    while shared.store.continue_work(shared.now()).await? && !shared.stop.is_cancelled() {}
    Ok(())
}

/// Removes the lanes and quotas of deleted apps.
async fn forget_apps(shared: &PipelineContext) -> Result<(), DutyError> {
    // Read in this order, so that an app created in between is not in the first list yet.
    let mut gone = shared.providers.apps();
    for app in shared.store.apps().await? {
        gone.remove(&app.id);
    }
    shared.providers.forget(&gone);
    Ok(())
}

/// Deletes ended campaigns, idempotent responses and unregistered tokens after their retention, unless the clock has just jumped forward.
async fn prune(shared: &PipelineContext) -> Result<(), DutyError> {
    if !shared.may_forget() {
        return Ok(());
    }
    let ended = hours_ago(shared, shared.config.campaign_retention_hours);
    let replies = hours_ago(shared, shared.config.idempotency_retention_hours);
    delete_all(shared, PruneTask::Campaigns { ended_before: ended, replies_before: replies }).await?;
    // After the campaigns, because tokens counted by their chunks may now be deleted with them.
    let before = hours_ago(shared, shared.config.unlisted_retention_hours);
    delete_all(shared, PruneTask::Unlisted { before, after: 0 }).await
}

/// Deletes expired upstream messages and old dead letters, unless the clock has just jumped forward.
async fn prune_upstream(shared: &PipelineContext) -> Result<(), DutyError> {
    if !shared.may_forget() {
        return Ok(());
    }
    let expired_before = hours_ago(shared, UPSTREAM_GRACE_HOURS);
    let dead_before = hours_ago(shared, shared.config.campaign_retention_hours);
    delete_all(shared, PruneTask::Upstream { expired_before, dead_before }).await
}

/// Deletes entries of the audit trail after their retention, and expired proposals, unless the clock has just jumped forward.
async fn prune_audit(shared: &PipelineContext) -> Result<(), DutyError> {
    if !shared.may_forget() {
        return Ok(());
    }
    let before = hours_ago(shared, shared.config.audit_retention_hours);
    delete_all(shared, PruneTask::Audit { before }).await?;
    delete_all(shared, PruneTask::Proposals { expired_before: hours_ago(shared, 0) }).await
}

/// Deletes events between nodes that all nodes have read.
async fn prune_events(shared: &PipelineContext) -> Result<(), DutyError> {
    delete_all(shared, PruneTask::Events).await
}

async fn delete_all(shared: &PipelineContext, task: PruneTask) -> Result<(), DutyError> {
    let mut next = Some(task);
    while let Some(task) = next.filter(|_| !shared.stop.is_cancelled()) {
        next = shared.store.prune(task, PAGE_MAX_COUNT).await?.next;
    }
    Ok(())
}

fn hours_ago(shared: &PipelineContext, hours: u64) -> Timestamp {
    let span = i64::try_from(hours.saturating_mul(3_600_000)).unwrap_or(i64::MAX);
    Timestamp::from_millis(shared.now().as_millis().saturating_sub(span))
}

/// Extends the leases in use, well before they expire, until `stop` is cancelled.
pub(crate) async fn keep_leases(shared: &PipelineContext, stop: CancellationToken) {
    // A third of the lease, so that one extension may fail and the next is still in time.
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
    // Read before the list: a lease taken in between lasts longer than recorded here, never shorter.
    let lease = shared.lease(TrafficClass::Urgent);
    let (chunks, tickets) = shared.lease_table.list();
    if !chunks.is_empty() {
        shared.store.extend(&chunks, lease).await?;
    }
    // Only the store's leases matter: a ticket with an expired lease is leased again and found void.
    shared.lease_table.prolonged(lease.now);
    if tickets.is_empty() {
        return Ok(());
    }
    shared.queue.extend(&tickets, shared.config.lease_for(), shared.now()).await?;
    Ok(())
}

/// Publishes again at once when the queue reports that it lost its contents.
async fn make_up_for_losses(shared: &PipelineContext) {
    while shared.stop.run_until_cancelled(shared.queue.emptied()).await.is_some() {
        tracing::warn!("the queue has lost its contents: waiting chunks are published again");
        shared.wakeups.republish.notify_one();
    }
}

/// Reads the queue's depths after changes and at an interval, less often the longer a reading takes.
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
                // A failed reading costs the queue nothing, and the next one may show the loss.
                Duration::ZERO
            }
        };
        tokio::select! {
            () = tokio::time::sleep(interval.max(rest)) => {}
            () = shared.queue.changed() => tokio::time::sleep(DEPTHS_PAUSE.min(interval).max(rest)).await,
        }
    };
    // A reading changes nothing and the pause after a slow one is long, so a stop interrupts both.
    while shared.stop.run_until_cancelled(look()).await.is_some() {}
}

#[cfg(test)]
mod tests;
