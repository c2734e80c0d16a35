//! Rows of campaigns.

use rusqlite::{Connection, Params, Row, params};
use stentor_core::campaign::{Campaign, CampaignState, Stop};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId};
use stentor_core::ledger::{Finish, Standing};
use stentor_core::outcome::Reason;
use stentor_core::time::Timestamp;

use super::codes::{CANCELED, LEASED, PAUSED, QUEUED, RUNNING};
use crate::sqlite::damage;
use crate::sqlite::fault::{Done, missing};
use crate::sqlite::query::{all, limit, one, run, some};
use crate::sqlite::row::{code, int, maybe_code, maybe_time, number, time};

const SELECT: &str =
    "SELECT id, app, state, created_at, due_at, expires_at, started_at, ended_at, stop_reason, stop_detail,
    as_of IS NOT NULL FROM campaigns";

/// Finds a campaign of the app, and whether its audience was begun.
pub(super) fn find(connection: &Connection, app: AppId, id: CampaignId) -> Done<Option<(Campaign, bool)>> {
    let sql = format!("{SELECT} WHERE id = ?1 AND app = ?2");
    let begun = |row: &Row<'_>| Ok((read(row)?, row.get(10)?));
    one(connection, &sql, [int(id.raw()), int(app.raw())], begun)
}

/// Returns a campaign of the app.
pub(super) fn require(connection: &Connection, app: AppId, id: CampaignId) -> Done<Campaign> {
    find(connection, app, id)?.map(|(campaign, _)| campaign).ok_or(missing("message"))
}

/// Lists an app's campaigns, newest first, those below the cursor.
pub(super) fn list(connection: &Connection, app: AppId, below: u64, count: usize) -> Done<Vec<Campaign>> {
    let below = if below == 0 { i64::MAX } else { int(below) };
    let sql = format!("{SELECT} WHERE app = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3");
    // The page is counted by who reads it: a row that cannot be read takes no place.
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

/// Reads what is known of a campaign when it may be over.
pub(super) fn standing(connection: &Connection, id: CampaignId) -> Done<Option<Standing>> {
    let sql = "SELECT state, as_of IS NOT NULL, EXISTS (SELECT 1 FROM producers WHERE campaign = ?1), ended_at IS NOT NULL
        FROM campaigns WHERE id = ?1";
    let standing = |row: &Row<'_>| {
        let (state, has_begun) = (code(row, 0, CampaignState::from_code)?, row.get(1)?);
        Ok(Standing { state, has_begun, is_expanding: row.get(2)?, has_ended: row.get(3)? })
    };
    one(connection, sql, [int(id.raw())], standing)
}

/// Lists campaigns that may still send, of which something is queued, that expire by `now` and for which `is_late` holds.
pub(super) fn expired(
    connection: &Connection,
    now: Timestamp,
    is_late: impl Fn(Timestamp, Timestamp) -> bool,
    max: usize,
) -> Done<Vec<CampaignId>> {
    let sql = format!(
        "SELECT k.id, k.due_at, k.expires_at FROM campaigns k WHERE k.state IN ({RUNNING}, {PAUSED}) AND k.expires_at <= ?1
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state = {QUEUED})"
    );
    let late = |row: &Row<'_>| {
        let expires_at = time(row, 2)?;
        // One whose due time cannot be read has had no ttl, for all that is known.
        let due_at = time(row, 1).unwrap_or(expires_at);
        Ok(is_late(due_at, expires_at).then_some(raw_id(row)?))
    };
    some(connection, &sql, [now.as_millis()], max, late)
}

/// Lists campaigns without an end that were canceled, or have expired by an instant, and have neither a chunk that is open nor
/// a producer.
pub(super) fn orphaned(
    connection: &Connection,
    expired_by: Timestamp,
    count: usize,
) -> Done<Vec<CampaignId>> {
    let nothing_open = format!(
        "NOT EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state IN ({QUEUED}, {LEASED}))
        AND NOT EXISTS (SELECT 1 FROM producers p JOIN fleets f ON f.no = p.fleet WHERE p.campaign = k.id)"
    );
    // A producer whose fleet is gone takes no step any more; a removed app takes its campaigns along.
    let sql = format!(
        "SELECT k.id FROM campaigns k WHERE k.state IN ({RUNNING}, {PAUSED}) AND k.as_of IS NOT NULL AND k.expires_at <= ?1
            AND {nothing_open}
        UNION ALL SELECT k.id FROM campaigns k WHERE k.state = {CANCELED} AND k.ended_at IS NULL
            AND k.app IN (SELECT id FROM apps) AND {nothing_open} LIMIT ?2"
    );
    all(connection, &sql, [expired_by.as_millis(), limit(count)], raw_id)
}

