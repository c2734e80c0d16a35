//! Leases: written before the first byte leaves, with all that is needed to send.

use rusqlite::{Connection, params};
use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{Ticket, TokenList};
use stentor_core::id::{ChunkId, DeviceId};
use stentor_core::ports::store::{Fate, Lease, LeaseReply, LeasedChunk};
use stentor_core::time::Timestamp;

use super::ahead::{ReadAhead, Seen};
use super::books::Shelf;
use super::campaigns;
use super::chunks::{self, Chunk, ChunkState};
use super::collapse;
use super::fleets::device_of;
use super::messages::{self, MessageCache};
use crate::sqlite::damage;
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::run;
use crate::sqlite::row::int;

/// Ids that lie closer than this are read as one range, others one by one.
const SPREAD_MAX_RATIO: u64 = 8;

/// What need not be read from the file again.
pub(super) struct Known<'a> {
    pub(super) messages: &'a MessageCache,
    pub(super) ahead: &'a ReadAhead,
}

/// Leases chunks.
pub(super) fn lease(
    connection: &Connection,
    known: &Known<'_>,
    ids: &[ChunkId],
    lease: Lease,
) -> Done<Vec<LeaseReply>> {
    let mut shelf = Shelf::new(connection);
    let replies = ids.iter().map(|id| lease_one(connection, known, &mut shelf, *id, lease)).collect();
    shelf.close(lease.now)?;
    replies
}

/// Prolongs leases.
pub(super) fn extend(connection: &Connection, held: &[(ChunkId, u32)], lease: Lease) -> Done<()> {
    let sql =
        "UPDATE chunks SET lease_until = ?4 WHERE id = ?1 AND epoch = ?2 AND instance = ?3 AND state = 1";
    let (instance, until) = (int(lease.instance), lease.until.as_millis());
    let extend_one =
        |(id, epoch): &(ChunkId, u32)| run(connection, sql, params![int(id.raw()), epoch, instance, until]);
    for one in held {
        match extend_one(one) {
            Err(fault) if fault.is_damage() => damage::note("chunks", int(one.0.raw()), &fault),
            done => drop(done?),
        }
    }
    Ok(())
}

/// Gives back chunks of which nothing was sent.
pub(super) fn release(
    connection: &Connection,
    held: &[(ChunkId, u32)],
    due_at: Timestamp,
) -> Done<Vec<Ticket>> {
    let mut shelf = Shelf::new(connection);
    let mut tickets = Vec::new();
    for (id, epoch) in held {
        let chunk = chunks::find(connection, *id)?;
        let chunk = chunk.filter(|chunk| chunk.state == ChunkState::Leased && chunk.epoch == *epoch);
        if let Some(chunk) = chunk {
            tickets.extend(queue_again(connection, &mut shelf, chunk, due_at, false)?);
        }
    }
    shelf.close(due_at)?;
    Ok(tickets)
}

/// Ends a lease without a settlement: the chunk is queued again, or ends with its campaign.
///
/// `unsettled` says that it may have been sent: it is ambiguous from then on and counted as a possible duplicate.
pub(super) fn queue_again(
    connection: &Connection,
    shelf: &mut Shelf<'_>,
    mut chunk: Chunk,
    due_at: Timestamp,
    unsettled: bool,
) -> Done<Option<Ticket>> {
    let count = chunk.count as u64;
    let books = shelf.open(chunk.campaign, chunk.lane.provider)?;
    books.release(count, unsettled)?;
    chunk.ambiguous |= unsettled;
    chunk.due_at = due_at;
    chunks::write_queued(connection, chunk.id, due_at, chunk.ambiguous)?;
    if let Some(verdict) = shelf.verdict(chunk.campaign, chunk.campaign_state, chunk.lane.provider)? {
        campaigns::end_chunk(connection, shelf, &chunk, verdict, due_at)?;
    }
    Ok(chunk.is_running().then(|| chunk.ticket()))
}

fn lease_one(
    connection: &Connection,
    known: &Known<'_>,
    shelf: &mut Shelf<'_>,
    id: ChunkId,
    lease: Lease,
) -> Done<LeaseReply> {
    let chunk = chunks::find(connection, id)?.filter(|chunk| chunk.state == ChunkState::Queued);
    let Some(chunk) = chunk else { return Ok(LeaseReply::Void) };
    if let Some(verdict) = shelf.verdict(chunk.campaign, chunk.campaign_state, chunk.lane.provider)? {
        campaigns::end_chunk(connection, shelf, &chunk, verdict, lease.now)?;
        return Ok(LeaseReply::Void);
    }
    if chunk.campaign_state != CampaignState::Running {
        return Ok(LeaseReply::Paused);
    }
    let (devices, fates, tokens) = look_up(connection, known.ahead, &chunk, lease.now)?;
    write(connection, &chunk, lease)?;
    let books = shelf.open(chunk.campaign, chunk.lane.provider)?;
    books.lease(chunk.count as u64)?;
    Ok(LeaseReply::Leased(Box::new(LeasedChunk {
        id,
        epoch: next_epoch(&chunk)?,
        message: messages::require(known.messages, connection, chunk.campaign.into())?,
        provider: chunk.lane.provider,
        attempt: chunk.attempt,
        ambiguous: chunk.ambiguous,
        devices,
        fates,
        tokens,
        tally: books.ledger().tally,
    })))
}

