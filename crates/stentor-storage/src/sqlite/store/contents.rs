//! The data needed to send a chunk.

use std::sync::Arc;

use rusqlite::Connection;
use stentor_core::chunk::TokenList;
use stentor_core::id::DeviceId;
use stentor_core::ledger::Contents;
use stentor_core::ports::store::SendDecision;
use stentor_core::time::Timestamp;

use super::app_providers::device_of;
use super::chunks::{self, ChunkRow};
use super::collapse;
use super::message_rows::{self, MessageCache};
use super::prefetch::{PrefetchCache, Prefetched};
use crate::sql::{Done, damaged, missing};

/// Caches of data that need not be read from the file again.
pub(super) struct LeaseCaches {
    pub(super) messages: Arc<MessageCache>,
    pub(super) prefetch: Arc<PrefetchCache>,
}

/// Reads the data needed to send a chunk.
pub(super) fn contents(
    connection: &Connection,
    known: Option<&LeaseCaches>,
    chunk: &ChunkRow,
    now: Timestamp,
) -> Done<Contents> {
    let (devices, decisions, tokens) = look_up(connection, known, chunk, now)?;
    let id = chunk.campaign.into();
    let message = match known {
        Some(known) => known.messages.get(connection, id)?,
        None => message_rows::load(connection, id)?.map(Arc::new),
    };
    Ok(Contents { message: message.ok_or(missing("message"))?, devices, decisions, tokens })
}

/// Determines the devices of a chunk, and for each of them: gone, collapsed, or its token.
fn look_up(
    connection: &Connection,
    known: Option<&LeaseCaches>,
    chunk: &ChunkRow,
    now: Timestamp,
) -> Done<(Vec<DeviceId>, Vec<SendDecision>, TokenList)> {
    let seen = known
        .and_then(|known| known.prefetch.take(chunk.id))
        // Prefetched devices that do not match the chunk are invalid: the file is read.
        .filter(|seen| seen.devices.len() == chunk.count);
    let (devices, tokens) = match seen {
        Some(Prefetched { devices, tokens }) => (devices, Some(tokens)),
        None => (chunks::devices(connection, chunk.id, chunk.count)?, None),
    };
    let (decisions, tokens) = decide(connection, chunk, &devices, tokens, now)?;
    Ok((devices, decisions, tokens))
}

/// Determines for each device of a chunk: gone, collapsed, or its token. `known` are the tokens of all of them.
pub(super) fn decide(
    connection: &Connection,
    chunk: &ChunkRow,
    devices: &[DeviceId],
    known: Option<TokenList>,
    now: Timestamp,
) -> Done<(Vec<SendDecision>, TokenList)> {
    // Checked even for known tokens: a newer message may have come since.
    let collapsed = collapse::collapsed(connection, chunk, devices, now)?;
    // If some devices are collapsed, the list of all does not fit.
    if let Some(tokens) = known.filter(|_| collapsed.is_empty()) {
        return Ok((vec![SendDecision::Send; devices.len()], tokens));
    }
    let read = |each: &mut dyn FnMut(DeviceId, &str)| read_tokens(connection, chunk, devices, each);
    collapse::decide(devices, &collapsed, read)
}

/// Reads the tokens of unretired devices in order of id.
fn read_tokens(
    connection: &Connection,
    chunk: &ChunkRow,
    devices: &[DeviceId],
    each: &mut dyn FnMut(DeviceId, &str),
) -> Done<()> {
    let sql =
        "SELECT key, token FROM devices WHERE key BETWEEN ?1 AND ?2 AND retired_at IS NULL ORDER BY key";
    let mut statement = connection.prepare_cached(sql)?;
    let mut read = |first: DeviceId, last: DeviceId| -> Done<()> {
        let mut rows = statement.query([chunk.fleet.bound(first), chunk.fleet.bound(last)])?;
        while let Some(row) = rows.next()? {
            // A device with an invalid token counts as gone.
            let key = row.get(0)?;
            match row.get_ref(1)?.as_str() {
                Ok(token) => each(device_of(key), token),
                Err(_) => {
                    crate::sql::note_damage(connection, "devices", key, &damaged("a token that is no text"))
                }
            }
        }
        Ok(())
    };
    if chunk.is_dense(devices.len()) {
        return read(chunk.first, chunk.last);
    }
    devices.iter().try_for_each(|device| read(*device, *device))
}
