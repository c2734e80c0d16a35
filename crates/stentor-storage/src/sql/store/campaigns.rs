//! Rows of campaigns.

use stentor_core::campaign::{Campaign, CampaignState, Stop};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId};
use stentor_core::ledger::Standing;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Listed, Page};
use stentor_core::time::Timestamp;

use super::codes::{CANCELED, LEASED, PAUSED, QUEUED, RUNNING};
use crate::sql::{
    self, Connection, Done, Params, Row, all, code, int, limit, listed, maybe_code, maybe_time, missing,
    number, one, params, readable, run, some, time,
};

const SELECT: &str =
    "SELECT id, app, state, created_at, due_at, expires_at, started_at, ended_at, stop_reason, stop_detail,
    as_of IS NOT NULL FROM campaigns";

/// Finds a campaign of the app, and whether its audience was begun.
pub(crate) fn find(connection: &Connection, app: AppId, id: CampaignId) -> Done<Option<(Campaign, bool)>> {
    let sql = format!("{SELECT} WHERE id = ?1 AND app = ?2");
    let begun = |row: &Row<'_>| Ok((read(row)?, row.get(10)?));
    one(connection, &sql, [int(id.raw()), int(app.raw())], begun)
}

/// Returns a campaign of the app.
pub(crate) fn require(connection: &Connection, app: AppId, id: CampaignId) -> Done<Campaign> {
    find(connection, app, id)?.map(|(campaign, _)| campaign).ok_or(missing("message"))
}

/// Returns those of some campaigns that are an app's.
pub(crate) fn of_app(connection: &Connection, app: AppId, ids: &[CampaignId]) -> Done<Vec<CampaignId>> {
    let ids: Vec<i64> = ids.iter().map(|id| int(id.raw())).collect();
    let sql = format!(
        "SELECT id FROM campaigns WHERE app = ?1 AND {} ORDER BY id DESC",
        connection.dialect().is_in("id", 2)
    );
    all(connection, &sql, params![int(app.raw()), ids], |row| Ok(CampaignId::from_raw(number(row, 0)?)))
}

/// Lists an app's campaigns, newest first, those below the cursor.
pub(crate) fn list(connection: &Connection, app: AppId, page: Page) -> Done<Listed<Campaign, CampaignId>> {
    let below = if page.after == 0 { i64::MAX } else { int(page.after) };
    let sql = format!("{SELECT} WHERE app = ?1 AND id < ?2 ORDER BY id DESC");
    let rows = (sql.as_str(), [int(app.raw()), below]);
    listed(connection, "campaigns", rows, page.limit, read, CampaignId::from_raw)
}

const STANDING: &str =
    "SELECT k.id, k.state, k.as_of IS NOT NULL, EXISTS (SELECT 1 FROM producers p WHERE p.campaign = k.id),
    k.ended_at IS NOT NULL FROM campaigns k";

/// Reads the facts that decide whether a campaign is over.
pub(crate) fn standing(connection: &Connection, id: CampaignId) -> Done<Option<Standing>> {
    one(connection, &format!("{STANDING} WHERE k.id = ?1"), [int(id.raw())], read_standing)
}

/// Reads the same facts for several campaigns, as far as they can be read.
pub(crate) fn standings(connection: &Connection, ids: &[CampaignId]) -> Done<Vec<(CampaignId, Standing)>> {
    let sql = format!("{STANDING} WHERE {}", connection.dialect().is_in("k.id", 1));
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
pub(crate) fn expired(
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
        // A campaign with an unreadable due time is treated as one without a ttl.
        let due_at = time(row, 1).unwrap_or(expires_at);
        Ok(is_late(due_at, expires_at).then_some(raw_id(row)?))
    };
    some(connection, &sql, [now.as_millis()], max, late)
}

