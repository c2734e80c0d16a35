//! Changes of books.

use rusqlite::Connection;
use stentor_core::delivery::DeliveryState;
use stentor_core::device::ProviderKind;
use stentor_core::id::CampaignId;
use stentor_core::ledger::Books;
use stentor_core::outcome::Reason;

use crate::sql::{Done, int, params, run};

/// Stores books, and adds the deliveries that have ended since the books were opened.
pub(super) fn save(connection: &Connection, campaign: CampaignId, books: &Books) -> Done<()> {
    let sql = "INSERT OR REPLACE INTO ledgers (campaign, provider, audience, audience_complete, queued, sending, accepted,
        rejected, expired, collapsed, canceled, failed, delivered, attempts, ambiguous, duplicate_bound, stop_reason, stop_detail)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    let ledger = books.ledger();
    let tally = &ledger.tally;
    let values = params![
        int(campaign.raw()),
        ledger.provider.code(),
        int(ledger.audience),
        ledger.audience_complete,
        int(tally.queued),
        int(tally.sending),
        int(tally.accepted),
        int(tally.rejected),
        int(tally.expired),
        int(tally.collapsed),
        int(tally.canceled),
        int(tally.failed),
        int(ledger.delivered),
        int(ledger.attempts),
        int(ledger.ambiguous),
        int(ledger.duplicate_bound),
        ledger.stop.as_ref().map(|stop| stop.reason.code()),
        ledger.stop.as_ref().map(|stop| &stop.detail),
    ];
    run(connection, sql, values)?;
    books.ends().try_for_each(|((state, reason), count)| {
        save_end(connection, campaign, ledger.provider, state, reason, count)
    })
}

fn save_end(
    connection: &Connection,
    campaign: CampaignId,
    provider: ProviderKind,
    state: DeliveryState,
    reason: Reason,
    count: u64,
) -> Done<()> {
    let sql = "INSERT INTO reasons (campaign, provider, state, reason, count) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT DO UPDATE SET count = count + excluded.count";
    let values = params![int(campaign.raw()), provider.code(), state.code(), reason.code(), int(count)];
    run(connection, sql, values).map(drop)
}
