//! Receipts for senders that want to know when a device has confirmed their message. They are stored before the delivery counts as
//! confirmed. After a crash in between, the device confirms again, and the duplicate receipt is ignored.

use std::sync::Arc;

use serde_json::{Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, DeviceId, IdSource, MessageId, UpstreamId};
use stentor_core::message::Message;
use stentor_core::ports::store::Receipt;
use stentor_core::time::Timestamp;
use stentor_core::upstream::{UpstreamKind, UpstreamMessage};

use crate::identity::DeviceIdentity;
use crate::limits::UPSTREAM_TTL_MAX;

/// The field of a message's gateway override with the sender's name for it, if the sender wants a receipt.
pub const SENDER_RECEIPT_FIELD: &str = "delivery_receipt";
/// The field of a receipt with that name.
const ORIGINAL_ID: &str = "original_message_id";

/// A receipt for a sender.
#[derive(Debug, Clone)]
pub(crate) struct SenderReceipt {
    app: AppId,
    device: DeviceId,
    message: MessageId,
    name: Arc<str>,
}

/// Ended deliveries: the receipts for the ledger, and the receipts for senders.
#[derive(Debug, Default)]
pub(crate) struct EndedDeliveries {
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) wanted: Vec<SenderReceipt>,
}

/// Returns the sender's name for a message, if the sender wants a receipt.
pub(crate) fn wanted(message: &Message) -> Option<Arc<str>> {
    let own = message.spec.content.overrides.get(&ProviderKind::Gateway)?;
    own.get(SENDER_RECEIPT_FIELD)?.as_str().map(Arc::from)
}

/// Returns the sender's name for the message of a receipt.
pub(crate) fn original_id(receipt: &UpstreamMessage) -> String {
    let body: Value = serde_json::from_str(&receipt.body).unwrap_or_default();
    body[ORIGINAL_ID].as_str().unwrap_or_default().to_owned()
}

impl SenderReceipt {
    pub(crate) fn new(identity: DeviceIdentity, message: MessageId, name: Arc<str>) -> Self {
        let DeviceIdentity { app, device } = identity;
        Self { app, device, message, name }
    }

    pub(crate) const fn app(&self) -> AppId {
        self.app
    }

    /// Returns the upstream message to store; its key is the message's id, so that each delivery has one receipt.
    pub(crate) fn kept(&self, ids: &IdSource, now: Timestamp) -> UpstreamMessage {
        UpstreamMessage {
            id: UpstreamId::from_raw(ids.next(now)),
            app: self.app,
            device: self.device,
            kind: UpstreamKind::Receipt,
            key: self.message.to_string(),
            body: json!({ORIGINAL_ID: &*self.name}).to_string(),
            created_at: now,
            expires_at: now.plus(UPSTREAM_TTL_MAX),
            attempts: 0,
            dead_reason: None,
        }
    }
}
