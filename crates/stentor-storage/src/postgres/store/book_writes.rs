//! Changes of many books at once.

use std::collections::BTreeMap;

use crate::postgres::engine::Connection;
use stentor_core::campaign::ProviderLedger;
use stentor_core::delivery::DeliveryState;
use stentor_core::device::ProviderKind;
use stentor_core::id::CampaignId;
use stentor_core::outcome::Reason;

use crate::sql::{Done, Value, int, run};

/// Sums of campaigns, in order of campaign and provider.
pub(super) type ChangedSums = BTreeMap<(CampaignId, ProviderKind), ProviderLedger>;

/// Stores sums.
pub(super) fn save(connection: &Connection, changed: &ChangedSums) -> Done<()> {
    let sql = "INSERT INTO ledgers (campaign, provider, audience, audience_complete, queued, sending, accepted,
        rejected, expired, collapsed, canceled, failed, delivered, attempts, ambiguous, duplicate_bound, stop_reason, stop_detail)
        SELECT campaign, provider, audience, audience_complete <> 0, queued, sending, accepted, rejected, expired, collapsed,
            canceled, failed, delivered, attempts, ambiguous, duplicate_bound, stop_reason, stop_detail
        FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
            $16::bigint[], $17::smallint[], $18::text[])
            given (campaign, provider, audience, audience_complete, queued, sending, accepted, rejected, expired, collapsed,
            canceled, failed, delivered, attempts, ambiguous, duplicate_bound, stop_reason, stop_detail)
        ON CONFLICT (campaign, provider) DO UPDATE SET audience = excluded.audience,
        audience_complete = excluded.audience_complete, queued = excluded.queued, sending = excluded.sending,
        accepted = excluded.accepted, rejected = excluded.rejected, expired = excluded.expired,
        collapsed = excluded.collapsed, canceled = excluded.canceled, failed = excluded.failed,
        delivered = excluded.delivered, attempts = excluded.attempts, ambiguous = excluded.ambiguous,
        duplicate_bound = excluded.duplicate_bound, stop_reason = excluded.stop_reason,
        stop_detail = excluded.stop_detail";
    let rows: Vec<_> = changed.iter().map(|((campaign, _), sums)| (*campaign, sums)).collect();
    let ints = |read: &dyn Fn(&ProviderLedger) -> i64| Value::ints(&rows, |(_, sums)| read(sums));
    let values = vec![
        Value::ints(&rows, |(campaign, _)| int(campaign.raw())),
        ints(&|sums| sums.provider.code().into()),
        ints(&|sums| int(sums.audience)),
        ints(&|sums| sums.audience_complete.into()),
        ints(&|sums| int(sums.tally.queued)),
        ints(&|sums| int(sums.tally.sending)),
        ints(&|sums| int(sums.tally.accepted)),
        ints(&|sums| int(sums.tally.rejected)),
        ints(&|sums| int(sums.tally.expired)),
        ints(&|sums| int(sums.tally.collapsed)),
        ints(&|sums| int(sums.tally.canceled)),
        ints(&|sums| int(sums.tally.failed)),
        ints(&|sums| int(sums.delivered)),
        ints(&|sums| int(sums.attempts)),
        ints(&|sums| int(sums.ambiguous)),
        ints(&|sums| int(sums.duplicate_bound)),
        Value::maybe_ints(&rows, |(_, sums)| sums.stop.as_ref().map(|stop| stop.reason.code().into())),
        Value::texts(&rows, |(_, sums)| sums.stop.as_ref().map(|stop| stop.detail.clone())),
    ];
    run(connection, sql, values).map(drop)
}

/// The number of ended deliveries by state and reason, in order of campaign and provider.
pub(super) type EndCounts = BTreeMap<(CampaignId, ProviderKind, DeliveryState, Reason), u64>;

/// Adds ended deliveries to the counts by reason.
pub(super) fn add_ends(connection: &Connection, ends: &EndCounts) -> Done<()> {
    let sql = "INSERT INTO reasons (campaign, provider, state, reason, count)
        SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::smallint[], $5::bigint[])
        ON CONFLICT (campaign, provider, state, reason) DO UPDATE SET count = reasons.count + excluded.count";
    let rows: Vec<_> = ends.iter().collect();
    let values = vec![
        Value::ints(&rows, |((campaign, ..), _)| int(campaign.raw())),
        Value::ints(&rows, |((_, provider, ..), _)| provider.code().into()),
        Value::ints(&rows, |((_, _, state, _), _)| state.code().into()),
        Value::ints(&rows, |((.., reason), _)| reason.code().into()),
        Value::ints(&rows, |(_, count)| int(**count)),
    ];
    run(connection, sql, values).map(drop)
}
