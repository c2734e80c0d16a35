//! Events between nodes: rows in order of commit, each read by every node except its origin.

use crate::postgres::engine::Connection;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Change, NodeEvent};
use stentor_core::time::Timestamp;

use super::sequences;
use crate::postgres::last_writes::LastWrites;
use crate::sql::{Done, Row, Value, all, damaged, exists, int, limit, maybe_time, number, one, params, run};

/// The minimum number of events kept. A node that is further behind may have to reload everything.
const KEPT_MIN_COUNT: u64 = 16_384;
/// The largest number of events per read.
const LOOK_MAX_COUNT: usize = 1_024;

/// The row of an event.
#[derive(Default)]
struct EventRow {
    kind: u8,
    app: Option<AppId>,
    subject: Option<u64>,
    until: Option<Timestamp>,
    detail: Option<u8>,
    reason: Option<u8>,
}

impl EventRow {
    fn of(event: &NodeEvent) -> Self {
        let row = |kind, app| Self { kind, app, ..Self::default() };
        match event {
            NodeEvent::Keys => row(1, None),
            NodeEvent::Credential(app, provider) => {
                Self { detail: Some(provider.code()), ..row(2, Some(*app)) }
            }
            NodeEvent::Webhooks => row(3, None),
            NodeEvent::Queued => row(4, None),
            NodeEvent::Settled(chunk) => Self { subject: Some(chunk.raw()), ..row(5, None) },
            NodeEvent::Acted(app, message) => Self { subject: Some(message.raw()), ..row(6, Some(*app)) },
            NodeEvent::CutOff(app, device) => {
                Self { subject: device.map(DeviceId::raw), ..row(7, Some(*app)) }
            }
            NodeEvent::Upstream(app) => row(8, Some(*app)),
            NodeEvent::Connected(app, device, since, mark) => Self {
                subject: Some(device.raw()),
                until: Some(*since),
                detail: Some(*mark),
                ..row(10, Some(*app))
            },
            NodeEvent::Parked(app, provider, until, reason) => Self {
                detail: Some(provider.code()),
                reason: Some(reason.code()),
                until: Some(*until),
                ..row(9, Some(*app))
            },
        }
    }

    /// Returns the event; `None` when it is one of a newer program.
    fn event(&self) -> Option<NodeEvent> {
        let provider = || ProviderKind::from_code(self.detail?);
        Some(match self.kind {
            1 => NodeEvent::Keys,
            2 => NodeEvent::Credential(self.app?, provider()?),
            3 => NodeEvent::Webhooks,
            4 => NodeEvent::Queued,
            5 => NodeEvent::Settled(ChunkId::from_raw(self.subject?)),
            6 => NodeEvent::Acted(self.app?, MessageId::from_raw(self.subject?)),
            7 => NodeEvent::CutOff(self.app?, self.subject.map(DeviceId::from_raw)),
            8 => NodeEvent::Upstream(self.app?),
            9 => NodeEvent::Parked(self.app?, provider()?, self.until?, Reason::from_code(self.reason?)?),
            10 => {
                let device = DeviceId::from_raw(self.subject?);
                NodeEvent::Connected(self.app?, device, self.until?, self.detail?)
            }
            _ => return None,
        })
    }
}

/// The channel on which new events are announced; the payload is the instance of the origin.
pub(super) const CHANNEL: &str = "stentor_nodes";

/// Wakes the other nodes, once this transaction is committed.
pub(super) fn wake(connection: &Connection, origin: u64) {
    connection.defer(&format!("NOTIFY {CHANNEL}, '{origin}'"));
}

/// Publishes events to the other nodes, once this transaction is committed.
pub(super) fn publish(connection: &Connection, origin: u64, events: impl IntoIterator<Item = NodeEvent>) {
    events.into_iter().for_each(|event| connection.publish(origin, event));
}

/// Performs the last writes of a transaction after its jobs: the row that numbers events is locked until the transaction ends.
pub(in crate::postgres) fn write_last(connection: &Connection) -> Done<()> {
    let LastWrites { events, probes } = connection.last_writes();
    if probes {
        sequences::probe(connection)?;
    }
    match events.last() {
        Some((origin, _)) => write(connection, *origin, &events),
        None => Ok(()),
    }
}

/// Writes events in order; `teller` is the origin of the last one.
fn write(connection: &Connection, teller: u64, events: &[(u64, NodeEvent)]) -> Done<()> {
    let count = events.len() as u64;
    let last = match events.iter().all(|(_, event)| is_for_those_there(event)) {
        true => next_if_others(connection, teller, count)?,
        false => Some(sequences::take(connection, "event", count)?),
    };
    let Some(last) = last else { return Ok(()) };
    // The numbers are used only together with the rows: a rollback undoes both, and leaves no gap.
    let rows: Vec<_> =
        (last + 1 - count..).zip(events.iter().map(|(_, event)| EventRow::of(event))).collect();
    let sql = "INSERT INTO node_events (no, origin, kind, app, subject, until, detail, reason)
        SELECT no, origin, kind, app, subject, until, detail, reason
        FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[],
            $8::smallint[])
            given (no, origin, kind, app, subject, until, detail, reason)";
    let values = params![
        Value::ints(&rows, |(no, _)| int(*no)),
        Value::ints(events, |(origin, _)| int(*origin)),
        Value::ints(&rows, |(_, row)| row.kind.into()),
        Value::maybe_ints(&rows, |(_, row)| row.app.map(|app| int(app.raw()))),
        Value::maybe_ints(&rows, |(_, row)| row.subject.map(int)),
        Value::maybe_ints(&rows, |(_, row)| row.until.map(Timestamp::as_millis)),
        Value::maybe_ints(&rows, |(_, row)| row.detail.map(i64::from)),
        Value::maybe_ints(&rows, |(_, row)| row.reason.map(i64::from)),
    ];
    run(connection, sql, values)?;
    // Sent by the commit, when the rows can be read.
    wake(connection, teller);
    Ok(())
}

