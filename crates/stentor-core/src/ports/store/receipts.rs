//! The port for receipts and pending deliveries of the gateway's devices.

use async_trait::async_trait;

use super::StoreError;
use crate::id::{AppId, ChunkId, DeviceId, MessageId};
use crate::outcome::Reason;
use crate::time::Timestamp;

/// The result of a delivery that our gateway had accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptKind {
    /// The device confirmed it.
    Delivered,
    /// It is no longer sent to the device, for a reason other than [`Reason::None`]; it stays accepted.
    Dropped(Reason),
}

/// A receipt for one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The chunk in which it was settled.
    pub chunk: ChunkId,
    /// The device.
    pub device: DeviceId,
    /// The result.
    pub kind: ReceiptKind,
}

/// An accepted delivery that its device has not confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingDelivery {
    /// The message.
    pub message: MessageId,
    /// The chunk in which it was settled.
    pub chunk: ChunkId,
    /// Time at which the message expires.
    pub expires_at: Timestamp,
    /// True if its campaign is paused: it is held back until the campaign is resumed, but may still be confirmed.
    pub is_paused: bool,
}

/// Operations of the gateway: the ledger is the mailbox of its devices.
#[async_trait]
pub trait ReceiptStore: Send + Sync {
    /// Lists pending deliveries of devices of the gateway, reply i for device i, each in order of acceptance: accepted and unconfirmed
    /// deliveries of messages that have neither expired nor been canceled. At most `limit` for each device, the oldest.
    async fn pending(
        &self,
        devices: &[(AppId, DeviceId)],
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Vec<PendingDelivery>>, StoreError>;

    /// Writes receipts, all in one transaction; reply i is true if receipt i changed anything. A second receipt for the same delivery
    /// changes nothing.
    async fn receive(&self, receipts: Vec<Receipt>, now: Timestamp) -> Result<Vec<bool>, StoreError>;
}
