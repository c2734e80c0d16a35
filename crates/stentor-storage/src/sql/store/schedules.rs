//! Schedules and their occurrences.

use async_trait::async_trait;
use stentor_core::id::{AppId, ScheduleId};
use stentor_core::name::Label;
use stentor_core::ports::store::{
    Idempotent, Listed, NewSchedule, Occurrence, Page, Precondition, ScheduleStore, StoreError,
};
use stentor_core::schedule::{Recurrence, Schedule, ScheduleState};
use stentor_core::time::Timestamp;

use super::codes::{ACTIVE, SCHEDULED};
use super::{app_providers, message_rows, replies, turns};
use crate::sql::{
    Connection, Done, EngineParts, Params, Row, SqlEngine, SqlStore, code, conflict, damaged, int, listed,
    maybe_text, maybe_time, missing, number, one, params, run, time, unless_repeat,
};

/// Later than every stored instant, and in SQLite before every text, which a damaged time may be.
const LAST: i64 = i64::MAX;

const SELECT: &str =
    "SELECT id, app, name, state, created_at, next_due, last_fired, recurrence, spec FROM schedules";

#[async_trait]
impl<E: SqlEngine> ScheduleStore for SqlStore<E> {
    async fn schedule(&self, app: AppId, id: ScheduleId) -> Result<Schedule, StoreError> {
        self.read(move |connection| find(connection, app, id)).await
    }

    async fn schedules(&self, app: AppId, page: Page) -> Result<Listed<Schedule, ScheduleId>, StoreError> {
        self.read(move |connection| {
            let sql = format!("{SELECT} WHERE app = ?1 AND id > ?2 AND state <> ?3 ORDER BY id");
            let deleted = i64::from(ScheduleState::Deleted.code());
            let rows = (sql.as_str(), [int(app.raw()), int(page.after), deleted]);
            listed(connection, "schedules", rows, page.limit, read, ScheduleId::from_raw)
        })
        .await
    }

    async fn due_schedules(&self, now: Timestamp, count: usize) -> Result<Vec<Schedule>, StoreError> {
        let (due, broken) = self
            .read(move |connection| match connection.is_firing()? {
                true => due(connection, now, count),
                false => Ok((Vec::new(), Vec::new())),
            })
            .await?;
        if !broken.is_empty() {
            self.write(move |connection| {
                broken.iter().try_for_each(|id| quarantine(connection, *id).map(drop))
            })
            .await?;
        }
        Ok(due)
    }

    async fn fire(&self, occurrence: &Occurrence) -> Result<bool, StoreError> {
        let occurrence = occurrence.clone();
        // Checked in the transaction that fires: a process that has lost the scheduler's role fires nothing.
        self.write(move |connection| Ok(connection.is_firing()? && fire(connection, &occurrence)?)).await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT min(at) FROM (SELECT min(next_due) AS at FROM schedules
                    WHERE state = {ACTIVE} AND next_due IS NOT NULL AND next_due < {LAST}
                UNION ALL SELECT min(due_at) FROM campaigns WHERE state = {SCHEDULED} AND due_at < {LAST}) AS due"
            );
            Ok(one(connection, &sql, (), |row| maybe_time(row, 0))?.flatten())
        })
        .await
    }
}

