//! What nodes tell each other: rows in order of commit, each read by every node but its own.

use crate::postgres::engine::{Connection, Row, Value, params};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Change, NodeEvent};
use stentor_core::time::Timestamp;

use super::sequences;
use crate::postgres::fault::{Done, damaged};
use crate::postgres::query::{all, limit, run};
use crate::postgres::row::{int, maybe_time, number};

/// Events that are kept; who is further behind looks at everything anew.
const KEPT_MAX_COUNT: u64 = 16_384;
/// Most events of one look.
const LOOK_MAX_COUNT: usize = 1_024;

/// How an event is kept.
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
            _ => return None,
        })
    }
}

/// Where it is told that there is something to look for; the word is the number of the node that tells it.
pub(super) const CHANNEL: &str = "stentor_nodes";

/// Wakes the other nodes, once this transaction is committed.
pub(super) fn wake(connection: &Connection, origin: u64) {
    connection.defer(&format!("NOTIFY {CHANNEL}, '{origin}'"));
}

/// Lets the other nodes hear of events, once this transaction is committed.
///
/// The last thing in a transaction: who tells something after that waits until it ends.
pub(super) fn publish(connection: &Connection, origin: u64, events: &[NodeEvent]) -> Done<()> {
    if events.is_empty() {
        return Ok(());
    }
    let first = sequences::take(connection, "event", events.len() as u64)? + 1 - events.len() as u64;
    let rows: Vec<_> = (first..).zip(events.iter().map(EventRow::of)).collect();
    let sql = "INSERT INTO node_events (no, origin, kind, app, subject, until, detail, reason)
        SELECT no, $2, kind, app, subject, until, detail, reason
        FROM unnest($1::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[], $8::smallint[])
            given (no, kind, app, subject, until, detail, reason)";
    let values = params![
        Value::ints(&rows, |(no, _)| int(*no)),
        int(origin),
        Value::ints(&rows, |(_, row)| row.kind.into()),
        Value::maybe_ints(&rows, |(_, row)| row.app.map(|app| int(app.raw()))),
        Value::maybe_ints(&rows, |(_, row)| row.subject.map(int)),
        Value::maybe_ints(&rows, |(_, row)| row.until.map(Timestamp::as_millis)),
        Value::maybe_ints(&rows, |(_, row)| row.detail.map(i64::from)),
        Value::maybe_ints(&rows, |(_, row)| row.reason.map(i64::from)),
    ];
    run(connection, sql, values)?;
    wake(connection, origin);
    Ok(())
}

/// Lists what others told after an event, and whether some of it is forgotten.
pub(super) fn after(
    connection: &Connection,
    own: u64,
    after: u64,
    last: u64,
) -> Done<(Vec<NodeEvent>, bool)> {
    let sql = "SELECT kind, app, subject, until, detail, reason FROM node_events
        WHERE no > $1 AND no <= $2 AND origin <> $3 ORDER BY no LIMIT $4";
    let values = params![int(after), int(last), int(own), limit(LOOK_MAX_COUNT)];
    let events = all(connection, sql, values, read)?;
    let is_gapped = events.len() == LOOK_MAX_COUNT || last.saturating_sub(after) > KEPT_MAX_COUNT;
    Ok((events.into_iter().flatten().collect(), is_gapped))
}

/// Forgets events that all nodes have read, or that are too many.
pub(super) fn forget(connection: &Connection) -> Done<()> {
    let sql = "DELETE FROM node_events WHERE no <= (SELECT value FROM sequences WHERE name = 'event') - $1";
    run(connection, sql, [int(KEPT_MAX_COUNT)]).map(drop)
}

/// Returns what other nodes must know of a change.
pub(super) fn of_change(change: &Change) -> Option<NodeEvent> {
    match change {
        Change::CreateApp(..) | Change::DeleteApp(..) => Some(NodeEvent::Keys),
        Change::CreateKey(..) | Change::DeleteKey(..) => Some(NodeEvent::Keys),
        Change::CreateAccount(..) | Change::DeleteAccount(..) => Some(NodeEvent::Keys),
        Change::PutCredential(credential, ..) => {
            Some(NodeEvent::Credential(credential.app, credential.provider))
        }
        Change::DeleteCredential(app, provider, ..) => Some(NodeEvent::Credential(*app, *provider)),
        Change::PutUpstreamWebhook(..) | Change::DeleteUpstreamWebhook(..) => Some(NodeEvent::Webhooks),
        Change::Act(app, campaign, ..) => Some(NodeEvent::Acted(*app, (*campaign).into())),
        Change::CreateSchedule(..) | Change::SetSchedule(..) => None,
        Change::DeleteSchedule(..) | Change::DeleteBrokenSchedule(..) => None,
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

/// Returns the last event that was told.
pub(super) fn last(connection: &Connection) -> Done<u64> {
    let sql = "SELECT value FROM sequences WHERE name = 'event'";
    let value = crate::postgres::query::one(connection, sql, (), |row| number(row, 0))?;
    value.ok_or_else(|| damaged("a sequence is missing"))
}
