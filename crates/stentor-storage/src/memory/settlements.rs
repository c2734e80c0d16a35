//! Writing settlements.

use stentor_core::chunk::Ticket;
use stentor_core::device::{ProviderKind, Retirement};
use stentor_core::id::DeviceId;
use stentor_core::ledger::decide;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Awaited, SettleReply, StoreError};
use stentor_core::settlement::{Child, Settlement, TokenChange};
use stentor_core::time::Timestamp;

use super::campaigns::{NewChunk, damaged, too_few};
use super::state::{AppRow, LeaseRow, State};
use crate::FIRST_EPOCH;

impl State {
    /// Writes all settlements, or none when one of them makes no sense.
    pub(super) fn settle_all(
        &mut self,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<SettleReply>, StoreError> {
        for one in &settlements {
            let devices = self.chunks.get(&one.chunk).map(|chunk| chunk.devices.len());
            if devices.is_some_and(|count| !one.is_coherent(count)) {
                return Err(StoreError::Conflict(format!("the settlement of {} is incoherent", one.chunk)));
            }
        }
        settlements.into_iter().map(|one| self.settle(one)).collect()
    }

    fn settle(&mut self, given: Settlement) -> Result<SettleReply, StoreError> {
        let held = self.chunks.get(&given.chunk).filter(|chunk| chunk.is_leased_under(given.epoch));
        let Some((chunk, lease)) = held.and_then(|chunk| Some((chunk, chunk.lease?))) else {
            return Ok(SettleReply::Stale);
        };
        let (app, campaign, devices) = (chunk.lane.app, chunk.campaign, chunk.devices.clone());
        let provider = chunk.lane.provider;
        let row = self.row(campaign)?;
        let (given, stop) = decide(given, row.ending(provider));
        let stopped = stop.is_some();
        if let Some(stop) = stop {
            row.at(provider).books.stop(stop);
        }
        self.write(&given)?;
        let tickets = self.add_children(&given, &devices)?;
        let awaited = self.add_awaited(&given, &devices, lease)?;
        self.app_mut(app)?.change_tokens(&given, lease);
        if stopped {
            self.wind_up(campaign, Some(provider), given.now)?;
        }
        let row = self.row(campaign)?;
        row.finish_if_over(given.now);
        let tickets = if row.is_running() { tickets } else { Vec::new() };
        Ok(SettleReply::Settled { tickets, awaited })
    }

    /// Writes the records and moves the books along.
    fn write(&mut self, given: &Settlement) -> Result<(), StoreError> {
        let chunk = self.chunks.get_mut(&given.chunk).ok_or_else(|| damaged("a chunk is missing"))?;
        let row = self.campaigns.get_mut(&chunk.campaign).ok_or_else(|| damaged("a campaign is missing"))?;
        let books = &mut row.at(chunk.lane.provider).books;
        books.settle(&given.records, given.awaited.len() as u64, given.attempts).map_err(too_few)?;
        chunk.records.clone_from(&given.records);
        (chunk.lease, chunk.settled_at) = (None, Some(given.now));
        self.open.remove(&given.chunk);
        Ok(())
    }

    fn add_children(&mut self, given: &Settlement, devices: &[DeviceId]) -> Result<Vec<Ticket>, StoreError> {
        let Some(parent) = self.chunks.get(&given.chunk) else { return Ok(Vec::new()) };
        let (campaign, provider) = (parent.campaign, parent.lane.provider);
        let children: Vec<_> = given.children.iter().map(|child| of(provider, child, devices)).collect();
        children.iter().map(|child| self.add_chunk(campaign, child, given.now)).collect()
    }

    /// Lets what is awaited go on under the lease of its parent.
    fn add_awaited(
        &mut self,
        given: &Settlement,
        devices: &[DeviceId],
        lease: LeaseRow,
    ) -> Result<Option<Awaited>, StoreError> {
        let Some(parent) = self.chunks.get(&given.chunk).filter(|_| !given.awaited.is_empty()) else {
            return Ok(None);
        };
        let (campaign, provider) = (parent.campaign, parent.lane.provider);
        let (attempt, ambiguous) = (parent.attempt, parent.ambiguous);
        let child = Child { positions: given.awaited.clone(), due_at: parent.due_at, attempt, ambiguous };
        let ticket = self.add_chunk(campaign, &of(provider, &child, devices), given.now)?;
        let chunk = self.chunks.get_mut(&ticket.chunk).ok_or_else(|| damaged("a chunk is missing"))?;
        (chunk.epoch, chunk.lease) = (FIRST_EPOCH, Some(lease));
        Ok(Some(Awaited { parent: given.chunk, chunk: ticket.chunk, epoch: FIRST_EPOCH }))
    }
}

/// Returns the chunk of a child; `devices` are its parent's.
fn of(provider: ProviderKind, child: &Child, devices: &[DeviceId]) -> NewChunk {
    NewChunk {
        provider,
        devices: child.positions.iter().filter_map(|at| devices.get(*at as usize)).copied().collect(),
        attempt: child.attempt,
        ambiguous: child.ambiguous,
        due_at: child.due_at,
    }
}

impl AppRow {
    fn change_tokens(&mut self, given: &Settlement, lease: LeaseRow) {
        for change in &given.tokens {
            match change {
                TokenChange::Retire { device, reason, since } => {
                    let since = since.map_or(lease.since, |since| since.min(lease.since));
                    self.retire(*device, *reason, given.now, since);
                }
                TokenChange::Replace { device, token } => {
                    let renewed =
                        self.devices.get(device).is_none_or(|known| known.token_since > lease.since);
                    if !renewed && !self.move_token(*device, token, given.now) {
                        self.retire(*device, Reason::Unregistered, given.now, lease.since);
                    }
                }
            }
        }
    }

    /// Takes a device out of every audience, unless it was registered again after its token died.
    fn retire(&mut self, id: DeviceId, reason: Reason, at: Timestamp, since: Timestamp) {
        let known = self.devices.get_mut(&id).filter(|device| device.token_since <= since);
        if let Some(device) = known.filter(|device| device.retired.is_none()) {
            device.retired = Some(Retirement { at, reason });
        }
    }
}
