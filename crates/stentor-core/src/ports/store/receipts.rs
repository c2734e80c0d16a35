use async_trait::async_trait;

use super::StoreError;
use crate::id::{AppId, ChunkId, DeviceId, MessageId};
use crate::outcome::Reason;
use crate::time::Timestamp;

/// What becomes of a delivery after our gateway has accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptKind {
    /// The device confirmed it.
    Delivered,
    /// It will not be given to the device any more, for a reason other than [`Reason::None`]; it stays accepted.
    Dropped(Reason),
}

/// What is to be noted of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The chunk that it was settled in.
    pub chunk: ChunkId,
    /// The device.
    pub device: DeviceId,
    /// What became of it.
    pub kind: ReceiptKind,
}

/// A delivery that was accepted and that its device has not confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingDelivery {
    /// The message.
    pub message: MessageId,
    /// The chunk that it was settled in.
    pub chunk: ChunkId,
    /// When the message expires.
    pub expires_at: Timestamp,
    /// Whether its campaign is paused: it is held back until that goes on, and may be confirmed all the same.
    pub is_paused: bool,
}

/// What the gateway asks of the store: the ledger is the mailbox of its devices.
#[async_trait]
pub trait ReceiptStore: Send + Sync {
    /// Lists what waits for devices of the gateway, reply i for device i, each in order of acceptance: deliveries that were accepted
    /// and not confirmed, of messages that have neither expired nor been canceled. At most `limit` for each, the oldest.
    async fn pending(
        &self,
        devices: &[(AppId, DeviceId)],
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Vec<PendingDelivery>>, StoreError>;

    /// Writes receipts, all in one transaction; reply i says whether receipt i changed anything. A second one for the same
    /// delivery changes nothing.
    async fn receive(&self, receipts: Vec<Receipt>, now: Timestamp) -> Result<Vec<bool>, StoreError>;
}