/// Returns the active schedules that are due, and the due ones that cannot be read.
fn due(connection: &Connection, now: Timestamp, count: usize) -> Done<(Vec<Schedule>, Vec<ScheduleId>)> {
    let ids = turns::due_schedules(connection, now, count)?;
    let (mut due, mut broken) = (Vec::with_capacity(ids.len()), Vec::new());
    for id in ids {
        match one(connection, &format!("{SELECT} WHERE id = ?1"), [id], read) {
            Ok(schedule) => due.extend(schedule),
            Err(fault) if fault.is_damage() => {
                crate::sql::note_damage(connection, "schedules", id, &fault);
                broken.push(ScheduleId::from_raw(id.cast_unsigned()));
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok((due, broken))
}

/// Marks a schedule as deleted even if its row is damaged, so that no list contains it.
pub(crate) fn delete_broken(connection: &Connection, app: AppId, id: ScheduleId) -> Done<()> {
    let sql = "UPDATE schedules SET state = ?3, next_due = NULL WHERE id = ?1 AND app = ?2";
    let deleted = i64::from(ScheduleState::Deleted.code());
    let done = force(connection, id, sql, [int(id.raw()), int(app.raw()), deleted])?;
    if done == 0 { Err(missing("schedule")) } else { Ok(()) }
}

/// Stops a schedule that cannot be read from firing; returns true if it exists.
pub(crate) fn quarantine(connection: &Connection, id: ScheduleId) -> Done<bool> {
    let sql = "UPDATE schedules SET state = ?2, next_due = NULL WHERE id = ?1";
    let damaged = i64::from(ScheduleState::Damaged.code());
    Ok(force(connection, id, sql, [int(id.raw()), damaged])? > 0)
}

fn force<'v>(connection: &Connection, id: ScheduleId, sql: &str, params: impl Params<'v>) -> Done<usize> {
    let condition = format!("id = {}", int(id.raw()));
    crate::sql::force(connection, "schedules", &condition, sql, params)
}

/// Stores a schedule, if its app has room for it.
pub(crate) fn create(connection: &Connection, new: &NewSchedule) -> Done<Idempotent<()>> {
    let NewSchedule { schedule, idempotency, max_count } = new;
    app_providers::check_app(connection, schedule.app)?;
    if let Some(given) = idempotency {
        if let Some(known) = replies::replay(connection, schedule.app, &given.key, &given.request_hash)? {
            // Before anything is checked: a repeat gets its first reply, once a standby has it as well.
            connection.await_standby();
            return Ok(replies::as_replayed(known));
        }
        // In the schedule's transaction: otherwise a stored reply could name a schedule that does not exist.
        connection.keep_reply(schedule.app, given, schedule.created_at)?;
    }
    // Counted only where it matters: an app may have many.
    max_count.map_or(Ok(()), |most| check_count(connection, schedule.app, most))?;
    let sql =
        "INSERT INTO schedules (id, app, name, state, created_at, next_due, last_fired, recurrence, spec)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING";
    let recurrence =
        serde_json::to_string(&schedule.recurrence).map_err(|error| damaged(&error.to_string()))?;
    let spec = schedule.spec.encode().map_err(|error| damaged(&error.to_string()))?;
    let values = params![
        int(schedule.id.raw()),
        int(schedule.app.raw()),
        schedule.name.as_ref().map(Label::as_str),
        schedule.state.code(),
        schedule.created_at.as_millis(),
        schedule.next_due.map(Timestamp::as_millis),
        schedule.last_fired.map(Timestamp::as_millis),
        recurrence,
        spec,
    ];
    run(connection, sql, values).and_then(|inserted| unless_repeat(inserted, "the schedule id is in use"))?;
    Ok(Idempotent::Done(()))
}

/// Refuses one schedule more than an app may have.
fn check_count(connection: &Connection, app: AppId, max_count: usize) -> Done<()> {
    let sql = "SELECT count(*) FROM schedules WHERE app = ?1 AND state IN (?2, ?3)";
    let values = params![int(app.raw()), ScheduleState::Active.code(), ScheduleState::Paused.code()];
    let known = one(connection, sql, values, |row| number(row, 0))?.unwrap_or_default();
    if known < max_count as u64 {
        return Ok(());
    }
    let why = format!("an app has at most {max_count} schedules that are active or paused");
    Err(StoreError::LimitReached(why).into())
}

/// Sets state and next tick of a schedule that has not ended.
pub(crate) fn change(
    connection: &Connection,
    app: AppId,
    id: ScheduleId,
    state: ScheduleState,
    next_due: Option<Timestamp>,
) -> Done<Schedule> {
    let before = find(connection, app, id)?.state;
    if !before.may_become(state) {
        return Err(conflict(format!("the schedule is {before}")));
    }
    set(connection, id, state, next_due)?;
    find(connection, app, id)
}

/// Cancels a schedule of which a precondition holds, and deletes it.
pub(crate) fn delete(
    connection: &Connection,
    app: AppId,
    id: ScheduleId,
    precondition: &Precondition<Schedule>,
) -> Done<()> {
    let schedule = find(connection, app, id)?;
    if schedule.state == ScheduleState::Deleted {
        return Err(missing("schedule"));
    }
    precondition.check(|| Done::Ok(Some(schedule)))?;
    set(connection, id, ScheduleState::Deleted, None)
}

/// Stores the message and advances the schedule. An occurrence that has fired before does not fire again, but the schedule advances.
fn fire(connection: &Connection, occurrence: &Occurrence) -> Done<bool> {
    let (id, instant) = (int(occurrence.schedule.raw()), occurrence.instant.as_millis());
    // One that was changed since it was read fires by its new time.
    let sql = format!("{SELECT} WHERE id = ?1 AND state = ?3 AND next_due = ?2");
    if one(connection, &sql, [id, instant, i64::from(ScheduleState::Active.code())], read)?.is_none() {
        return Ok(false);
    }
    let message = occurrence.message.as_ref().map(|message| int(message.id.raw()));
    let sql =
        "INSERT INTO occurrences (schedule, instant, message) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    // The key is schedule and instant: the first transaction to insert it fires, whatever was read before.
    let fires = run(connection, sql, params![id, instant, message])? > 0;
    if let Some(message) = occurrence.message.as_ref().filter(|_| fires) {
        connection.insert_message(message)?;
        run(connection, "UPDATE schedules SET last_fired = ?2 WHERE id = ?1", [id, instant])?;
    }
    let state = if occurrence.next_due.is_some() { ScheduleState::Active } else { ScheduleState::Finished };
    // Also when it fired before: otherwise it would be due again at once, for ever.
    set(connection, occurrence.schedule, state, occurrence.next_due)?;
    Ok(fires)
}

fn set(
    connection: &Connection,
    id: ScheduleId,
    state: ScheduleState,
    next_due: Option<Timestamp>,
) -> Done<()> {
    let sql = "UPDATE schedules SET state = ?2, next_due = ?3 WHERE id = ?1";
    let next_due = next_due.map(Timestamp::as_millis);
    run(connection, sql, params![int(id.raw()), state.code(), next_due]).map(drop)
}

fn find(connection: &Connection, app: AppId, id: ScheduleId) -> Done<Schedule> {
    let sql = format!("{SELECT} WHERE id = ?1 AND app = ?2");
    one(connection, &sql, [int(id.raw()), int(app.raw())], read)?.ok_or(missing("schedule"))
}

fn read(row: &Row<'_>) -> Done<Schedule> {
    let recurrence: Recurrence =
        serde_json::from_str(row.str(7)?).map_err(|_| damaged("a recurrence that cannot be read"))?;
    Ok(Schedule {
        id: ScheduleId::from_raw(number(row, 0)?),
        app: AppId::from_raw(number(row, 1)?),
        name: maybe_text(row, 2, Label::new)?,
        spec: message_rows::spec(row, 8)?,
        recurrence,
        state: code(row, 3, ScheduleState::from_code)?,
        created_at: time(row, 4)?,
        next_due: maybe_time(row, 5)?,
        last_fired: maybe_time(row, 6)?,
    })
}