/// Returns true for events that only present nodes need. A node that joins, also after it was declared dead, reads that state itself. There
/// is one such event for each chunk and each device that connects.
const fn is_for_those_there(event: &NodeEvent) -> bool {
    matches!(
        event,
        NodeEvent::Queued | NodeEvent::Settled(_) | NodeEvent::Upstream(_) | NodeEvent::Connected(..)
    )
}

/// Returns the last of the next `count` numbers of events, or `None` if there is no other node.
fn next_if_others(connection: &Connection, own: u64, count: u64) -> Done<Option<u64>> {
    let sql = "UPDATE sequences SET value = value + $1
        WHERE name = 'event' AND EXISTS (SELECT 1 FROM nodes WHERE instance <> $2) RETURNING value";
    one(connection, sql, [int(count), int(own)], |row| number(row, 0))
}

/// Events after a given one.
pub(super) struct PublishedEvents {
    /// Those of others, in order.
    pub(super) events: Vec<NodeEvent>,
    /// The last event that was considered.
    pub(super) last: u64,
    /// True if events in between were deleted.
    pub(super) is_gapped: bool,
}

/// Lists the events of other nodes after an event, up to a later one or to the limit of a read.
pub(super) fn after(connection: &Connection, own: u64, after: u64, last: u64) -> Done<PublishedEvents> {
    // Numbers have no gaps: if the next one is missing, it was deleted.
    let is_gapped =
        last < after || !exists(connection, "SELECT 1 FROM node_events WHERE no = $1", [int(after) + 1])?;
    let sql = "SELECT kind, app, subject, until, detail, reason, no FROM node_events
        WHERE no > $1 AND no <= $2 AND origin <> $3 ORDER BY no LIMIT $4";
    let values = params![int(after), int(last), int(own), limit(LOOK_MAX_COUNT)];
    let rows = all(connection, sql, values, |row| Ok((read(row)?, number(row, 6)?)))?;
    // A full read ends with its last row; a shorter one also passes the node's own events behind it.
    let last = rows.last().filter(|_| rows.len() == LOOK_MAX_COUNT).map_or(last, |(_, no)| *no);
    Ok(PublishedEvents { events: rows.into_iter().filter_map(|(event, _)| event).collect(), last, is_gapped })
}

/// Returns true if there are events beyond the limit.
pub(super) fn are_many(connection: &Connection) -> Done<bool> {
    let sql = "SELECT 1 FROM node_events WHERE no <= (SELECT value FROM sequences WHERE name = 'event') - $1 LIMIT 1";
    exists(connection, sql, [int(KEPT_MIN_COUNT)])
}

/// Deletes the oldest events beyond the limit; returns their number, at most `count`. Rows that another node is deleting are skipped.
pub(super) fn forget(connection: &Connection, count: usize) -> Done<usize> {
    let sql = "DELETE FROM node_events WHERE no = ANY(ARRAY(SELECT no FROM node_events
        WHERE no <= (SELECT value FROM sequences WHERE name = 'event') - $1 ORDER BY no LIMIT $2 FOR UPDATE SKIP LOCKED))";
    run(connection, sql, [int(KEPT_MIN_COUNT), limit(count)])
}

/// Returns the events of a change for the other nodes. Creations need none, since no node caches the absence of a thing.
pub(super) fn of_change(change: &Change) -> Vec<NodeEvent> {
    match change {
        Change::CreateApp(..) | Change::CreateKey(..) | Change::CreateAccount(..) => Vec::new(),
        Change::DeleteApp(app, ..) => vec![NodeEvent::Keys, NodeEvent::CutOff(*app, None)],
        Change::DeleteKey(..) | Change::DeleteAccount(..) => vec![NodeEvent::Keys],
        Change::PutCredential(credential, ..) => {
            vec![NodeEvent::Credential(credential.app, credential.provider)]
        }
        Change::DeleteCredential(app, provider, ..) => vec![NodeEvent::Credential(*app, *provider)],
        Change::PutUpstreamWebhook(..) | Change::DeleteUpstreamWebhook(..) => vec![NodeEvent::Webhooks],
        Change::Act(app, campaign, ..) => vec![NodeEvent::Acted(*app, (*campaign).into())],
        Change::CreateSchedule(..) | Change::SetSchedule(..) => Vec::new(),
        Change::CreateProposal(..) | Change::ApproveProposal(..) | Change::DeleteProposal(..) => Vec::new(),
        Change::DeleteSchedule(..) | Change::DeleteBrokenSchedule(..) | Change::Refused => Vec::new(),
    }
}

fn read(row: &Row<'_>) -> Done<Option<NodeEvent>> {
    let small = |at| row.get::<Option<i64>>(at).map(|code| code.and_then(|code| u8::try_from(code).ok()));
    let large = |at| row.get::<Option<i64>>(at).map(|id| id.map(i64::cast_unsigned));
    let kind = small(0)?.ok_or_else(|| damaged("an event of no kind"))?;
    let row = EventRow {
        kind,
        app: large(1)?.map(AppId::from_raw),
        subject: large(2)?,
        until: maybe_time(row, 3)?,
        detail: small(4)?,
        reason: small(5)?,
    };
    Ok(row.event())
}

/// Returns the number of the last published event.
pub(super) fn last(connection: &Connection) -> Done<u64> {
    let sql = "SELECT value FROM sequences WHERE name = 'event'";
    let value = one(connection, sql, (), |row| number(row, 0))?;
    value.ok_or_else(|| damaged("a sequence is missing"))
}
