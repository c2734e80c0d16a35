//! The scheduler: fires due schedules, wakes the starter for due campaigns, and sleeps until the next due time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use stentor_core::id::MessageId;
use stentor_core::message::Message;
use stentor_core::ports::store::{BrokenWork, Occurrence, StoreError};
use stentor_core::schedule::Schedule;
use stentor_core::time::Timestamp;

use super::calendar::{self, Due};
use super::shared::{PipelineContext, sleep_until};

/// Most schedules in one call of the store.
const DUE_MAX_COUNT: usize = 100;
/// Most ticks of one schedule in one round; the rest follow in the next round.
const TICKS_MAX_COUNT: usize = 4;
/// Shortest sleep, so that work that cannot be started causes no busy loop.
const SLEEP_MIN: Duration = Duration::from_millis(10);
/// Sleep after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// Runs rounds until the pipeline stops.
pub(crate) async fn run(shared: Arc<PipelineContext>) {
    while !shared.stop.is_cancelled() {
        let found = look(&shared).await;
        if let Err(error) = &found {
            tracing::warn!(%error, "firing the due schedules failed");
        }
        let wait = sleep(&shared, found.is_ok());
        tokio::select! {
            () = shared.stop.cancelled() => {}
            () = shared.wakeups.scheduler.notified() => {}
            () = wait => {}
        }
    }
}

/// Fires due schedules and wakes the starter, even if firing fails.
async fn look(shared: &PipelineContext) -> Result<(), StoreError> {
    let fired = fire_all(shared, shared.now()).await;
    // Also after a failure: messages for later that are due do not depend on schedules.
    shared.wakeups.starter.notify_one();
    fired
}

/// Fires schedules concurrently, so that they share commits.
async fn fire_all(shared: &PipelineContext, now: Timestamp) -> Result<(), StoreError> {
    let due = shared.store.due_schedules(now, DUE_MAX_COUNT).await?;
    let firing = due.iter().map(|schedule| fire_or_log(shared, schedule, now));
    join_all(firing).await.into_iter().collect()
}

/// Fires a schedule and quarantines it if it is damaged.
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
        Err(StoreError::Damaged(_)) => {
            shared.store.quarantine(BrokenWork::Schedule(schedule.id), now).await.map(drop)
        }
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

/// Fires a schedule's due ticks by its rule for missed ticks. Fires a few at a time; the next round continues.
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
    // Sequential: each write sets the next due time of the schedule, and the last one must set the latest.
    for (at, instant) in due.fire.iter().enumerate().take(TICKS_MAX_COUNT) {
        let next_due = due.fire.get(at + 1).copied().or(due.next);
        fire_one(shared, schedule, *instant, next_due).await?;
    }
    Ok(())
}

/// Returns the due time of an occurrence: its tick, or for audiences slightly later, by the same offset each time.
fn start_of(schedule: &Schedule, tick: Timestamp, spread: Duration) -> Timestamp {
    let within = if schedule.recurrence.exact { Duration::ZERO } else { spread };
    calendar::off_the_minute(tick, schedule.spec.target.class(), within, schedule.id.raw())
}

/// Sends one occurrence. If its target no longer exists, the tick is skipped.
///
/// The message is due at its tick or shortly after, not at the time of the check. Its ttl counts from there, so a tick that is caught up
/// late may end expired.
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
            // The tick is used up all the same; otherwise every round would find it due.
            shared.store.fire(&Occurrence { message: None, ..occurrence }).await?;
            Ok(())
        }
        other => other.map(|_| ()),
    }
}
