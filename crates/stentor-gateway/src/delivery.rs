//! Deliveries to devices, and the distribution of settled chunks to connected devices.

use std::sync::Arc;

use stentor_core::id::ChunkId;
use stentor_core::message::Message;
use stentor_core::ports::settled::SettledChunk;
use tokio::sync::mpsc;

use crate::accepted_messages::AcceptedMessages;
use crate::held_messages::HeldMessages;
use crate::parked_deliveries::ParkedDeliveries;
use crate::registry::SessionRegistry;

/// One message for one device.
#[derive(Debug, Clone)]
pub struct PendingMessage {
    /// The message; a repeated delivery has the same id.
    pub message: Arc<Message>,
    /// The chunk in which it was settled.
    pub chunk: ChunkId,
}

/// Distributes settled chunks to connected devices.
pub(crate) struct ChunkDistribution {
    pub(crate) registry: Arc<SessionRegistry>,
    pub(crate) parked: Arc<ParkedDeliveries>,
    pub(crate) held: Arc<HeldMessages>,
    pub(crate) messages: Arc<AcceptedMessages>,
}

impl ChunkDistribution {
    /// Distributes until the channel closes.
    pub(crate) async fn run(self, mut settled: mpsc::Receiver<SettledChunk>) {
        while let Some(chunk) = settled.recv().await {
            // Cached before any session reads: sessions sent to the ledger find the message here and need not read it.
            self.messages.note(&chunk.message);
            if chunk.message.spec.collapse_key.is_some() {
                // The message may replace one that is known to wait.
                self.parked.forget(&chunk.devices);
            }
            self.give(&chunk);
            // A campaign's chunks come in succession; the sessions must run between them.
            tokio::task::yield_now().await;
        }
    }

    fn give(&self, settled: &SettledChunk) {
        let delivery = PendingMessage { message: Arc::clone(&settled.message), chunk: settled.chunk };
        for session in self.registry.connected(&settled.devices) {
            match settled.is_certain {
                true => session.offer(&delivery, &self.held),
                // Only the ledger knows if the device already had it.
                false => session.look_again(),
            }
        }
    }
}
