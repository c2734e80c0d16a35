//! The levels of the quotas that all nodes share.

use crate::postgres::engine::Connection;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::store::QuotaClaim;
use stentor_core::quota::{Bucket, Level};
use stentor_core::time::Timestamp;

use super::nodes;
use crate::sql::{Done, Row, Value, damaged, exists, int, limit, number, one, params, run, time};

/// The minimum time without a draw before a level is deleted, so that a credential which is put again soon does not start with a full
/// bucket.
const UNUSED_MIN_MS: i64 = 3_600_000;
/// The condition for unused levels of deleted credentials.
const UNUSED: &str = "at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1
    AND NOT EXISTS (SELECT 1 FROM credentials c WHERE c.app = l.app AND c.provider = l.provider)";

/// Takes tokens for each claim, in order of the rows, so that no deadlock arises between nodes.
pub(super) fn draw(connection: &Connection, claims: &[QuotaClaim]) -> Done<Vec<u64>> {
    let now = nodes::clock_time(connection)?;
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_unstable_by_key(|at| (claims[*at].app, claims[*at].provider.code()));
    let mut counts = vec![0; claims.len()];
    for at in order {
        counts[at] = draw_one(connection, &claims[at], now)?;
    }
    Ok(counts)
}

/// Returns true if there are unused levels of deleted credentials.
pub(super) fn are_unused(connection: &Connection) -> Done<bool> {
    let sql = format!("SELECT 1 FROM quota_levels l WHERE {UNUSED} LIMIT 1");
    exists(connection, &sql, [UNUSED_MIN_MS])
}

/// Deletes them; returns their number, at most `count`.
pub(super) fn forget(connection: &Connection, count: usize) -> Done<usize> {
    let sql = format!(
        "DELETE FROM quota_levels WHERE (app, provider) IN (SELECT app, provider FROM quota_levels l
        WHERE {UNUSED} ORDER BY app, provider LIMIT $2 FOR UPDATE SKIP LOCKED)"
    );
    run(connection, &sql, [UNUSED_MIN_MS, limit(count)])
}

/// Returns the level of a quota at its last draw.
pub(super) fn level(connection: &Connection, app: AppId, provider: ProviderKind) -> Done<Option<Level>> {
    let sql = "SELECT at, warm_ms, urgent_grains, common_grains FROM quota_levels
        WHERE app = $1 AND provider = $2";
    one(connection, sql, params![int(app.raw()), provider.code()], read)
}

fn draw_one(connection: &Connection, claim: &QuotaClaim, now: Timestamp) -> Done<u64> {
    let key = || params![int(claim.app.raw()), claim.provider.code()];
    let quota = claim.quota.shared();
    let full = Bucket::new(quota, now).level();
    let sql = "INSERT INTO quota_levels (app, provider, at, warm_ms, urgent_grains, common_grains)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    // A row is needed for the lock: if two nodes create a level at once, the second continues from the first one's.
    run(connection, sql, values(claim, full))?;
    let sql = "SELECT at, warm_ms, urgent_grains, common_grains FROM quota_levels
        WHERE app = $1 AND provider = $2 FOR UPDATE";
    let level = one(connection, sql, key(), read)?.ok_or_else(|| damaged("a quota without a level"))?;
    let mut bucket = Bucket::resume(quota, level, now);
    let count = bucket.draw(claim.class, (claim.least, claim.most), now);
    let sql = "UPDATE quota_levels SET at = $3, warm_ms = $4, urgent_grains = $5, common_grains = $6
        WHERE app = $1 AND provider = $2";
    run(connection, sql, values(claim, bucket.level()))?;
    Ok(count)
}

fn values(claim: &QuotaClaim, level: Level) -> [Value<'static>; 6] {
    params![
        int(claim.app.raw()),
        claim.provider.code(),
        level.at.as_millis(),
        int(level.warm_ms),
        level.urgent_grains,
        level.common_grains,
    ]
}

fn read(row: &Row<'_>) -> Done<Level> {
    let (at, warm_ms) = (time(row, 0)?, number(row, 1)?);
    Ok(Level { at, warm_ms, urgent_grains: row.get(2)?, common_grains: row.get(3)? })
}
