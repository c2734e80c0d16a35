//! The ledger's books: every change of a delivery's state goes through the core's sums.

use std::collections::{BTreeMap, BTreeSet};

use stentor_core::campaign::{ProviderLedger, ReasonCount, Stop, Tally};
use stentor_core::chunk::ChunkState;
use stentor_core::delivery::DeliveryState;
use stentor_core::device::ProviderKind;
use stentor_core::id::{CampaignId, ChunkId};
use stentor_core::ledger::Books;
use stentor_core::outcome::Reason;

use crate::sql::{Connection, Done, Row, all, code, int, maybe_code, number, one, params, readable, run};

/// More deliveries than any campaign has: as many devices as there can be, each tried a thousand times.
const COUNT_MAX: u64 = 1 << 50;

const COLUMNS: &str =
    "provider, audience, audience_complete, queued, sending, accepted, rejected, expired, collapsed,
    canceled, failed, delivered, attempts, ambiguous, duplicate_bound, stop_reason, stop_detail";

/// Reads the books of a campaign at a provider; they are empty if it has none yet.
pub(crate) fn open(connection: &Connection, campaign: CampaignId, provider: ProviderKind) -> Done<Books> {
    let sql = format!("SELECT {COLUMNS} FROM ledgers WHERE campaign = ?1 AND provider = ?2");
    let stored = one(connection, &sql, params![int(campaign.raw()), provider.code()], read)?;
    Ok(stored.map_or_else(|| Books::new(provider), Books::open))
}

/// Reads the sums of some campaigns at all providers, in their order. Campaigns without sums, or with unreadable ones, are left out.
pub(crate) fn sums_of_all(
    connection: &Connection,
    campaigns: &[CampaignId],
) -> Done<BTreeMap<CampaignId, Vec<ProviderLedger>>> {
    let is_asked = connection.dialect().is_in("campaign", 1);
    let sql = format!("SELECT {COLUMNS}, campaign FROM ledgers WHERE {is_asked} ORDER BY campaign, provider");
    let ids: Vec<i64> = campaigns.iter().map(|id| int(id.raw())).collect();
    let (mut sums, mut broken) = (BTreeMap::<_, Vec<_>>::new(), BTreeSet::new());
    all(connection, &sql, params![ids], |row| {
        let campaign = CampaignId::from_raw(row.get::<i64>(17)?.cast_unsigned());
        match read(row) {
            Ok(ledger) => sums.entry(campaign).or_default().push(ledger),
            Err(_) => drop(broken.insert(campaign)),
        }
        Ok(())
    })?;
    sums.retain(|campaign, _| !broken.contains(campaign));
    Ok(sums)
}

/// Marks the audience as complete in all books of a campaign.
pub(crate) fn complete(connection: &Connection, campaign: CampaignId) -> Done<()> {
    run(connection, "UPDATE ledgers SET audience_complete = TRUE WHERE campaign = ?1", [int(campaign.raw())])
        .map(drop)
}

/// Reads the books of a campaign, at one provider or at all, for which no chunk and no producer is left. Invalid values in them count as
/// zero.
pub(crate) fn orphaned(
    connection: &Connection,
    campaign: i64,
    only: Option<ProviderKind>,
) -> Done<Vec<(CampaignId, Books)>> {
    let condition = format!(
        "f.provider = l.provider AND (CAST(?2 AS BIGINT) IS NULL OR l.provider = ?2) AND {IS_ORPHANED}"
    );
    read_orphaned(connection, campaign, &condition, only.map(|provider| i64::from(provider.code())))
}

/// Reads such books of a chunk's campaign in its fleet, even if its row is damaged.
pub(crate) fn orphaned_of_chunk(connection: &Connection, chunk: ChunkId) -> Done<Vec<(CampaignId, Books)>> {
    let sql = "SELECT message, fleet FROM chunks WHERE id = ?1";
    let read = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?));
    let Some((campaign, fleet)) = one(connection, sql, [int(chunk.raw())], read)? else {
        return Ok(Vec::new());
    };
    let condition = format!("f.provider = l.provider AND f.no = CAST(?2 AS BIGINT) AND {IS_ORPHANED}");
    read_orphaned(connection, campaign, &condition, Some(fleet))
}

/// That nothing is left in a fleet from which something of a campaign could come.
const IS_ORPHANED: &str = "f.app = (SELECT app FROM campaigns WHERE id = ?1)
    AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.message = ?1 AND c.fleet = f.no AND c.state IN (?3, ?4))
    AND NOT EXISTS (SELECT 1 FROM producers p WHERE p.campaign = ?1 AND p.fleet = f.no)";

