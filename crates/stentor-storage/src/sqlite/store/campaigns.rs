//! Rows of campaigns: how they are read, change their state, and end.

use rusqlite::{Connection, Params, Row, params};
use stentor_core::campaign::{Campaign, CampaignAction, CampaignState, Stop};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::id::{AppId, CampaignId, ChunkId};
use stentor_core::ledger::{Finish, Standing, finish};
use stentor_core::outcome::Reason;
use stentor_core::time::Timestamp;

use super::aside;
use super::books::{self, Shelf};
use super::chunks::{self, Chunk, ChunkState};
use super::fleets::Fleet;
use super::lost::Lost;
use crate::sqlite::damage::{self, attempt};
use crate::sqlite::fault::{Done, Fault, conflict, missing};
use crate::sqlite::portion::Portion;
use crate::sqlite::query::{one, run};
use crate::sqlite::row::{code, int, maybe_code, maybe_time, number, time};

/// Queued chunks that are ended at once; more are left to other transactions.
const ENDED_AT_ONCE_MAX_COUNT: usize = 64;
/// How often as many are ended in one transaction.
const ROUNDS_MAX_COUNT: usize = 4;

const SELECT: &str =
    "SELECT id, app, state, created_at, due_at, expires_at, started_at, ended_at, stop_reason, stop_detail,
    as_of IS NOT NULL FROM campaigns";

/// Returns a campaign of the app, and whether its audience was begun.
pub(super) fn find(connection: &Connection, app: AppId, id: CampaignId) -> Done<(Campaign, bool)> {
    let sql = format!("{SELECT} WHERE id = ?1 AND app = ?2");
    let begun = |row: &Row<'_>| Ok((read(row)?, row.get(10)?));
    one(connection, &sql, [int(id.raw()), int(app.raw())], begun)?.ok_or(missing("message"))
}

/// Lists an app's campaigns, newest first, those below the cursor.
pub(super) fn list(connection: &Connection, app: AppId, below: u64, count: usize) -> Done<Vec<Campaign>> {
    let below = if below == 0 { i64::MAX } else { int(below) };
    let sql = format!("{SELECT} WHERE app = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3");
    let values = params![int(app.raw()), below, i64::MAX];
    Ok(damage::readable(connection, "campaigns", (&sql, values), count, read)?.0)
}

/// Lists those of an app's campaigns that cannot be read, newest first, those below the cursor.
pub(super) fn broken(connection: &Connection, app: AppId, below: u64, count: usize) -> Done<Vec<CampaignId>> {
    let below = if below == 0 { i64::MAX } else { int(below) };
    let sql = format!("{SELECT} WHERE app = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3");
    let values = params![int(app.raw()), below, i64::MAX];
    let broken = damage::readable(connection, "campaigns", (&sql, values), count, read)?.1;
    Ok(broken.into_iter().filter_map(|id| u64::try_from(id).ok()).map(CampaignId::from_raw).collect())
}

/// Does what the owner asks; returns the campaign as it is then. What is queued of a canceled one ends as far as a portion goes.
pub(super) fn act(
    connection: &Connection,
    (app, id): (AppId, CampaignId),
    action: CampaignAction,
    now: Timestamp,
) -> Done<Campaign> {
    let (campaign, begun) = match find(connection, app, id) {
        Err(fault) if fault.is_damage() && action == CampaignAction::Cancel => {
            cancel_unread(connection, id, now)?;
            return Ok(find(connection, app, id)?.0);
        }
        found => found?,
    };
    let before = campaign.state;
    let refused = || conflict(format!("cannot {action} a campaign that is {before}"));
    let after = before.after(action, begun).ok_or_else(refused)?;
    set_state(connection, id, after)?;
    if after == CampaignState::Canceled {
        expand_no_more(connection, id)?;
        wind_up(connection, id, now)?;
    }
    Ok(find(connection, app, id)?.0)
}

/// Stops a campaign at a provider that refuses it; what is queued there ends with it.
pub(super) fn stop(
    connection: &Connection,
    shelf: &mut Shelf<'_>,
    (id, fleet): (CampaignId, Fleet),
    stop: Stop,
    now: Timestamp,
) -> Done<()> {
    let sql = "DELETE FROM producers WHERE campaign = ?1 AND fleet = ?2";
    run(connection, sql, [int(id.raw()), int(fleet.no)])?;
    let verdict = (DeliveryState::Failed, stop.reason);
    shelf.open(id, fleet.provider)?.stop(stop);
    end_some_at(connection, shelf, (id, fleet.no), verdict, now).map(drop)
}