/// Reads the id that is a row's own number, whatever the rest of the row is.
pub(super) fn raw_id(row: &Row<'_>) -> Done<CampaignId> {
    Ok(CampaignId::from_raw(row.get::<_, i64>(0)?.cast_unsigned()))
}

/// Finds a canceled campaign of which something is still queued.
pub(super) fn canceled(connection: &Connection) -> Done<Option<CampaignId>> {
    let sql = format!(
        "SELECT k.id FROM campaigns k WHERE k.state = {CANCELED} AND k.ended_at IS NULL AND k.app IN (SELECT id FROM apps)
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state = {QUEUED})"
    );
    // The first that can be read: a damaged row hides no other one.
    let found = damage::readable(connection, "campaigns", (&sql, []), 1, |row| {
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
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = l.campaign AND c.fleet = f.no AND c.state = {QUEUED})"
    );
    let found = damage::readable(connection, "ledgers", (&sql, []), 1, |row| {
        let (provider, reason) = (code(row, 1, ProviderKind::from_code)?, code(row, 2, Reason::from_code)?);
        Ok((CampaignId::from_raw(number(row, 0)?), provider, reason))
    })?;
    Ok(found.0.into_iter().next())
}

/// Sets the state.
pub(super) fn write_state(connection: &Connection, id: CampaignId, state: CampaignState) -> Done<()> {
    let sql = "UPDATE campaigns SET state = ?2 WHERE id = ?1";
    run(connection, sql, params![int(id.raw()), state.code()]).map(drop)
}

/// Sets the state whatever else the row says; there is neither end nor stop then.
pub(super) fn force_state(connection: &Connection, id: CampaignId, state: CampaignState) -> Done<()> {
    let sql = "UPDATE campaigns SET state = ?2, ended_at = NULL, stop_reason = NULL, stop_detail = NULL WHERE id = ?1";
    force(connection, id, sql, [int(id.raw()), i64::from(state.code())])
}

/// Sets the state of a campaign that begins, and the bound of its audience.
pub(super) fn write_begun(
    connection: &Connection,
    id: CampaignId,
    state: CampaignState,
    as_of: DeviceId,
) -> Done<()> {
    let sql = "UPDATE campaigns SET state = ?2, as_of = ?3 WHERE id = ?1";
    run(connection, sql, params![int(id.raw()), state.code(), int(as_of.raw())]).map(drop)
}

/// Notes the first lease.
pub(super) fn write_started(connection: &Connection, id: CampaignId, now: Timestamp) -> Done<()> {
    let sql = "UPDATE campaigns SET started_at = ?2 WHERE id = ?1 AND started_at IS NULL";
    run(connection, sql, [int(id.raw()), now.as_millis()]).map(drop)
}

/// Writes how a campaign ends. Another column that makes no sense does not keep it from ending.
pub(super) fn write_end(connection: &Connection, id: CampaignId, end: &Finish, now: Timestamp) -> Done<()> {
    let sql = "UPDATE campaigns SET ended_at = ?2, state = ?3, stop_reason = coalesce(?4, stop_reason),
        stop_detail = coalesce(?5, stop_detail) WHERE id = ?1";
    let stop = end.stop.as_ref();
    let (reason, detail) = (stop.map(|stop| stop.reason.code()), stop.map(|stop| stop.detail.as_str()));
    force(connection, id, sql, (int(id.raw()), now.as_millis(), end.state.code(), reason, detail))
}

fn force<P: Params + Copy>(connection: &Connection, id: CampaignId, sql: &str, params: P) -> Done<()> {
    let condition = format!("id = {}", int(id.raw()));
    damage::force(connection, ("campaigns", &condition), sql, params).map(drop)
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
