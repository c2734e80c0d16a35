//! The reads of a device that connects: its registration, its channels and its waiting deliveries.

use std::collections::BTreeMap;
use std::sync::Arc;

use stentor_core::device::{Device, ProviderKind, PushToken};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{Channel, GatewayStore, PendingDelivery, ReceiptStore, StoreError};

use crate::batched_reads::BatchedRead;
use crate::limits::PENDING_MAX_COUNT;

/// Reads the waiting deliveries of devices, of each at most one more than the limit.
pub(crate) struct PendingRead {
    pub(crate) store: Arc<dyn ReceiptStore>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl BatchedRead for PendingRead {
    type Key = (AppId, DeviceId);
    type Found = Vec<PendingDelivery>;

    async fn read(&self, devices: &[Self::Key]) -> Result<Vec<Self::Found>, StoreError> {
        // One more than the limit, to detect an excess.
        self.store.pending(devices, PENDING_MAX_COUNT + 1, self.clock.now()).await
    }
}

/// Reads the devices that have tokens of the gateway.
pub(crate) struct HolderRead {
    pub(crate) store: Arc<dyn GatewayStore>,
}

impl BatchedRead for HolderRead {
    type Key = (AppId, PushToken);
    type Found = Option<Device>;

    async fn read(&self, keys: &[Self::Key]) -> Result<Vec<Self::Found>, StoreError> {
        let mut by_app: BTreeMap<AppId, (Vec<usize>, Vec<PushToken>)> = BTreeMap::new();
        for (place, (app, token)) in keys.iter().enumerate() {
            let (places, tokens) = by_app.entry(*app).or_default();
            places.push(place);
            tokens.push(token.clone());
        }
        let mut holders = vec![None; keys.len()];
        for (app, (places, tokens)) in by_app {
            let found = match self.store.holders(app, ProviderKind::Gateway, &tokens).await {
                // The app is gone, and its devices with it.
                Err(StoreError::NotFound(_)) => continue,
                found => found?,
            };
            for (place, holder) in places.into_iter().zip(found) {
                holders[place] = holder;
            }
        }
        Ok(holders)
    }
}

/// Reads the channels of programs.
pub(crate) struct ChannelRead {
    pub(crate) store: Arc<dyn GatewayStore>,
}

impl BatchedRead for ChannelRead {
    type Key = String;
    type Found = Vec<Channel>;

    async fn read(&self, agents: &[String]) -> Result<Vec<Self::Found>, StoreError> {
        self.store.channels(agents).await
    }
}
