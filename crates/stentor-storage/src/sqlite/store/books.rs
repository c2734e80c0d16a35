//! The ledger's books: every change of a delivery's state goes through the core's sums.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Row, params};
use stentor_core::campaign::{CampaignState, ProviderLedger, ReasonCount, Stop, Tally};
use stentor_core::delivery::DeliveryState;
use stentor_core::device::ProviderKind;
use stentor_core::id::CampaignId;
use stentor_core::ledger::{Books, Ending, ending};
use stentor_core::outcome::Reason;
use stentor_core::time::Timestamp;

use super::campaigns;
use crate::sqlite::damage;
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{all, one, run};
use crate::sqlite::row::{code, int, maybe_code, number};

/// More deliveries than any campaign has: as many devices as there can be, each tried a thousand times.
const COUNT_MAX: u64 = 1 << 50;

const SELECT: &str =
    "SELECT provider, audience, audience_complete, queued, sending, accepted, rejected, expired, collapsed,
    canceled, failed, delivered, attempts, ambiguous, duplicate_bound, stop_reason, stop_detail FROM ledgers";

/// Reads the books of a campaign at a provider; one that has none yet gets empty ones.
fn open(connection: &Connection, campaign: CampaignId, provider: ProviderKind) -> Done<Books> {
    let sql = format!("{SELECT} WHERE campaign = ?1 AND provider = ?2");
    let kept = one(connection, &sql, params![int(campaign.raw()), provider.code()], read)?;
    Ok(kept.map_or_else(|| Books::new(provider), Books::open))
}

fn save(connection: &Connection, campaign: CampaignId, books: &Books) -> Done<()> {
    let sql = "INSERT OR REPLACE INTO ledgers (campaign, provider, audience, audience_complete, queued, sending, accepted,
        rejected, expired, collapsed, canceled, failed, delivered, attempts, ambiguous, duplicate_bound, stop_reason, stop_detail)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    let kept = books.ledger();
    let tally = &kept.tally;
    let values = params![
        int(campaign.raw()),
        kept.provider.code(),
        int(kept.audience),
        kept.audience_complete,
        int(tally.queued),
        int(tally.sending),
        int(tally.accepted),
        int(tally.rejected),
        int(tally.expired),
        int(tally.collapsed),
        int(tally.canceled),
        int(tally.failed),
        int(kept.delivered),
        int(kept.attempts),
        int(kept.ambiguous),
        int(kept.duplicate_bound),
        kept.stop.as_ref().map(|stop| stop.reason.code()),
        kept.stop.as_ref().map(|stop| &stop.detail),
    ];
    run(connection, sql, values)?;
    books.ends().try_for_each(|(end, count)| save_end(connection, (campaign, kept.provider), end, count))
}

fn save_end(
    connection: &Connection,
    (campaign, provider): (CampaignId, ProviderKind),
    (state, reason): (DeliveryState, Reason),
    count: u64,
) -> Done<()> {
    let sql = "INSERT INTO reasons (campaign, provider, state, reason, count) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT DO UPDATE SET count = count + excluded.count";
    let values = params![int(campaign.raw()), provider.code(), state.code(), reason.code(), int(count)];
    run(connection, sql, values).map(drop)
}

/// The books that one transaction has opened; they are written once, at its end.
pub(super) struct Shelf<'a> {
    connection: &'a Connection,
    books: BTreeMap<(CampaignId, ProviderKind), Books>,
}

impl<'a> Shelf<'a> {
    /// Starts with none open.
    pub(super) const fn new(connection: &'a Connection) -> Self {
        Self { connection, books: BTreeMap::new() }
    }

    /// Opens the books of a campaign at a provider; a campaign that has none yet gets empty ones.
    pub(super) fn open(&mut self, campaign: CampaignId, provider: ProviderKind) -> Done<&mut Books> {
        let key = (campaign, provider);
        if !self.books.contains_key(&key) {
            self.books.insert(key, open(self.connection, campaign, provider)?);
        }
        self.books.get_mut(&key).ok_or_else(|| damaged("books are missing"))
    }

    /// Opens the books of a campaign that has none in the file yet.
    pub(super) fn open_new(&mut self, campaign: CampaignId, provider: ProviderKind) -> &mut Books {
        self.books.entry((campaign, provider)).or_insert_with(|| Books::new(provider))
    }

    /// Returns how deliveries of a campaign at a provider end that would wait; `None` while they may.
    pub(super) fn verdict(
        &mut self,
        campaign: CampaignId,
        state: CampaignState,
        provider: ProviderKind,
    ) -> Done<Option<Ending>> {
        let stop = &self.open(campaign, provider)?.ledger().stop;
        Ok(ending(state, stop.as_ref().map(|stop| stop.reason)))
    }

    /// Writes all and finishes campaigns of which nothing is open any more.
    pub(super) fn close(self, now: Timestamp) -> Done<()> {
        let mut idle = BTreeSet::new();
        for ((campaign, _), books) in &self.books {
            save(self.connection, *campaign, books)?;
            if books.ledger().tally.open() == 0 {
                idle.insert(*campaign);
            }
        }
        idle.into_iter().try_for_each(|campaign| campaigns::finish_if_over(self.connection, campaign, now))
    }
}

