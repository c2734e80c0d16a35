//! Confirmations outside of an open session: by a request of the device, or at its next connection.

use std::sync::Arc;

use stentor_core::id::MessageId;
use stentor_core::ports::store::{Receipt, ReceiptKind, StoreError};

use crate::gateway::{Gateway, GatewayState};
use crate::identity::DeviceIdentity;
use crate::sender_receipts::{self, SenderReceipt};
use crate::session_state::SessionState;

impl Gateway {
    /// Records that a device confirms exactly these messages, connected or not. On return the receipts are on disk. Returns the number of
    /// deliveries that awaited confirmation.
    pub async fn confirm(
        &self,
        identity: DeviceIdentity,
        messages: &[MessageId],
    ) -> Result<usize, StoreError> {
        let session = self.state().registry.get(identity.device);
        let count = self.state().confirm(identity, session.as_ref(), messages).await?;
        // Waits only for this device: receipts of others may be delayed for a long time.
        self.state().receipts.written(identity.device).await;
        Ok(count)
    }
}

impl GatewayState {
    /// Writes receipts for the confirmed messages that are waiting; returns their number.
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
            // All of them were handed out a moment ago: no look-up is needed.
            let count = ended.receipts.len();
            self.receipts.write(session, ended);
            return Ok(count);
        }
        let DeviceIdentity { app, device } = identity;
        // Otherwise the look-up would still find deliveries with unwritten receipts.
        self.receipts.written(device).await;
        // Looked up after the session has ended its deliveries: they are marked there, and no look-up can end them again.
        let pending = self.pending_of(identity).await?;
        // Deliveries confirmed by the session just now are not on disk yet, and would be found again.
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
