//! Pending deliveries of the gateway's devices. If many devices query at once, as after a restart, each chunk that they share is read once.

use std::collections::HashMap;

use rusqlite::Connection;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::ports::store::PendingDelivery;
use stentor_core::time::Timestamp;

use super::app_providers::{self, AppProvider};
use super::chunks::{self, LEVELS};
use super::codes::{CANCELED, PAUSED};
use super::receipt_rows;
use super::stretch::WALKED_MAX_COUNT;
use crate::awaiting::{awaiting, in_order};
use crate::sql::{Done, Row, int, number, one, params, readable, time};

/// The queried devices of one fleet.
struct AskedFleet {
    fleet: AppProvider,
    /// In order of id.
    devices: Vec<DeviceId>,
    /// Of the chunks that await receipts.
    levels: Vec<u32>,
    /// By chunk, the places of those among the devices that await a receipt there.
    known: HashMap<ChunkId, Vec<usize>>,
}

/// Lists the pending deliveries of the first devices: as many as one read may cover, at least one.
pub(super) fn of_some(
    connection: &Connection,
    devices: &[(AppId, DeviceId)],
    limit: usize,
    now: Timestamp,
) -> Done<Vec<Vec<PendingDelivery>>> {
    let mut fleets: HashMap<AppId, Option<AskedFleet>> = HashMap::new();
    let (mut found, mut walked) = (Vec::with_capacity(devices.len()), 0);
    for (app, device) in devices {
        let fleet = match fleets.get_mut(app) {
            Some(known) => known,
            None => fleets.entry(*app).or_insert(AskedFleet::of(connection, *app, devices)?),
        };
        let waiting = match fleet {
            Some(fleet) => fleet.pending(connection, *device, &mut walked, now)?,
            None => Vec::new(),
        };
        found.push(in_order(waiting, limit));
        if walked >= WALKED_MAX_COUNT {
            break;
        }
    }
    Ok(found)
}

impl AskedFleet {
    fn of(connection: &Connection, app: AppId, wanted: &[(AppId, DeviceId)]) -> Done<Option<Self>> {
        let Some(fleet) = app_providers::find(connection, app, ProviderKind::Gateway)? else {
            return Ok(None);
        };
        let of_app = wanted.iter().filter(|(of, _)| *of == app);
        let mut devices: Vec<DeviceId> = of_app.map(|(_, device)| *device).collect();
        devices.sort_unstable();
        devices.dedup();
        Ok(Some(Self { fleet, devices, levels: levels(connection, fleet)?, known: HashMap::new() }))
    }

    fn pending(
        &mut self,
        connection: &Connection,
        device: DeviceId,
        walked: &mut usize,
        now: Timestamp,
    ) -> Done<Vec<PendingDelivery>> {
        let sql = format!(
            "SELECT c.id, c.message, c.receipts_until, c.devices, c.records, k.state = {PAUSED} FROM chunks c
            JOIN campaigns k ON k.id = c.message WHERE c.receipts_until IS NOT NULL AND c.fleet = ?1 AND c.level = ?2
            AND c.last BETWEEN ?3 AND ?4 AND c.first <= ?3 AND c.receipts_until > ?5 AND k.state != {CANCELED}"
        );
        let Ok(place) = self.devices.binary_search(&device) else { return Ok(Vec::new()) };
        let (id, no) = (int(device.raw()), int(self.fleet.no));
        let mut found = Vec::new();
        for level in self.levels.clone() {
            let farthest = id.saturating_add((1 << level) - 1);
            let values = params![no, level, id, farthest, now.as_millis()];
            let read = |row: &Row<'_>| {
                *walked += 1;
                self.waiting(row, place)
            };
            let (some, _) = readable(connection, "chunks", (&sql, values), usize::MAX, read)?;
            found.extend(some.into_iter().flatten());
        }
        Ok(found)
    }

    /// Reads a chunk; nothing if the device at a place is not in it, or awaits nothing.
    fn waiting(&mut self, row: &Row<'_>, place: usize) -> Done<Option<PendingDelivery>> {
        let chunk = ChunkId::from_raw(number(row, 0)?);
        let places = match self.known.get(&chunk) {
            Some(places) => places,
            None => {
                let devices = chunks::decode(row, 3)?;
                let records = receipt_rows::decode(row, 4, devices.len())?;
                self.known.entry(chunk).or_insert(awaiting(&self.devices, &devices, &records))
            }
        };
        if places.binary_search(&place).is_err() {
            return Ok(None);
        }
        Ok(Some(PendingDelivery {
            message: MessageId::from_raw(number(row, 1)?),
            chunk,
            expires_at: time(row, 2)?,
            is_paused: row.get(5)?,
        }))
    }
}

/// Lists the levels with chunks of a fleet that await receipts, which are mostly few.
fn levels(connection: &Connection, fleet: AppProvider) -> Done<Vec<u32>> {
    let sql = "SELECT level FROM chunks WHERE receipts_until IS NOT NULL AND fleet = ?1 AND level >= ?2 AND level < ?3
        ORDER BY level LIMIT 1";
    let (mut found, mut next) = (Vec::new(), 0);
    // A jump through the index for each level: DISTINCT would walk all rows.
    while let Some(level) =
        one(connection, sql, params![int(fleet.no), next, LEVELS], |row| row.get::<u32>(0))?
    {
        found.push(level);
        next = level + 1;
    }
    Ok(found)
}
