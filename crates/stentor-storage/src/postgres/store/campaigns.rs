//! Rows of campaigns.

use crate::postgres::engine::{Connection, Row, Value, params};
use stentor_core::campaign::{Campaign, CampaignState, Stop};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId};
use stentor_core::ledger::{Finish, Standing};
use stentor_core::outcome::Reason;
use stentor_core::time::Timestamp;

use super::codes::{CANCELED, LEASED, PAUSED, QUEUED, RUNNING};
use crate::postgres::damage;
use crate::postgres::fault::{Done, missing};
use crate::postgres::query::{all, limit, one, run};
use crate::postgres::row::{code, int, maybe_code, maybe_time, number, time};

const SELECT: &str =
    "SELECT id, app, state, created_at, due_at, expires_at, started_at, ended_at, stop_reason, stop_detail,
    as_of IS NOT NULL FROM campaigns";

/// Finds a campaign of the app, and whether its audience was begun.
pub(super) fn find(connection: &Connection, app: AppId, id: CampaignId) -> Done<Option<(Campaign, bool)>> {
    let sql = format!("{SELECT} WHERE id = $1 AND app = $2");
    let begun = |row: &Row<'_>| Ok((read(row)?, row.get(10)?));
    one(connection, &sql, [int(id.raw()), int(app.raw())], begun)
}

/// Returns a campaign of the app.
pub(super) fn require(connection: &Connection, app: AppId, id: CampaignId) -> Done<Campaign> {
    find(connection, app, id)?.map(|(campaign, _)| campaign).ok_or(missing("message"))
}

/// Returns those of some campaigns that are an app's.
pub(super) fn of_app(connection: &Connection, app: AppId, ids: &[CampaignId]) -> Done<Vec<CampaignId>> {
    let ids: Vec<i64> = ids.iter().map(|id| int(id.raw())).collect();
    let sql = "SELECT id FROM campaigns WHERE app = $1 AND id = ANY($2) ORDER BY id DESC";
    all(connection, sql, params![int(app.raw()), ids], |row| Ok(CampaignId::from_raw(number(row, 0)?)))
}

/// Lists an app's campaigns, newest first, those below the cursor.
pub(super) fn list(connection: &Connection, app: AppId, below: u64, count: usize) -> Done<Vec<Campaign>> {
    let below = if below == 0 { i64::MAX } else { int(below) };
    let sql = format!("{SELECT} WHERE app = $1 AND id < $2 ORDER BY id DESC");
    let values = [int(app.raw()), below];
    Ok(damage::readable(connection, "campaigns", (&sql, values), count, read)?.0)
}

/// Lists those of an app's campaigns that cannot be read, newest first, those below the cursor.
pub(super) fn broken(connection: &Connection, app: AppId, below: u64, count: usize) -> Done<Vec<CampaignId>> {
    let below = if below == 0 { i64::MAX } else { int(below) };
    let sql = format!("{SELECT} WHERE app = $1 AND id < $2 ORDER BY id DESC");
    let values = [int(app.raw()), below];
    let broken = damage::readable(connection, "campaigns", (&sql, values), count, read)?.1;
    Ok(broken.into_iter().filter_map(|id| u64::try_from(id).ok()).map(CampaignId::from_raw).collect())
}

const STANDING: &str =
    "SELECT k.id, k.state, k.as_of IS NOT NULL, EXISTS (SELECT 1 FROM producers p WHERE p.campaign = k.id),
    k.ended_at IS NOT NULL FROM campaigns k";

/// Reads what is known of a campaign when it may be over.
pub(super) fn standing(connection: &Connection, id: CampaignId) -> Done<Option<Standing>> {
    one(connection, &format!("{STANDING} WHERE k.id = $1"), [int(id.raw())], read_standing)
}