/// Ends some queued chunks of a campaign at a provider; returns how many.
fn end_some_at(
    connection: &Connection,
    shelf: &mut Shelf<'_>,
    (id, fleet): (CampaignId, u64),
    verdict: (DeliveryState, Reason),
    now: Timestamp,
) -> Done<usize> {
    let queued = chunks::queued_at(connection, id, fleet, ENDED_AT_ONCE_MAX_COUNT)?;
    for chunk in &queued {
        match chunks::find(connection, *chunk) {
            Ok(Some(chunk)) => end_chunk(connection, shelf, &chunk, verdict, now)?,
            Err(fault) if !fault.is_damage() => return Err(fault),
            Ok(None) | Err(_) => chunks::write_set_aside(connection, *chunk, now)?,
        }
    }
    Ok(queued.len())
}

/// Stops a campaign of which nothing was begun, because its message is damaged.
pub(super) fn set_aside(connection: &Connection, id: CampaignId, now: Timestamp) -> Done<()> {
    tracing::error!(campaign = %id, "its message cannot be read: it is stopped");
    let sql =
        "UPDATE campaigns SET state = ?2, ended_at = ?3, stop_reason = ?4, stop_detail = 'the message cannot be read'
        WHERE id = ?1";
    let (state, reason) = (i64::from(CampaignState::Stopped.code()), i64::from(Reason::Damaged.code()));
    force(connection, id, sql, [int(id.raw()), state, now.as_millis(), reason]).map(drop)
}

/// Ends a campaign that cannot be read, as its owner asks.
fn cancel_unread(connection: &Connection, id: CampaignId, now: Timestamp) -> Done<()> {
    let sql = "UPDATE campaigns SET state = ?2, ended_at = NULL, stop_reason = NULL, stop_detail = NULL WHERE id = ?1";
    let state = i64::from(CampaignState::Canceled.code());
    force(connection, id, sql, [int(id.raw()), state])?;
    expand_no_more(connection, id)?;
    wind_up(connection, id, now).map(drop)
}

/// Says that what was expanded is all that there will be.
fn expand_no_more(connection: &Connection, id: CampaignId) -> Done<()> {
    run(connection, "DELETE FROM producers WHERE campaign = ?1", [int(id.raw())])?;
    run(connection, "UPDATE ledgers SET audience_complete = 1 WHERE campaign = ?1", [int(id.raw())]).map(drop)
}

fn force<P: Params + Copy>(connection: &Connection, id: CampaignId, sql: &str, params: P) -> Done<usize> {
    let condition = format!("id = {}", int(id.raw()));
    damage::force(connection, ("campaigns", &condition), sql, params)
}

/// Ends a queued chunk: each of its deliveries in the same way.
pub(super) fn end_chunk(
    connection: &Connection,
    shelf: &mut Shelf<'_>,
    chunk: &Chunk,
    (state, reason): (DeliveryState, Reason),
    now: Timestamp,
) -> Done<()> {
    let record = Record::new(state, reason, chunk.ambiguous);
    shelf.open(chunk.campaign, chunk.lane.provider)?.end(record, chunk.count as u64)?;
    chunks::write_records(connection, chunk.id, &vec![record; chunk.count], now)
}

/// Ends queued chunks, each in the same way; returns which.
pub(super) fn end_queued(
    connection: &Connection,
    ids: &[ChunkId],
    verdict: (DeliveryState, Reason),
    (lost, now): (&Lost, Timestamp),
) -> Done<Vec<ChunkId>> {
    aside::with_each(connection, (ids, ChunkState::Queued), (lost, now), |shelf, chunk| {
        end_chunk(connection, shelf, &chunk, verdict, now).map(|()| chunk.id)
    })
}

/// Ends a campaign that is over.
pub(super) fn finish_if_over(connection: &Connection, id: CampaignId, now: Timestamp) -> Done<()> {
    let sql = "SELECT state, as_of IS NOT NULL, EXISTS (SELECT 1 FROM producers WHERE campaign = ?1), ended_at IS NOT NULL
        FROM campaigns WHERE id = ?1";
    let standing = |row: &Row<'_>| {
        let (state, has_begun) = (code(row, 0, CampaignState::from_code)?, row.get(1)?);
        Ok(Standing { state, has_begun, is_expanding: row.get(2)?, has_ended: row.get(3)? })
    };
    let standing = match one(connection, sql, [int(id.raw())], standing) {
        Err(fault) if fault.is_damage() => {
            damage::note("campaigns", int(id.raw()), &fault);
            return Ok(());
        }
        found => found?,
    };
    let Some(standing) = standing.filter(|standing| !standing.has_ended && !standing.is_expanding) else {
        return Ok(());
    };
    let Some(books) = books::sums(connection, id)? else { return Ok(()) };
    let Some(Finish { state, stop }) = finish(standing, books.iter()) else { return Ok(()) };
    let sql = "UPDATE campaigns SET ended_at = ?2, state = ?3, stop_reason = coalesce(?4, stop_reason),
        stop_detail = coalesce(?5, stop_detail) WHERE id = ?1";
    let stop = stop.as_ref();
    let (reason, detail) = (stop.map(|stop| stop.reason.code()), stop.map(|stop| stop.detail.as_str()));
    // Another column that makes no sense must not keep the campaign from ending.
    force(connection, id, sql, (int(id.raw()), now.as_millis(), state.code(), reason, detail)).map(drop)
}

