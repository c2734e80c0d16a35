//! What waits for the gateway's devices, and what they confirm.

use async_trait::async_trait;
use stentor_core::campaign::CampaignState;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ledger;
use stentor_core::ports::store::{PendingDelivery, Receipt, ReceiptStore, StoreError};
use stentor_core::time::Timestamp;

use super::MemoryStore;
use super::state::{CampaignRow, Tables};

#[async_trait]
impl ReceiptStore for MemoryStore {
    async fn pending(
        &self,
        devices: &[(AppId, DeviceId)],
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Vec<PendingDelivery>>, StoreError> {
        let state = self.lock();
        Ok(devices.iter().map(|asked| state.pending(*asked, limit, now)).collect())
    }

    async fn receive(&self, receipts: Vec<Receipt>, now: Timestamp) -> Result<Vec<bool>, StoreError> {
        ledger::receive(&mut *self.lock(), &receipts, now)
    }
}

impl Tables {
    fn pending(
        &self,
        (app, device): (AppId, DeviceId),
        limit: usize,
        now: Timestamp,
    ) -> Vec<PendingDelivery> {
        let is_live = |row: &&CampaignRow| {
            let campaign = &row.campaign;
            campaign.app == app && campaign.expires_at > now && campaign.state != CampaignState::Canceled
        };
        let live = self.campaigns.values().filter(is_live);
        live.filter_map(|row| self.awaited(row, device)).take(limit).collect()
    }

    /// Finds the delivery of a campaign that a device of the gateway may still confirm.
    fn awaited(&self, row: &CampaignRow, device: DeviceId) -> Option<PendingDelivery> {
        let mut chunks = self.chunks_of(row, device);
        let found = chunks.find(|(chunk, at)| {
            chunk.facts.lane.provider == ProviderKind::Gateway
                && chunk.records.get(*at).is_some_and(|record| record.awaits_receipt())
        });
        let (message, expires_at) = (row.message.id, row.campaign.expires_at);
        let is_paused = row.campaign.state == CampaignState::Paused;
        found.map(|(chunk, _)| PendingDelivery { message, chunk: chunk.facts.id, expires_at, is_paused })
    }
}
