//! The data needed to send a chunk.

use std::sync::Arc;

use stentor_core::id::{DeviceId, MessageId};
use stentor_core::ledger::Contents;
use stentor_core::message::Message;
use stentor_core::time::Timestamp;

use super::app_providers::device_of;
use super::chunks::{self, ChunkRow};
use super::collapse;
use super::message_rows::{self, MessageCache};
use super::prefetched_rows::PrefetchedRows;
use crate::postgres::engine::Connection;
use crate::sql::{Done, Row, missing, one, params};

/// Reads the data needed to send a chunk.
pub(super) fn contents(
    connection: &Connection,
    known: Option<&MessageCache>,
    read: &PrefetchedRows,
    chunk: &ChunkRow,
    now: Timestamp,
) -> Done<Contents> {
    let devices = match read.devices(chunk.id).filter(|devices| devices.len() == chunk.count) {
        Some(devices) => devices.to_vec(),
        None => chunks::devices(connection, chunk.id, chunk.count)?,
    };
    // Other chunks of the same transaction may be leased although their lease is not written yet. A newer message replaces an older one in
    // either case, unless it is too late; then neither is sent.
    let collapsed = collapse::collapsed(connection, chunk, &devices, now)?;
    let (decisions, tokens) = match read.tokens(chunk.id) {
        Some(tokens) => {
            let token = |device: &DeviceId| {
                tokens.get(&chunk.fleet.bound(*device)).map(|token| (*device, token.as_str()))
            };
            collapse::decide(&devices, &collapsed, |each| {
                devices.iter().filter_map(token).for_each(|(device, token)| each(device, token));
                Ok(())
            })?
        }
        None => {
            collapse::decide(&devices, &collapsed, |each| read_tokens(connection, chunk, &devices, each))?
        }
    };
    let message = message(connection, known, read, chunk.campaign.into())?;
    Ok(Contents { message, devices, decisions, tokens })
}

fn message(
    connection: &Connection,
    known: Option<&MessageCache>,
    read: &PrefetchedRows,
    id: MessageId,
) -> Done<Arc<Message>> {
    if let Some(message) = read.message(id) {
        return Ok(Arc::clone(message));
    }
    let message = match known {
        Some(known) => known.get(connection, id)?,
        None => message_rows::load(connection, id)?.map(Arc::new),
    };
    message.ok_or(missing("message"))
}

/// Reads the tokens of unretired devices in order of id.
fn read_tokens(
    connection: &Connection,
    chunk: &ChunkRow,
    devices: &[DeviceId],
    each: &mut dyn FnMut(DeviceId, &str),
) -> Done<()> {
    // Two lists cost much less than a row for each device.
    let read = |row: &Row<'_>| {
        let (keys, tokens): (Vec<i64>, _) = (row.get(0)?, row.strs(1)?);
        keys.into_iter().zip(tokens).for_each(|(key, token)| each(device_of(key), token));
        Ok(())
    };
    if chunk.is_dense(devices.len()) {
        let sql =
            "SELECT coalesce(array_agg(key), '{}'), coalesce(array_agg(token), '{}') FROM (SELECT key, token
            FROM devices WHERE key BETWEEN $1 AND $2 AND retired_at IS NULL ORDER BY key) found";
        let bounds = [chunk.fleet.bound(chunk.first), chunk.fleet.bound(chunk.last)];
        return one(connection, sql, bounds, read).map(drop);
    }
    let keys: Vec<i64> = devices.iter().map(|device| chunk.fleet.bound(*device)).collect();
    let sql =
        "SELECT coalesce(array_agg(key), '{}'), coalesce(array_agg(token), '{}') FROM (SELECT key, token
        FROM devices WHERE key = ANY($1) AND retired_at IS NULL ORDER BY key) found";
    one(connection, sql, params![keys], read).map(drop)
}