/// Counts as failed for damage what the books of a campaign still have open, at one fleet's provider or at all, where no
/// chunk and no producer is left that it could come from; what was counted is then the audience.
pub(super) fn write_off(
    connection: &Connection,
    campaign: i64,
    fleet: Option<i64>,
    now: Timestamp,
) -> Done<()> {
    let sql = "SELECT f.provider FROM ledgers l JOIN fleets f ON f.provider = l.provider
            AND f.app = (SELECT app FROM campaigns WHERE id = ?1)
        WHERE l.campaign = ?1 AND (?2 IS NULL OR f.no = ?2)
            AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.message = ?1 AND c.fleet = f.no AND c.state IN (0, 1))
            AND NOT EXISTS (SELECT 1 FROM producers p WHERE p.campaign = ?1 AND p.fleet = f.no)";
    let providers = all(connection, sql, params![campaign, fleet], |row| Ok(row.get::<_, i64>(0)?))?;
    let kept = [
        "queued",
        "sending",
        "accepted",
        "rejected",
        "expired",
        "collapsed",
        "canceled",
        "failed",
        "delivered",
        "attempts",
        "ambiguous",
        "duplicate_bound",
    ];
    let sane = kept
        .map(|name| format!("{name} = CASE WHEN {name} BETWEEN 0 AND {COUNT_MAX} THEN {name} ELSE 0 END"));
    let sane = format!("UPDATE ledgers SET {} WHERE campaign = ?1 AND provider = ?2", sane.join(", "));
    let close = "UPDATE ledgers SET failed = failed + queued + sending, queued = 0, sending = 0, audience_complete = 1,
        audience = accepted + rejected + expired + collapsed + canceled + failed + queued + sending,
        stop_reason = CASE WHEN stop_reason BETWEEN 0 AND 255 THEN stop_reason END
        WHERE campaign = ?1 AND provider = ?2";
    let reason = "INSERT INTO reasons (campaign, provider, state, reason, count)
        SELECT ?1, ?2, ?3, ?4, queued + sending FROM ledgers WHERE campaign = ?1 AND provider = ?2 AND queued + sending > 0
        ON CONFLICT DO UPDATE SET count = count + excluded.count";
    let (failed, damage) = (i64::from(DeliveryState::Failed.code()), i64::from(Reason::Damaged.code()));
    for provider in providers {
        let condition = format!("campaign = {campaign} AND provider = {provider}");
        damage::force(connection, ("ledgers", &condition), &sane, [campaign, provider])?;
        run(connection, reason, [campaign, provider, failed, damage])?;
        run(connection, close, [campaign, provider])?;
    }
    campaigns::finish_if_over(connection, CampaignId::from_raw(campaign.cast_unsigned()), now)
}

/// Reads the sums of a campaign at all providers, in their order; `None` where some cannot be read: what they have open is
/// not known, and is written off after the campaign's end.
pub(super) fn sums(connection: &Connection, campaign: CampaignId) -> Done<Option<Vec<ProviderLedger>>> {
    let sql = format!("{SELECT} WHERE campaign = ?1 ORDER BY provider");
    let rows = (sql.as_str(), [int(campaign.raw())]);
    let (sums, broken) = damage::readable(connection, "ledgers", rows, usize::MAX, read)?;
    Ok(broken.is_empty().then_some(sums))
}

/// Reads the books of a campaign, those of providers that have an audience or may get one.
pub(super) fn of_campaign(connection: &Connection, campaign: CampaignId) -> Done<Vec<ProviderLedger>> {
    let sql = format!(
        "{SELECT} WHERE campaign = ?1 AND (audience > 0 OR EXISTS (SELECT 1 FROM producers p JOIN fleets f ON f.no = p.fleet
            WHERE p.campaign = ?1 AND f.provider = ledgers.provider)) ORDER BY provider"
    );
    let rows = (sql.as_str(), [int(campaign.raw())]);
    let (mut providers, _) = damage::readable(connection, "ledgers", rows, usize::MAX, read)?;
    for ledger in &mut providers {
        ledger.reasons = reasons(connection, campaign, ledger.provider)?;
    }
    Ok(providers)
}

fn reasons(connection: &Connection, campaign: CampaignId, provider: ProviderKind) -> Done<Vec<ReasonCount>> {
    let sql = "SELECT state, reason, count FROM reasons WHERE campaign = ?1 AND provider = ?2 ORDER BY state, reason";
    let rows = (sql, params![int(campaign.raw()), provider.code()]);
    let reasons = damage::readable(connection, "reasons", rows, usize::MAX, |row| {
        let (state, reason) = (code(row, 0, DeliveryState::from_code)?, code(row, 1, Reason::from_code)?);
        Ok(ReasonCount { state, reason, count: number(row, 2)? })
    });
    Ok(reasons?.0)
}

fn read(row: &Row<'_>) -> Done<ProviderLedger> {
    let stop = maybe_code(row, 15, Reason::from_code)?;
    let detail: Option<String> = row.get(16)?;
    let tally = Tally {
        queued: number(row, 3)?,
        sending: number(row, 4)?,
        accepted: number(row, 5)?,
        rejected: number(row, 6)?,
        expired: number(row, 7)?,
        collapsed: number(row, 8)?,
        canceled: number(row, 9)?,
        failed: number(row, 10)?,
    };
    Ok(ProviderLedger {
        provider: code(row, 0, ProviderKind::from_code)?,
        audience: number(row, 1)?,
        audience_complete: row.get(2)?,
        tally,
        delivered: number(row, 11)?,
        attempts: number(row, 12)?,
        ambiguous: number(row, 13)?,
        duplicate_bound: number(row, 14)?,
        stop: stop.map(|reason| Stop { reason, detail: detail.unwrap_or_default() }),
        reasons: Vec::new(),
    })
}
