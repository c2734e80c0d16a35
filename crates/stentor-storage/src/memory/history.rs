//! What became of a device's deliveries, attempt by attempt.

use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::id::{ChunkId, DeviceId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::AttemptRecord;

use super::state::{CampaignRow, ChunkRow, State};

impl State {
    /// Lists the attempts of one campaign at a device, in order.
    pub(super) fn attempts(&self, row: &CampaignRow, device: DeviceId) -> Vec<AttemptRecord> {
        let chunks = row.chunks.iter().filter_map(|id| Some((*id, self.chunks.get(id)?)));
        chunks.filter_map(|(id, chunk)| attempt(row, id, chunk, device)).collect()
    }
}

fn attempt(row: &CampaignRow, id: ChunkId, chunk: &ChunkRow, device: DeviceId) -> Option<AttemptRecord> {
    let position = chunk.devices.binary_search(&device).ok()?;
    let open = if chunk.lease.is_some() { DeliveryState::Sending } else { DeliveryState::Queued };
    let unsettled = Record::new(open, Reason::None, chunk.ambiguous);
    let leased_at = chunk.lease.map(|lease| lease.since);
    Some(AttemptRecord {
        message: row.message.id,
        provider: chunk.lane.provider,
        chunk: id,
        attempt: chunk.attempt,
        created_at: chunk.created_at,
        at: chunk.settled_at.or(leased_at).unwrap_or(chunk.due_at),
        record: chunk.records.get(position).copied().unwrap_or(unsettled),
    })
}