fn read_orphaned(
    connection: &Connection,
    campaign: i64,
    condition: &str,
    which: Option<i64>,
) -> Done<Vec<(CampaignId, Books)>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM ledgers l WHERE l.campaign = ?1 AND EXISTS (SELECT 1 FROM fleets f WHERE {condition})"
    );
    let values = params![campaign, which, ChunkState::Queued.code(), ChunkState::Leased.code()];
    let found = all(connection, &sql, values, |row| Ok(read_leniently(row)))?;
    let id = CampaignId::from_raw(campaign.cast_unsigned());
    Ok(found.into_iter().flatten().map(|ledger| (id, Books::open(ledger))).collect())
}

/// Reads the sums of a campaign at all providers, in their order. Returns `None` if some cannot be read: their open deliveries are not
/// known, and are written off after the campaign's end.
pub(crate) fn sums(connection: &Connection, campaign: CampaignId) -> Done<Option<Vec<ProviderLedger>>> {
    let sql = format!("SELECT {COLUMNS} FROM ledgers WHERE campaign = ?1 ORDER BY provider");
    let rows = (sql.as_str(), [int(campaign.raw())]);
    let (sums, broken) = readable(connection, "ledgers", rows, usize::MAX, read)?;
    Ok(broken.is_empty().then_some(sums))
}

/// Reads the books of a campaign, those of providers that have an audience or may get one.
pub(crate) fn of_campaign(connection: &Connection, campaign: CampaignId) -> Done<Vec<ProviderLedger>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM ledgers WHERE campaign = ?1 AND (audience > 0 OR EXISTS (SELECT 1 FROM producers p JOIN fleets f ON f.no = p.fleet
            WHERE p.campaign = ?1 AND f.provider = ledgers.provider)) ORDER BY provider"
    );
    let rows = (sql.as_str(), [int(campaign.raw())]);
    let (mut providers, _) = readable(connection, "ledgers", rows, usize::MAX, read)?;
    for ledger in &mut providers {
        ledger.reasons = reasons(connection, campaign, ledger.provider)?;
    }
    Ok(providers)
}

fn reasons(connection: &Connection, campaign: CampaignId, provider: ProviderKind) -> Done<Vec<ReasonCount>> {
    let sql = "SELECT state, reason, count FROM reasons WHERE campaign = ?1 AND provider = ?2 ORDER BY state, reason";
    let rows = (sql, params![int(campaign.raw()), provider.code()]);
    let reasons = readable(connection, "reasons", rows, usize::MAX, |row| {
        let (state, reason) = (code(row, 0, DeliveryState::from_code)?, code(row, 1, Reason::from_code)?);
        Ok(ReasonCount { state, reason, count: number(row, 2)? })
    });
    Ok(reasons?.0)
}

fn read(row: &Row<'_>) -> Done<ProviderLedger> {
    let stop = maybe_code(row, 15, Reason::from_code)?;
    let detail: Option<String> = row.get(16)?;
    let stop = stop.map(|reason| Stop { reason, detail: detail.unwrap_or_default() });
    read_with(row, row.get(2)?, stop, |at| number(row, at))
}

/// Reads books of which some sums may make no sense: these count for nothing.
fn read_leniently(row: &Row<'_>) -> Option<ProviderLedger> {
    let reason = maybe_code(row, 15, Reason::from_code).ok().flatten();
    let detail = || row.get::<Option<String>>(16).ok().flatten().unwrap_or_default();
    let stop = reason.map(|reason| Stop { reason, detail: detail() });
    let sane = |at| Ok(number(row, at).ok().filter(|count| *count <= COUNT_MAX).unwrap_or_default());
    read_with(row, row.get(2).unwrap_or(true), stop, sane).ok()
}

fn read_with(
    row: &Row<'_>,
    audience_complete: bool,
    stop: Option<Stop>,
    count: impl Fn(usize) -> Done<u64>,
) -> Done<ProviderLedger> {
    let tally = Tally {
        queued: count(3)?,
        sending: count(4)?,
        accepted: count(5)?,
        rejected: count(6)?,
        expired: count(7)?,
        collapsed: count(8)?,
        canceled: count(9)?,
        failed: count(10)?,
    };
    Ok(ProviderLedger {
        provider: code(row, 0, ProviderKind::from_code)?,
        audience: count(1)?,
        audience_complete,
        tally,
        delivered: count(11)?,
        attempts: count(12)?,
        ambiguous: count(13)?,
        duplicate_bound: count(14)?,
        stop,
        reasons: Vec::new(),
    })
}
