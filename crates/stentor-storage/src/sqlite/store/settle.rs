//! Settlements: written once, under the lease that they belong to.

use rusqlite::Connection;
use stentor_core::chunk::Ticket;
use stentor_core::id::DeviceId;
use stentor_core::ledger::decide;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Awaited, SettleReply};
use stentor_core::settlement::{Child, Settlement, TokenChange};
use stentor_core::time::Timestamp;

use super::books::Shelf;
use super::chunks::{self, Chunk, ChunkState, NewChunk};
use super::{campaigns, devices};
use crate::sqlite::fault::{Done, conflict, damaged};
use crate::sqlite::query::one;
use crate::sqlite::row::time;
use stentor_core::ledger::FIRST_EPOCH;

/// Writes all settlements.
pub(super) fn all(connection: &Connection, settlements: Vec<Settlement>) -> Done<Vec<SettleReply>> {
    let mut desk = Desk { connection, shelf: Shelf::new(connection) };
    let now = settlements.iter().map(|given| given.now).max().unwrap_or_default();
    let replies = settlements.into_iter().map(|given| desk.settle(given)).collect::<Done<_>>()?;
    desk.shelf.close(now)?;
    Ok(replies)
}

struct Desk<'a> {
    connection: &'a Connection,
    shelf: Shelf<'a>,
}

impl Desk<'_> {
    fn settle(&mut self, given: Settlement) -> Done<SettleReply> {
        let Some(chunk) = chunks::find(self.connection, given.chunk)? else { return Ok(SettleReply::Stale) };
        if !given.is_coherent(chunk.count) {
            return Err(conflict(format!("the settlement of {} is incoherent", given.chunk)));
        }
        if chunk.state != ChunkState::Leased || chunk.epoch != given.epoch {
            return Ok(SettleReply::Stale);
        }
        let (campaign, provider) = (chunk.campaign, chunk.lane.provider);
        let ended = self.shelf.verdict(campaign, chunk.campaign_state, provider)?;
        let (given, stop) = decide(given, ended);
        let books = self.shelf.open(campaign, provider)?;
        books.settle(&given.records, given.awaited.len() as u64, given.attempts)?;
        // Before the parent's row forgets its lease.
        let awaited = self.add_awaited(&chunk, &given)?;
        chunks::write_records(self.connection, chunk.id, &given.records, given.now)?;
        let tickets = self.add_children(&chunk, &given)?;
        self.change_tokens(&chunk, &given)?;
        if let Some(stop) = stop {
            let at = (campaign, chunk.fleet);
            campaigns::stop(self.connection, &mut self.shelf, at, stop, given.now)?;
        }
        let tickets = if chunk.is_running() { tickets } else { Vec::new() };
        Ok(SettleReply::Settled { tickets, awaited })
    }

    /// Lets what is awaited go on under the lease of its parent.
    fn add_awaited(&self, parent: &Chunk, given: &Settlement) -> Done<Option<Awaited>> {
        if given.awaited.is_empty() {
            return Ok(None);
        }
        let devices = chunks::devices(self.connection, parent.id, parent.count)?;
        let Chunk { attempt, ambiguous, due_at, .. } = *parent;
        let child = Child { positions: given.awaited.clone(), due_at, attempt, ambiguous };
        let chunk = self.add_child(parent, &child, &devices, given.now)?.chunk;
        chunks::write_leased_like(self.connection, chunk, parent.id)?;
        Ok(Some(Awaited { parent: parent.id, chunk, epoch: FIRST_EPOCH }))
    }

    fn add_children(&self, parent: &Chunk, given: &Settlement) -> Done<Vec<Ticket>> {
        if given.children.is_empty() {
            return Ok(Vec::new());
        }
        let devices = chunks::devices(self.connection, parent.id, parent.count)?;
        given.children.iter().map(|child| self.add_child(parent, child, &devices, given.now)).collect()
    }

    fn add_child(&self, parent: &Chunk, child: &Child, devices: &[DeviceId], now: Timestamp) -> Done<Ticket> {
        let device = |at: &u32| devices.get(*at as usize).copied();
        let devices: Option<Vec<DeviceId>> = child.positions.iter().map(device).collect();
        let new = NewChunk {
            campaign: parent.campaign,
            fleet: parent.fleet,
            class: parent.lane.class,
            devices: &devices.ok_or_else(|| damaged("a child beyond its parent"))?,
            attempt: child.attempt,
            ambiguous: child.ambiguous,
            due_at: child.due_at,
            created_at: now,
            parent: Some(parent.id),
        };
        chunks::insert(self.connection, &new)
    }

    /// Retires and replaces tokens, unless they were registered again after the attempt began.
    fn change_tokens(&self, chunk: &Chunk, given: &Settlement) -> Done<()> {
        let leased_at = chunk.changed_at.unwrap_or(given.now);
        given.tokens.iter().try_for_each(|change| self.change_token(chunk, change, leased_at, given.now))
    }

    fn change_token(
        &self,
        chunk: &Chunk,
        change: &TokenChange,
        leased_at: Timestamp,
        now: Timestamp,
    ) -> Done<()> {
        let (TokenChange::Retire { device, .. } | TokenChange::Replace { device, .. }) = change;
        let Some(key) = chunk.fleet.key(*device) else { return Ok(()) };
        match change {
            TokenChange::Retire { reason, since, .. } => {
                let since = since.map_or(leased_at, |since| since.min(leased_at));
                devices::retire(self.connection, chunk.fleet, key, *reason, (since, now))
            }
            TokenChange::Replace { token, .. } => {
                let sql = "SELECT token_since FROM devices WHERE key = ?1";
                let token_since = one(self.connection, sql, [key], |row| time(row, 0))?;
                if token_since.is_none_or(|since| since > leased_at) {
                    return Ok(());
                }
                if devices::move_token(self.connection, chunk.fleet, key, token, now)? {
                    return Ok(());
                }
                let since = (leased_at, now);
                devices::retire(self.connection, chunk.fleet, key, Reason::Unregistered, since)
            }
        }
    }
}