/// Reads the same of some campaigns, those that can be read.
pub(super) fn standings(connection: &Connection, ids: &[CampaignId]) -> Done<Vec<(CampaignId, Standing)>> {
    let sql = format!("{STANDING} WHERE k.id = ANY($1)");
    let ids: Vec<i64> = ids.iter().map(|id| int(id.raw())).collect();
    let read = |row: &Row<'_>| Ok(read_standing(row).and_then(|standing| Ok((raw_id(row)?, standing))).ok());
    Ok(all(connection, &sql, params![ids], read)?.into_iter().flatten().collect())
}

fn read_standing(row: &Row<'_>) -> Done<Standing> {
    Ok(Standing {
        state: code(row, 1, CampaignState::from_code)?,
        has_begun: row.get(2)?,
        is_expanding: row.get(3)?,
        has_ended: row.get(4)?,
    })
}

/// Lists campaigns that may still send, of which something is queued, that expire by `now` and for which `is_late` holds.
pub(super) fn expired(
    connection: &Connection,
    now: Timestamp,
    is_late: impl Fn(Timestamp, Timestamp) -> bool,
    max: usize,
) -> Done<Vec<CampaignId>> {
    let sql = format!(
        "SELECT k.id, k.due_at, k.expires_at FROM campaigns k WHERE k.state IN ({RUNNING}, {PAUSED}) AND k.expires_at <= $1
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state = {QUEUED})"
    );
    let late = |row: &Row<'_>| {
        let expires_at = time(row, 2)?;
        // One whose due time cannot be read has had no ttl, for all that is known.
        let due_at = time(row, 1).unwrap_or(expires_at);
        Ok(is_late(due_at, expires_at).then_some(raw_id(row)?))
    };
    let found = all(connection, &sql, [now.as_millis()], late)?;
    Ok(found.into_iter().flatten().take(max).collect())
}

/// Lists campaigns without an end that were canceled, or have expired by an instant, and have neither a chunk that is open nor
/// a producer.
pub(super) fn orphaned(
    connection: &Connection,
    expired_by: Timestamp,
    count: usize,
) -> Done<Vec<CampaignId>> {
    // A producer whose fleet is gone takes no step any more.
    let nothing_open = format!(
        "NOT EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state IN ({QUEUED}, {LEASED}))
        AND NOT EXISTS (SELECT 1 FROM producers p JOIN fleets f ON f.no = p.fleet WHERE p.campaign = k.id)"
    );
    let sql = format!(
        "SELECT k.id FROM campaigns k WHERE k.state IN ({RUNNING}, {PAUSED}) AND k.as_of IS NOT NULL AND k.expires_at <= $1
            AND {nothing_open}
        UNION ALL SELECT k.id FROM campaigns k WHERE k.state = {CANCELED} AND k.ended_at IS NULL
            AND k.app IN (SELECT id FROM apps) AND {nothing_open} LIMIT $2"
    );
    all(connection, &sql, [expired_by.as_millis(), limit(count)], raw_id)
}

/// Reads the id that is a row's own number, whatever the rest of the row is.
pub(super) fn raw_id(row: &Row<'_>) -> Done<CampaignId> {
    Ok(CampaignId::from_raw(row.get::<i64>(0)?.cast_unsigned()))
}

/// Finds a canceled campaign of which something is still queued.
pub(super) fn canceled(connection: &Connection) -> Done<Option<CampaignId>> {
    let sql = format!(
        "SELECT k.id FROM campaigns k WHERE k.state = {CANCELED} AND k.ended_at IS NULL AND k.app IN (SELECT id FROM apps)
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state = {QUEUED}) ORDER BY k.id"
    );
    let found = damage::readable(connection, "campaigns", (&sql, ()), 1, |row| {
        Ok(CampaignId::from_raw(number(row, 0)?))
    })?;
    Ok(found.0.into_iter().next())
}