/// Ends what is queued of a canceled campaign as far as a portion goes; returns whether more is.
pub(super) fn wind_up(connection: &Connection, id: CampaignId, now: Timestamp) -> Done<bool> {
    let verdict = (DeliveryState::Canceled, Reason::CampaignCanceled);
    let portion = Portion::begin(connection);
    let mut more = true;
    for _ in 0..ROUNDS_MAX_COUNT {
        if !more || portion.is_over() {
            break;
        }
        let queued = chunks::queued_of(connection, id, ENDED_AT_ONCE_MAX_COUNT)?;
        end_queued(connection, &queued, verdict, (&Lost::default(), now))?;
        more = queued.len() == ENDED_AT_ONCE_MAX_COUNT;
    }
    if !more {
        finish_if_over(connection, id, now)?;
    }
    Ok(more)
}

/// Finds a canceled campaign of which something is still queued.
pub(super) fn canceled(connection: &Connection) -> Done<Option<CampaignId>> {
    let sql = "SELECT k.id FROM campaigns k WHERE k.state = 3 AND k.ended_at IS NULL AND k.app IN (SELECT id FROM apps)
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state = 0)";
    let found = damage::readable(connection, "campaigns", (sql, []), 1, |row| {
        Ok(CampaignId::from_raw(number(row, 0)?))
    })?;
    Ok(found.0.into_iter().next())
}

/// Ends some of what is queued at a provider at which its campaign was stopped; returns whether there was any.
pub(super) fn end_some_stopped(connection: &Connection, now: Timestamp) -> Done<bool> {
    let Some((id, fleet, reason)) = stopped(connection)? else { return Ok(false) };
    let done = attempt(connection, || {
        let mut shelf = Shelf::new(connection);
        let verdict = (DeliveryState::Failed, reason);
        let ended = end_some_at(connection, &mut shelf, (id, fleet), verdict, now)?;
        shelf.close(now)?;
        Ok(ended > 0)
    })?;
    done_or_set_aside(connection, done, (id, Some(fleet)), now)
}

/// Sets some of what is queued of a campaign, or at one of its providers, aside where it could not be ended: it must not be
/// tried for ever. Returns whether anything was done.
pub(super) fn done_or_set_aside(
    connection: &Connection,
    done: Result<bool, Fault>,
    (id, fleet): (CampaignId, Option<u64>),
    now: Timestamp,
) -> Done<bool> {
    let Err(fault) = done else { return Ok(done.is_ok_and(|worked| worked)) };
    damage::note("campaigns", int(id.raw()), &fault);
    let queued = match fleet {
        Some(fleet) => chunks::queued_at(connection, id, fleet, ENDED_AT_ONCE_MAX_COUNT)?,
        None => chunks::queued_of(connection, id, ENDED_AT_ONCE_MAX_COUNT)?,
    };
    let mut worked = false;
    for chunk in queued {
        worked |= attempt(connection, || aside::take_away(connection, chunk, now))?.is_ok();
    }
    Ok(worked)
}

/// Returns whether something is still queued at a provider at which its campaign was stopped.
pub(super) fn is_some_stopped(connection: &Connection) -> Done<bool> {
    Ok(stopped(connection)?.is_some())
}

fn stopped(connection: &Connection) -> Done<Option<(CampaignId, u64, Reason)>> {
    let sql = "SELECT l.campaign, f.no, l.stop_reason FROM ledgers l JOIN campaigns k ON k.id = l.campaign
        JOIN fleets f ON f.app = k.app AND f.provider = l.provider
        WHERE l.stop_reason IS NOT NULL AND l.queued > 0
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = l.campaign AND c.fleet = f.no AND c.state = 0)";
    let found = damage::readable(connection, "ledgers", (sql, []), 1, |row| {
        Ok((CampaignId::from_raw(number(row, 0)?), number(row, 1)?, code(row, 2, Reason::from_code)?))
    })?;
    Ok(found.0.into_iter().next())
}

fn set_state(connection: &Connection, id: CampaignId, state: CampaignState) -> Done<()> {
    let sql = "UPDATE campaigns SET state = ?2 WHERE id = ?1";
    run(connection, sql, params![int(id.raw()), state.code()]).map(drop)
}

fn read(row: &Row<'_>) -> Done<Campaign> {
    let detail: Option<String> = row.get(9)?;
    let stop = maybe_code(row, 8, Reason::from_code)?;
    Ok(Campaign {
        id: CampaignId::from_raw(number(row, 0)?),
        app: AppId::from_raw(number(row, 1)?),
        state: code(row, 2, CampaignState::from_code)?,
        created_at: time(row, 3)?,
        due_at: time(row, 4)?,
        expires_at: time(row, 5)?,
        started_at: maybe_time(row, 6)?,
        ended_at: maybe_time(row, 7)?,
        stop: stop.map(|reason| Stop { reason, detail: detail.unwrap_or_default() }),
    })
}