fn next_epoch(chunk: &Chunk) -> Done<u32> {
    chunk.epoch.checked_add(1).ok_or_else(|| damaged("a chunk leased too often"))
}

fn write(connection: &Connection, chunk: &Chunk, lease: Lease) -> Done<()> {
    let sql = "UPDATE chunks SET state = 1, epoch = ?2, instance = ?3, lease_until = ?4, changed_at = ?5 WHERE id = ?1";
    let (id, epoch, now) = (int(chunk.id.raw()), next_epoch(chunk)?, lease.now.as_millis());
    run(connection, sql, params![id, epoch, int(lease.instance), lease.until.as_millis(), now])?;
    if !chunk.campaign_started {
        let sql = "UPDATE campaigns SET started_at = ?2 WHERE id = ?1 AND started_at IS NULL";
        run(connection, sql, [int(chunk.campaign.raw()), now])?;
    }
    Ok(())
}

/// Finds out who is in a chunk and about each of them: gone, collapsed, or the token.
fn look_up(
    connection: &Connection,
    ahead: &ReadAhead,
    chunk: &Chunk,
    now: Timestamp,
) -> Done<(Vec<DeviceId>, Vec<Fate>, TokenList)> {
    let seen = ahead.take(chunk.id).filter(|seen| seen.devices.len() == chunk.count);
    let (devices, tokens) = match seen {
        Some(Seen { devices, tokens }) => (devices, Some(tokens)),
        None => (chunks::devices(connection, chunk.id, chunk.count)?, None),
    };
    let collapsed = collapse::collapsed(connection, chunk, &devices, now)?;
    if let Some(tokens) = tokens.filter(|_| collapsed.is_empty()) {
        return Ok((devices, vec![Fate::Send; chunk.count], tokens));
    }
    let (fates, tokens) = fates(connection, chunk, &devices, &collapsed)?;
    Ok((devices, fates, tokens))
}

/// Finds out about each device: gone, collapsed, or its token.
fn fates(
    connection: &Connection,
    chunk: &Chunk,
    devices: &[DeviceId],
    collapsed: &[bool],
) -> Done<(Vec<Fate>, TokenList)> {
    let mut fates = vec![Fate::Gone; devices.len()];
    let mut tokens = TokenList::with_capacity(devices.len());
    let mut at = 0;
    read_tokens(connection, chunk, devices, |device, token| {
        while devices.get(at).is_some_and(|one| *one < device) {
            at += 1;
        }
        if devices.get(at) != Some(&device) {
            return;
        }
        if collapsed.get(at) == Some(&true) {
            fates[at] = Fate::Collapsed;
        } else {
            fates[at] = Fate::Send;
            tokens.push(token);
        }
    })?;
    Ok((fates, tokens))
}

/// Reads the tokens of unretired devices in order of id.
fn read_tokens(
    connection: &Connection,
    chunk: &Chunk,
    devices: &[DeviceId],
    mut each: impl FnMut(DeviceId, &str),
) -> Done<()> {
    let sql =
        "SELECT key, token FROM devices WHERE key BETWEEN ?1 AND ?2 AND retired_at IS NULL ORDER BY key";
    let mut statement = connection.prepare_cached(sql)?;
    let mut read = |first: DeviceId, last: DeviceId| -> Done<()> {
        let mut rows = statement.query([chunk.fleet.bound(first), chunk.fleet.bound(last)])?;
        while let Some(row) = rows.next()? {
            // A token that is none makes its device one that is gone.
            let key = row.get(0)?;
            match row.get_ref(1)?.as_str() {
                Ok(token) => each(device_of(key), token),
                Err(_) => damage::note("devices", key, &damaged("a token that is no text")),
            }
        }
        Ok(())
    };
    let span = chunk.last.raw().saturating_sub(chunk.first.raw());
    if span / SPREAD_MAX_RATIO <= devices.len() as u64 {
        return read(chunk.first, chunk.last);
    }
    devices.iter().try_for_each(|device| read(*device, *device))
}