/// Lists campaigns without an end that were canceled, or have expired by an instant, and have neither a chunk that is open nor
/// a producer.
pub(crate) fn orphaned(
    connection: &Connection,
    expired_by: Timestamp,
    count: usize,
) -> Done<Vec<CampaignId>> {
    // A producer without a fleet takes no more steps; a removed app takes its campaigns along.
    let nothing_open = format!(
        "NOT EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state IN ({QUEUED}, {LEASED}))
        AND NOT EXISTS (SELECT 1 FROM producers p JOIN fleets f ON f.no = p.fleet WHERE p.campaign = k.id)"
    );
    let sql = format!(
        "SELECT k.id FROM campaigns k WHERE k.state IN ({RUNNING}, {PAUSED}) AND k.as_of IS NOT NULL AND k.expires_at <= ?1
            AND {nothing_open}
        UNION ALL SELECT k.id FROM campaigns k WHERE k.state = {CANCELED} AND k.ended_at IS NULL
            AND k.app IN (SELECT id FROM apps) AND {nothing_open} LIMIT ?2"
    );
    all(connection, &sql, [expired_by.as_millis(), limit(count)], raw_id)
}

/// Reads the id, which is the number of the row, even if the row is damaged.
pub(crate) fn raw_id(row: &Row<'_>) -> Done<CampaignId> {
    Ok(CampaignId::from_raw(row.get::<i64>(0)?.cast_unsigned()))
}

/// Finds a canceled campaign of which something is still queued.
pub(crate) fn canceled(connection: &Connection) -> Done<Option<CampaignId>> {
    let sql = format!(
        "SELECT k.id FROM campaigns k WHERE k.state = {CANCELED} AND k.ended_at IS NULL AND k.app IN (SELECT id FROM apps)
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = k.id AND c.state = {QUEUED}) ORDER BY k.id"
    );
    // The first that can be read: a damaged row hides no other one.
    let found =
        readable(connection, "campaigns", (&sql, ()), 1, |row| Ok(CampaignId::from_raw(number(row, 0)?)))?;
    Ok(found.0.into_iter().next())
}

/// Finds a campaign that was stopped at a provider where something of it is still queued.
pub(crate) fn stopped(connection: &Connection) -> Done<Option<(CampaignId, ProviderKind, Reason)>> {
    let sql = format!(
        "SELECT l.campaign, l.provider, l.stop_reason FROM ledgers l JOIN campaigns k ON k.id = l.campaign
        JOIN fleets f ON f.app = k.app AND f.provider = l.provider
        WHERE l.stop_reason IS NOT NULL AND l.queued > 0
        AND EXISTS (SELECT 1 FROM chunks c WHERE c.message = l.campaign AND c.fleet = f.no AND c.state = {QUEUED})
        ORDER BY l.campaign, l.provider"
    );
    let found = readable(connection, "ledgers", (&sql, ()), 1, |row| {
        let (provider, reason) = (code(row, 1, ProviderKind::from_code)?, code(row, 2, Reason::from_code)?);
        Ok((CampaignId::from_raw(number(row, 0)?), provider, reason))
    })?;
    Ok(found.0.into_iter().next())
}

/// Sets the state.
pub(crate) fn write_state(connection: &Connection, id: CampaignId, state: CampaignState) -> Done<()> {
    let sql = "UPDATE campaigns SET state = ?2 WHERE id = ?1";
    run(connection, sql, params![int(id.raw()), state.code()]).map(drop)
}

/// Sets the state of a campaign even if its row is damaged, and clears its end and its stop.
pub(crate) fn force_state(connection: &Connection, id: CampaignId, state: CampaignState) -> Done<()> {
    let sql = "UPDATE campaigns SET state = ?2, ended_at = NULL, stop_reason = NULL, stop_detail = NULL WHERE id = ?1";
    force(connection, id, sql, [int(id.raw()), i64::from(state.code())])
}

/// Updates a campaign even if its row is damaged.
pub(crate) fn force<'v>(
    connection: &Connection,
    id: CampaignId,
    sql: &str,
    params: impl Params<'v>,
) -> Done<()> {
    let condition = format!("id = {}", int(id.raw()));
    sql::force(connection, "campaigns", &condition, sql, params).map(drop)
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
