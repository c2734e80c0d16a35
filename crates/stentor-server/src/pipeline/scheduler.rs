//! Fires schedules that are due and wakes the starter for campaigns that are, then sleeps until the next is due.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use stentor_core::id::MessageId;
use stentor_core::message::Message;
use stentor_core::ports::store::{Occurrence, StoreError};
use stentor_core::schedule::Schedule;
use stentor_core::time::Timestamp;

use super::calendar::{self, Due};
use super::shared::{PipelineContext, sleep_until};

/// Most schedules in one call of the store.
const DUE_MAX_COUNT: usize = 100;
/// Most ticks of one schedule in one look; others wait for the end of the look.
const TICKS_MAX_COUNT: usize = 4;
/// Shortest sleep, so that what cannot be started does not spin.
const SLEEP_MIN: Duration = Duration::from_millis(10);
/// Sleep after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// Looks for what is due until told to stop.
pub(crate) async fn run(shared: Arc<PipelineContext>) {
    while !shared.stop.is_cancelled() {
        let found = look(&shared).await;
        if let Err(error) = &found {
            tracing::warn!(%error, "looking for what is due failed");
        }
        let wait = sleep(&shared, found.is_ok());
        tokio::select! {
            () = shared.stop.cancelled() => {}
            () = shared.wakeups.scheduler.notified() => {}
            () = wait => {}
        }
    }
}

/// Fires what is due; what has been due meanwhile begins, whatever becomes of that.
async fn look(shared: &PipelineContext) -> Result<(), StoreError> {
    let fired = fire_all(shared, shared.now()).await;
    // Also after a failure: messages for later that have become due need no schedule.
    shared.wakeups.starter.notify_one();
    fired
}

/// Fires schedules side by side, so that they share commits.
async fn fire_all(shared: &PipelineContext, now: Timestamp) -> Result<(), StoreError> {
    let due = shared.store.due_schedules(now, DUE_MAX_COUNT).await?;
    let firing = due.iter().map(|schedule| fire_or_log(shared, schedule, now));
    join_all(firing).await.into_iter().collect()
}

/// Fires a schedule; one that turns out to be damaged fires no more.
async fn fire_or_log(
    shared: &PipelineContext,
    schedule: &Schedule,
    now: Timestamp,
) -> Result<(), StoreError> {
    let fired = fire(shared, schedule, now).await;
    if let Err(error) = &fired {
        tracing::error!(schedule = %schedule.id, %error, "a schedule could not fire");
    }
    match fired {
        Err(StoreError::Damaged(_)) => shared.store.quarantine_schedule(schedule.id).await,
        fired => fired,
    }
}

async fn sleep(shared: &PipelineContext, well: bool) {
    let longest = Duration::from_millis(shared.config.scheduler_max_sleep_ms).max(SLEEP_MIN);
    match shared.store.next_due().await {
        Ok(next) if well => {
            tokio::time::sleep(SLEEP_MIN).await;
            sleep_until(&*shared.clock, next.unwrap_or(Timestamp::MAX), longest).await;
        }
        _ => tokio::time::sleep(FAILURE_PAUSE).await,
    }
}

/// Fires a schedule's ticks that have come, by its rule for those that were missed: a few of them, the next look goes on.
async fn fire(shared: &PipelineContext, schedule: &Schedule, now: Timestamp) -> Result<(), StoreError> {
    let Some(first) = schedule.next_due else { return Ok(()) };
    let recurrence = &schedule.recurrence;
    let due = calendar::ticks_to_fire(recurrence, first, now, recurrence.catch_up).unwrap_or_else(|invalid| {
        tracing::error!(schedule = %schedule.id, %invalid, "a schedule cannot be read any more; it is finished");
        Due::default()
    });
    let skip = |next_due| Occurrence { schedule: schedule.id, instant: first, message: None, next_due };
    if due.fire.first() != Some(&first) {
        let next = due.fire.first().copied().or(due.next);
        shared.store.fire(&skip(next)).await?;
    }
    // One after the other: each writes when the schedule is due next, and the last word must be the latest.
    for (at, instant) in due.fire.iter().enumerate().take(TICKS_MAX_COUNT) {
        let next_due = due.fire.get(at + 1).copied().or(due.next);
        fire_one(shared, schedule, *instant, next_due).await?;
    }
    Ok(())
}

/// Returns the instant at which an occurrence is due: its tick, or for audiences a little later, always by the same.
fn start_of(schedule: &Schedule, tick: Timestamp, spread: Duration) -> Timestamp {
    let within = if schedule.recurrence.exact { Duration::ZERO } else { spread };
    calendar::off_the_minute(tick, schedule.spec.target.class(), within, schedule.id.raw())
}

/// Sends one occurrence; a target that is gone skips it.
///
/// The message is due at its tick or shortly after, not at the time of the look: its ttl counts from there, so that a
/// tick made up for long after may end expired.
async fn fire_one(
    shared: &PipelineContext,
    schedule: &Schedule,
    instant: Timestamp,
    next_due: Option<Timestamp>,
) -> Result<(), StoreError> {
    let now = shared.now();
    let message = Message {
        id: MessageId::from_raw(shared.ids.next(now)),
        app: schedule.app,
        spec: schedule.spec.clone(),
        created_at: now,
        due_at: start_of(schedule, instant, shared.config.start_spread()),
        occurrence: Some((schedule.id, instant)),
    };
    let occurrence = Occurrence { schedule: schedule.id, instant, message: Some(message), next_due };
    match shared.store.fire(&occurrence).await {
        Err(StoreError::NotFound(what)) => {
            tracing::warn!(schedule = %schedule.id, what, "a schedule's target is gone; its tick is skipped");
            // The tick is used up all the same, or it would be found due at every look.
            shared.store.fire(&Occurrence { message: None, ..occurrence }).await?;
            Ok(())
        }
        other => other.map(|_| ()),
    }
}
