//! Pending deliveries of the gateway's devices. Two statements serve any number of devices, because each is a network round trip.

use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::ports::store::PendingDelivery;
use stentor_core::time::Timestamp;

use super::app_providers::{self, AppProvider};
use super::chunks::{self, LEVELS};
use super::codes::{CANCELED, PAUSED};
use super::receipt_rows;
use crate::awaiting::{awaiting, in_order};
use crate::postgres::engine::Connection;
use crate::postgres::query::keys;
use crate::sql::{Done, Row, int, number, params, readable, time};

/// Chunks that are read with one statement.
const CHUNKS_AT_ONCE_MAX_COUNT: usize = 1_024;

/// Lists the pending deliveries of devices.
pub(super) fn of_all(
    connection: &Connection,
    wanted: &[(AppId, DeviceId)],
    limit: usize,
    now: Timestamp,
) -> Done<Vec<Vec<PendingDelivery>>> {
    let mut apps: Vec<AppId> = wanted.iter().map(|(app, _)| *app).collect();
    apps.sort_unstable();
    apps.dedup();
    let mut found = vec![Vec::new(); wanted.len()];
    for app in apps {
        let of_app = wanted.iter().filter(|(of, _)| *of == app);
        let mut devices: Vec<DeviceId> = of_app.map(|(_, device)| *device).collect();
        devices.sort_unstable();
        devices.dedup();
        let waiting = of_app_devices(connection, app, &devices, now)?;
        for ((of, device), reply) in wanted.iter().zip(&mut found) {
            if let Ok(place) = devices.binary_search(device)
                && *of == app
            {
                *reply = in_order(waiting[place].clone(), limit);
            }
        }
    }
    Ok(found)
}

/// Lists the pending deliveries of an app's devices, which are in order of id.
fn of_app_devices(
    connection: &Connection,
    app: AppId,
    devices: &[DeviceId],
    now: Timestamp,
) -> Done<Vec<Vec<PendingDelivery>>> {
    let mut found = vec![Vec::new(); devices.len()];
    let Some(fleet) = app_providers::find(connection, app, ProviderKind::Gateway)? else { return Ok(found) };
    let sql = format!(
        "SELECT c.id, c.message, c.receipts_until, c.devices, c.records, k.state = {PAUSED} FROM chunks c
        JOIN campaigns k ON k.id = c.message WHERE c.id = ANY($1) AND c.receipts_until > $2 AND k.state <> {CANCELED}
        ORDER BY c.id"
    );
    let read = |row: &Row<'_>| waiting(row, devices);
    for some in chunks_of(connection, fleet, devices, now)?.chunks(CHUNKS_AT_ONCE_MAX_COUNT) {
        let values = params![some.to_vec(), now.as_millis()];
        let (chunks, _) = readable(connection, "chunks", (&sql, values), usize::MAX, read)?;
        for (place, one) in chunks.into_iter().flatten() {
            found[place].push(one);
        }
    }
    Ok(found)
}

/// Lists the chunks in which some of the given devices may await a receipt.
fn chunks_of(
    connection: &Connection,
    fleet: AppProvider,
    devices: &[DeviceId],
    now: Timestamp,
) -> Done<Vec<i64>> {
    let next = "SELECT level FROM chunks WHERE receipts_until IS NOT NULL AND fleet = $1";
    let sql = format!(
        "WITH RECURSIVE levels (level) AS (
            ({next} ORDER BY level LIMIT 1)
            UNION ALL
            SELECT ({next} AND chunks.level > levels.level ORDER BY level LIMIT 1) FROM levels WHERE level IS NOT NULL
        )
        SELECT DISTINCT c.id AS key FROM levels l CROSS JOIN unnest($2::bigint[]) wanted (device) CROSS JOIN LATERAL (
            SELECT id FROM chunks WHERE receipts_until IS NOT NULL AND fleet = $1 AND level = l.level
            AND last BETWEEN wanted.device AND wanted.device + (1::bigint << l.level::int) - 1 AND first <= wanted.device
            AND receipts_until > $3
        ) c WHERE l.level < {LEVELS}"
    );
    let wanted: Vec<i64> = devices.iter().map(|device| int(device.raw())).collect();
    keys(connection, &sql, params![int(fleet.no), wanted, now.as_millis()])
}

/// Reads a chunk; returns its pending deliveries, each with the position of its device.
fn waiting(row: &Row<'_>, wanted: &[DeviceId]) -> Done<Vec<(usize, PendingDelivery)>> {
    let devices = chunks::decode(row, 3)?;
    let records = receipt_rows::decode(row, 4, devices.len())?;
    let one = PendingDelivery {
        message: MessageId::from_raw(number(row, 1)?),
        chunk: ChunkId::from_raw(number(row, 0)?),
        expires_at: time(row, 2)?,
        is_paused: row.get(5)?,
    };
    Ok(awaiting(wanted, &devices, &records).into_iter().map(|place| (place, one)).collect())
}
