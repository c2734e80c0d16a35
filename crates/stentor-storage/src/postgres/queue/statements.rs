//! The SQL statements of the queue.

use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::{LaneDepth, QueueLease};
use stentor_core::time::Timestamp;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::super::engine::Connection;
use crate::sql::{
    Done, Row, Value, all, code, exists, int, limit, maybe_time, number, one, params, run, time,
};

/// The channel on which published tickets are announced.
pub(super) const CHANNEL: &str = "stentor_queue";
/// The advisory lock that prevents two processes from creating the table at once.
const LOCK: i64 = 0x5354_4E54_5155;

/// The table may be emptied at any time, so that a later version makes one of another name instead of changing it.
const SCHEMA: &str = "CREATE UNLOGGED SEQUENCE IF NOT EXISTS queue_leases;
    CREATE UNLOGGED TABLE IF NOT EXISTS queue_tickets (
        chunk BIGINT PRIMARY KEY,
        provider SMALLINT NOT NULL,
        app BIGINT NOT NULL,
        class SMALLINT NOT NULL,
        due_at BIGINT NOT NULL,
        lease BIGINT,
        lease_until BIGINT,
        CHECK ((lease IS NULL) = (lease_until IS NULL))
    ) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);
    CREATE INDEX IF NOT EXISTS queue_tickets_waiting ON queue_tickets (provider, app, class, due_at, chunk)
        WHERE lease IS NULL;
    CREATE INDEX IF NOT EXISTS queue_tickets_leased ON queue_tickets (provider, app, class, lease_until)
        WHERE lease IS NOT NULL";

const DROP: &str = "DROP TABLE IF EXISTS queue_tickets; DROP SEQUENCE IF EXISTS queue_leases";

/// Inserts new tickets and announces them. An existing ticket stays as it is, leased or not.
const PUT: &str = "WITH put AS (
        INSERT INTO queue_tickets (chunk, provider, app, class, due_at)
        SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::smallint[], $5::bigint[])
        ON CONFLICT (chunk) DO NOTHING RETURNING chunk)
    SELECT pg_notify('stentor_queue', '') FROM put LIMIT 1";

/// Leases tickets. Rows that another session is leasing are skipped instead of waited for.
const TAKE: &str = "WITH
    waiting AS (SELECT chunk, due_at FROM queue_tickets
        WHERE provider = $1 AND app = $2 AND class = $3 AND lease IS NULL AND due_at <= $4
        ORDER BY due_at, chunk LIMIT $5 FOR UPDATE SKIP LOCKED),
    lapsed AS (SELECT chunk, due_at FROM queue_tickets
        WHERE provider = $1 AND app = $2 AND class = $3 AND lease IS NOT NULL AND lease_until <= $4
        ORDER BY lease_until LIMIT $5 FOR UPDATE SKIP LOCKED),
    free AS (SELECT chunk FROM (SELECT * FROM waiting UNION ALL SELECT * FROM lapsed) AS both_kinds
        ORDER BY due_at, chunk LIMIT $5)
    UPDATE queue_tickets AS t SET lease = nextval('queue_leases'), lease_until = $6 FROM free
    WHERE t.chunk = free.chunk RETURNING t.chunk, t.due_at, t.lease";

const EXTEND: &str = "UPDATE queue_tickets AS t SET lease_until = $3
    FROM unnest($1::bigint[], $2::bigint[]) AS held (chunk, lease)
    WHERE t.chunk = held.chunk AND t.lease = held.lease AND t.lease_until > $4 RETURNING t.chunk, t.lease";

const REMOVE_LEASED: &str = "DELETE FROM queue_tickets AS t
    USING unnest($1::bigint[], $2::bigint[]) AS held (chunk, lease)
    WHERE t.chunk = held.chunk AND t.lease = held.lease";

const GIVE_BACK: &str = "WITH back AS (
        UPDATE queue_tickets AS t SET lease = NULL, lease_until = NULL, due_at = $3
        FROM unnest($1::bigint[], $2::bigint[]) AS held (chunk, lease)
        WHERE t.chunk = held.chunk AND t.lease = held.lease RETURNING t.chunk)
    SELECT pg_notify('stentor_queue', '') FROM back LIMIT 1";

/// A lease that has run out counts as none.
const DEPTHS: &str = "SELECT provider, app, class,
        count(*) FILTER (WHERE free AND due_at <= $1),
        count(*) FILTER (WHERE free AND due_at > $1),
        count(*) FILTER (WHERE NOT free),
        min(due_at) FILTER (WHERE free AND due_at <= $1),
        min(due_at) FILTER (WHERE free AND due_at > $1)
    FROM (SELECT provider, app, class, due_at, coalesce(lease_until <= $1, true) AS free FROM queue_tickets) AS t
    GROUP BY provider, app, class ORDER BY provider, app, class";

/// Creates the table if it does not exist.
pub(super) fn prepare(connection: &Connection) -> Done<()> {
    alone(connection, || connection.batch(SCHEMA))
}

