//! Reports of the nodes about themselves, which every node can read.

use std::collections::HashMap;
use std::time::Duration;

use crate::postgres::engine::Connection;
use crate::sql::{Done, Row, Value, all, int, maybe_time, number, params, run};
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{NodeRecord, ParkedLane};
use stentor_core::time::Timestamp;

/// Lists the present nodes, beginning with the one that joined first, for a node that may be among them.
pub(super) fn nodes(connection: &Connection, own: Option<u64>) -> Done<Vec<NodeRecord>> {
    let mut parked = parked(connection)?;
    let sql = "SELECT node, instance, coalesce(fires AND instance = (SELECT min(instance) FROM nodes WHERE fires), FALSE),
        host, roles, version, schema_version,
        greatest((extract(epoch FROM clock_timestamp() - seen_at) * 1000)::bigint, 0)
        FROM nodes ORDER BY instance";
    all(connection, sql, (), |row| {
        let instance = number(row, 1)?;
        Ok(NodeRecord {
            node: number(row, 0)?,
            instance,
            is_own: own == Some(instance),
            is_first: row.get(2)?,
            host: row.str(3)?.to_owned(),
            roles: names(row.str(4)?),
            version: row.str(5)?.to_owned(),
            schema_version: number(row, 6)?,
            silent_for: Duration::from_millis(number(row, 7)?),
            parked: parked.remove(&instance).unwrap_or_default(),
        })
    })
}

/// Replaces the parked lanes that a node has reported; does nothing if it is not among the nodes any more.
pub(super) fn replace_parked(connection: &Connection, instance: u64, lanes: &[ParkedLane]) -> Done<()> {
    run(connection, "DELETE FROM parked_lanes WHERE instance = $1", [int(instance)])?;
    let sql = "INSERT INTO parked_lanes (instance, app, provider, reason, until, detail)
        SELECT instance, app, provider, reason, until, detail
        FROM unnest($2::bigint[], $3::smallint[], $4::smallint[], $5::bigint[], $6::text[])
            given (app, provider, reason, until, detail), nodes
        WHERE instance = $1";
    let values = params![
        int(instance),
        Value::ints(lanes, |lane| int(lane.app.raw())),
        Value::ints(lanes, |lane| lane.provider.code().into()),
        Value::ints(lanes, |lane| lane.reason.code().into()),
        Value::maybe_ints(lanes, |lane| lane.until.map(Timestamp::as_millis)),
        Value::texts(lanes, |lane| Some(lane.detail.clone())),
    ];
    run(connection, sql, values).map(drop)
}

/// Reads the lanes that rest, by the instance that reported them.
fn parked(connection: &Connection) -> Done<HashMap<u64, Vec<ParkedLane>>> {
    let sql = "SELECT instance, app, provider, reason, until, detail FROM parked_lanes ORDER BY instance, app, provider";
    let mut lanes: HashMap<u64, Vec<ParkedLane>> = HashMap::new();
    for (instance, lane) in all(connection, sql, (), |row| Ok((number(row, 0)?, lane(row)?)))? {
        lanes.entry(instance).or_default().extend(lane);
    }
    Ok(lanes)
}

/// Reads a lane; `None` if a newer program has reported a value unknown to this one.
fn lane(row: &Row<'_>) -> Done<Option<ParkedLane>> {
    let (provider, reason) = (ProviderKind::from_code(row.get(2)?), Reason::from_code(row.get(3)?));
    let (app, until, detail) =
        (AppId::from_raw(number(row, 1)?), maybe_time(row, 4)?, row.str(5)?.to_owned());
    Ok(provider.zip(reason).map(|(provider, reason)| ParkedLane { app, provider, until, reason, detail }))
}

fn names(text: &str) -> Vec<String> {
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
