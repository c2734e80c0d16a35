//! What became of a device's deliveries, attempt by attempt.

use stentor_core::chunk::{ChunkState, TokenList};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::device::ProviderKind;
use stentor_core::id::{ChunkId, DeviceId};
use stentor_core::ledger::{Precedence, is_too_late, may_replace};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{AttemptRecord, ChunkRecords, SendDecision, StoreError};
use stentor_core::time::Timestamp;

use super::state::{CampaignRow, StoredChunk, Tables};

impl Tables {
    /// Lists the attempts of one campaign at a device, in order.
    pub(super) fn attempts(&self, row: &CampaignRow, device: DeviceId) -> Vec<AttemptRecord> {
        self.chunks_of(row, device).map(|(chunk, at)| attempt(chunk, at)).collect()
    }

    /// Lists chunks of one campaign with what they tell, beginning at one.
    pub(super) fn chunk_records(&self, row: &CampaignRow, from: ChunkId, max: usize) -> Vec<ChunkRecords> {
        let ids = row.chunks.iter().filter(|id| **id >= from);
        ids.filter_map(|id| self.chunks.get(id)).take(max).map(records).collect()
    }

    /// Finds out about each device of a message at a provider: gone, collapsed, or its token.
    pub(super) fn look_up(
        &self,
        row: &CampaignRow,
        provider: ProviderKind,
        devices: &[DeviceId],
        now: Timestamp,
    ) -> Result<(Vec<SendDecision>, TokenList), StoreError> {
        let (app, newer) = (self.app(row.campaign.app)?, self.newer(row, provider));
        let mut tokens = TokenList::default();
        let mut decision = |id: &DeviceId| match app.devices.get(id).filter(|device| device.retired.is_none())
        {
            None => SendDecision::Gone,
            Some(_) if newer.iter().any(|newer| self.replaces(newer, *id, now)) => SendDecision::Collapsed,
            Some(device) => {
                tokens.push(device.registration.token.expose());
                SendDecision::Send
            }
        };
        Ok((devices.iter().map(&mut decision).collect(), tokens))
    }

    /// Lists the campaigns that may take the place of one at a provider.
    fn newer(&self, row: &CampaignRow, provider: ProviderKind) -> Vec<&CampaignRow> {
        let place = |row: &CampaignRow| (row.message.place(), row.message.id);
        let is_newer = |other: &&CampaignRow| {
            let stop = other.providers.get(&provider).and_then(|at| at.books.ledger().stop.as_ref());
            other.campaign.app == row.campaign.app
                && other.message.spec.collapse_key == row.message.spec.collapse_key
                && place(other) > place(row)
                && may_replace(other.campaign.state, stop.map(|stop| stop.reason))
        };
        let has_key = row.message.spec.collapse_key.is_some();
        self.campaigns.values().filter(|_| has_key).filter(is_newer).collect()
    }

    /// Returns whether a newer message takes the place of older ones at a device: its last chunk says it.
    fn replaces(&self, newer: &CampaignRow, device: DeviceId, now: Timestamp) -> bool {
        let is_over = is_too_late(newer.campaign.due_at, newer.campaign.expires_at, now);
        self.chunks_of(newer, device).last().is_some_and(|(chunk, at)| {
            let of_record = || chunk.records.get(at).map(|record| Precedence::of_record(*record));
            let found = Precedence::of_chunk(chunk.facts.state, is_over).or_else(of_record);
            found == Some(Precedence::Replaces)
        })
    }

    /// Lists the chunks of one campaign that a device is in, in order, and where.
    pub(super) fn chunks_of(
        &self,
        row: &CampaignRow,
        device: DeviceId,
    ) -> impl Iterator<Item = (&StoredChunk, usize)> {
        let chunks = row.chunks.iter().filter_map(|id| self.chunks.get(id));
        chunks.filter_map(move |chunk| Some((chunk, chunk.devices.binary_search(&device).ok()?)))
    }
}

fn attempt(chunk: &StoredChunk, position: usize) -> AttemptRecord {
    let facts = &chunk.facts;
    AttemptRecord {
        message: facts.campaign.into(),
        provider: facts.lane.provider,
        chunk: facts.id,
        attempt: facts.attempt,
        created_at: chunk.created_at,
        at: facts.changed_at.unwrap_or(facts.due_at),
        record: chunk.records.get(position).copied().unwrap_or(unsettled(chunk)),
    }
}

fn records(chunk: &StoredChunk) -> ChunkRecords {
    let facts = &chunk.facts;
    ChunkRecords {
        chunk: facts.id,
        provider: facts.lane.provider,
        attempt: facts.attempt,
        created_at: chunk.created_at,
        at: facts.changed_at.unwrap_or(facts.due_at),
        devices: chunk.devices.clone(),
        records: Some(chunk.records.clone()).filter(|records| !records.is_empty()),
        unsettled: unsettled(chunk),
    }
}

/// Returns what is true of each device of a chunk that is not settled.
fn unsettled(chunk: &StoredChunk) -> Record {
    let is_leased = chunk.facts.state == ChunkState::Leased;
    let open = if is_leased { DeliveryState::Sending } else { DeliveryState::Queued };
    Record::new(open, Reason::None, chunk.facts.ambiguous)
}