/// Creates the table again if the sequence beside it cannot be read: PostgreSQL 15 leaves an unlogged sequence without a page on a promoted
/// standby.
pub(super) fn make_anew(connection: &Connection) -> Done<()> {
    // A read without `nextval` finds an empty table, and no error.
    alone(connection, || match connection.batch("SELECT nextval('queue_leases')") {
        // Another process has done it.
        Ok(()) => Ok(()),
        Err(_) => connection.batch(&format!("{DROP}; {SCHEMA}")),
    })
}

/// Executes work while no other process creates the table.
fn alone(connection: &Connection, work: impl FnOnce() -> Done<()>) -> Done<()> {
    connection.batch(&format!("SELECT pg_advisory_lock({LOCK})"))?;
    // A failure is returned only after the unlock, because the session would keep the lock otherwise.
    let done = work();
    connection.batch(&format!("SELECT pg_advisory_unlock({LOCK})"))?;
    done
}

/// Returns true if the server reports unreadable pages.
pub(super) fn is_spoilt(error: &Error) -> bool {
    error.code() == Some(&SqlState::INTERNAL_ERROR)
}

/// Returns true if the table or its sequence does not exist.
pub(super) fn is_missing(error: &Error) -> bool {
    error.code() == Some(&SqlState::UNDEFINED_TABLE)
}

pub(super) fn put(connection: &Connection, tickets: &[Ticket]) -> Done<()> {
    let column = |of: fn(&Ticket) -> i64| tickets.iter().map(of).collect::<Vec<i64>>();
    let columns = params![
        column(|ticket| int(ticket.chunk.raw())),
        column(|ticket| ticket.lane.provider.code().into()),
        column(|ticket| int(ticket.lane.app.raw())),
        column(|ticket| ticket.lane.class.code().into()),
        column(|ticket| ticket.due_at.as_millis()),
    ];
    exists(connection, PUT, columns).map(drop)
}

pub(super) fn take(
    connection: &Connection,
    lane: Lane,
    max: usize,
    until: Timestamp,
    now: Timestamp,
) -> Done<Vec<QueueLease>> {
    let values = params![
        lane.provider.code(),
        int(lane.app.raw()),
        lane.class.code(),
        now.as_millis(),
        limit(max),
        until.as_millis(),
    ];
    let lease = |row: &Row<'_>| {
        let ticket = Ticket { chunk: ChunkId::from_raw(number(row, 0)?), lane, due_at: time(row, 1)? };
        Ok(QueueLease { ticket, token: number(row, 2)? })
    };
    let mut leases = all(connection, TAKE, values, lease)?;
    leases.sort_unstable_by_key(|lease| (lease.ticket.due_at, lease.ticket.chunk));
    Ok(leases)
}

/// Prolongs leases that are still held; lists those.
pub(super) fn extend(
    connection: &Connection,
    leases: &[(i64, i64)],
    until: Timestamp,
    now: Timestamp,
) -> Done<Vec<(i64, i64)>> {
    let [chunks, numbers] = columns(leases);
    let values = params![chunks, numbers, until.as_millis(), now.as_millis()];
    all(connection, EXTEND, values, |row| Ok((row.get(0)?, row.get(1)?)))
}

pub(super) fn remove_leased(connection: &Connection, leases: &[(i64, i64)]) -> Done<()> {
    run(connection, REMOVE_LEASED, columns(leases)).map(drop)
}

pub(super) fn give_back(connection: &Connection, leases: &[(i64, i64)], due_at: Timestamp) -> Done<()> {
    let [chunks, numbers] = columns(leases);
    let values = params![chunks, numbers, due_at.as_millis()];
    exists(connection, GIVE_BACK, values).map(drop)
}

pub(super) fn remove(connection: &Connection, chunks: &[i64]) -> Done<()> {
    run(connection, "DELETE FROM queue_tickets WHERE chunk = ANY ($1::bigint[])", [chunks.to_vec()]).map(drop)
}

pub(super) fn depths(connection: &Connection, now: Timestamp) -> Done<Vec<LaneDepth>> {
    all(connection, DEPTHS, [now.as_millis()], |row| {
        let provider = code(row, 0, ProviderKind::from_code)?;
        let (app, class) = (AppId::from_raw(number(row, 1)?), code(row, 2, TrafficClass::from_code)?);
        Ok(LaneDepth {
            lane: Lane { provider, app, class },
            ready: number(row, 3)?,
            delayed: number(row, 4)?,
            leased: number(row, 5)?,
            oldest_due: maybe_time(row, 6)?,
            next_due: maybe_time(row, 7)?,
        })
    })
}

/// Makes a meaningless write: takes the number of a lease that is not used.
pub(super) fn try_to_write(connection: &Connection) -> Done<()> {
    exists(connection, "SELECT nextval('queue_leases')", ()).map(drop)
}

/// Returns the last number assigned to a lease.
pub(super) fn last_token(connection: &Connection) -> Done<u64> {
    let last = one(connection, "SELECT last_value FROM queue_leases", (), |row| number(row, 0))?;
    Ok(last.unwrap_or_default())
}

pub(super) fn clear(connection: &Connection) -> Done<()> {
    connection.batch("TRUNCATE queue_tickets")
}

fn columns(leases: &[(i64, i64)]) -> [Value<'static>; 2] {
    let (chunks, numbers): (Vec<i64>, Vec<i64>) = leases.iter().copied().unzip();
    params![chunks, numbers]
}