/// Finds a campaign that was stopped at a provider where something of it is still queued.
pub(super) fn stopped(connection: &Connection) -> Done<Option<(CampaignId, ProviderKind, Reason)>> {
    let sql = format!(
        "SELECT l.campaign, l.provider, l.stop_reason FROM ledgers l JOIN campaigns k ON k.id = l.campaign
        JOIN fleets f ON f.app = k.app AND f.provider = l.provider
        WHERE l.stop_reason IS NOT NULL AND l.queued > 0
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = l.campaign AND c.fleet = f.no AND c.state = {QUEUED})
        ORDER BY l.campaign, l.provider"
    );
    let found = damage::readable(connection, "ledgers", (&sql, ()), 1, |row| {
        let (provider, reason) = (code(row, 1, ProviderKind::from_code)?, code(row, 2, Reason::from_code)?);
        Ok((CampaignId::from_raw(number(row, 0)?), provider, reason))
    })?;
    Ok(found.0.into_iter().next())
}

/// Sets the state.
pub(super) fn write_state(connection: &Connection, id: CampaignId, state: CampaignState) -> Done<()> {
    let sql = "UPDATE campaigns SET state = $2 WHERE id = $1";
    run(connection, sql, params![int(id.raw()), state.code()]).map(drop)
}

/// Sets the state whatever else the row says; there is neither end nor stop then.
pub(super) fn force_state(connection: &Connection, id: CampaignId, state: CampaignState) -> Done<()> {
    let sql = "UPDATE campaigns SET state = $2, ended_at = NULL, stop_reason = NULL, stop_detail = NULL WHERE id = $1";
    run(connection, sql, [int(id.raw()), i64::from(state.code())]).map(drop)
}

/// A campaign that begins: its state from then on, and the bound of its audience.
pub(super) type BegunCampaign = (CampaignId, CampaignState, DeviceId);

/// Notes that campaigns begin.
pub(super) fn write_begun(connection: &Connection, begun: &[BegunCampaign]) -> Done<()> {
    let sql = "UPDATE campaigns SET state = given.state, as_of = given.as_of
        FROM unnest($1::bigint[], $2::smallint[], $3::bigint[]) given (id, state, as_of) WHERE campaigns.id = given.id";
    let values = vec![
        Value::ints(begun, |(id, ..)| int(id.raw())),
        Value::ints(begun, |(_, state, _)| state.code().into()),
        Value::ints(begun, |(.., as_of)| int(as_of.raw())),
    ];
    run(connection, sql, values).map(drop)
}

/// Notes the first lease of campaigns, where none is noted.
pub(super) fn write_started(connection: &Connection, started: &[(CampaignId, Timestamp)]) -> Done<()> {
    let sql =
        "UPDATE campaigns SET started_at = given.at FROM unnest($1::bigint[], $2::bigint[]) given (id, at)
        WHERE campaigns.id = given.id AND started_at IS NULL";
    let values =
        vec![Value::ints(started, |(id, _)| int(id.raw())), Value::ints(started, |(_, at)| at.as_millis())];
    run(connection, sql, values).map(drop)
}

/// How a campaign ends, and when.
pub(super) type EndedCampaign = (CampaignId, Finish, Timestamp);

/// Writes how campaigns end. Another column that makes no sense does not keep one from ending.
pub(super) fn write_ends(connection: &Connection, ended: &[EndedCampaign]) -> Done<()> {
    let sql = "UPDATE campaigns SET ended_at = given.at, state = given.state,
            stop_reason = coalesce(given.stop_reason, campaigns.stop_reason),
            stop_detail = coalesce(given.stop_detail, campaigns.stop_detail)
        FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[], $5::text[])
            given (id, at, state, stop_reason, stop_detail)
        WHERE campaigns.id = given.id";
    let values = vec![
        Value::ints(ended, |(id, ..)| int(id.raw())),
        Value::ints(ended, |(.., at)| at.as_millis()),
        Value::ints(ended, |(_, end, _)| end.state.code().into()),
        Value::maybe_ints(ended, |(_, end, _)| end.stop.as_ref().map(|stop| stop.reason.code().into())),
        Value::texts(ended, |(_, end, _)| end.stop.as_ref().map(|stop| stop.detail.clone())),
    ];
    run(connection, sql, values).map(drop)
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
