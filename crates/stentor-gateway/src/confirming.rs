//! What a device confirms otherwise than through its open session: by a request of its own, or at its return.

use std::sync::Arc;

use stentor_core::id::MessageId;
use stentor_core::ports::store::{Receipt, ReceiptKind, StoreError};

use crate::gateway::{Gateway, GatewayState};
use crate::identity::DeviceIdentity;
use crate::sender_receipts::{self, SenderReceipt};
use crate::session_state::SessionState;

impl Gateway {
    /// Notes that a device confirms exactly these messages, whether it is connected or not; it is on disk when this returns. Returns
    /// how many deliveries awaited that.
    pub async fn confirm(
        &self,
        identity: DeviceIdentity,
        messages: &[MessageId],
    ) -> Result<usize, StoreError> {
        let session = self.state().registry.get(identity.device);
        let count = self.state().confirm(identity, session.as_ref(), messages).await?;
        // Not for those of others, of which some may not be written for long.
        self.state().receipts.written(identity.device).await;
        Ok(count)
    }
}

impl GatewayState {
    /// Hands over receipts for what waits and is confirmed; returns how many.
    pub(crate) async fn confirm(
        &self,
        identity: DeviceIdentity,
        session: Option<&Arc<SessionState>>,
        messages: &[MessageId],
    ) -> Result<usize, StoreError> {
        let mut ended = match session {
            Some(session) => session.confirm_where(|message| messages.contains(&message)),
            None => self.parked.confirm(identity, messages),
        };
        if ended.receipts.len() == messages.len() {
            // It was given all of them a moment ago: nothing else is to be looked up.
            let count = ended.receipts.len();
            self.receipts.write(session, ended);
            return Ok(count);
        }
        let DeviceIdentity { app, device } = identity;
        // Its unwritten receipts would be found waiting once more.
        self.receipts.written(device).await;
        // Looked up after what the session ends: that is marked there, and no look can end it once more.
        let pending = self.pending.pending(identity).await?;
        // What the session confirms now is in no file yet, and would be found once more.
        let is_new = |chunk| !ended.receipts.iter().any(|receipt| receipt.chunk == chunk);
        let named: Vec<_> =
            pending.iter().filter(|one| messages.contains(&one.message) && is_new(one.chunk)).collect();
        let ids: Vec<MessageId> = named.iter().map(|one| one.message).collect();
        for (one, message) in named.into_iter().zip(self.messages(app, &ids).await?) {
            ended.receipts.push(Receipt { chunk: one.chunk, device, kind: ReceiptKind::Delivered });
            let wanted = message.as_deref().and_then(sender_receipts::wanted);
            ended.wanted.extend(wanted.map(|name| SenderReceipt::new(identity, one.message, name)));
        }
        if let Some(session) = session {
            session.skip(messages);
        }
        let count = ended.receipts.len();
        self.receipts.write(session, ended);
        Ok(count)
    }
}
