//! What is given to a device, and the way of what was settled to those that are connected.

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
    /// The message; its id tells a repeat.
    pub message: Arc<Message>,
    /// The chunk that it was settled in.
    pub chunk: ChunkId,
}

/// Hands what was settled to the devices that are connected, until nothing more can come.
pub(crate) async fn run(
    (registry, parked): (Arc<SessionRegistry>, Arc<ParkedDeliveries>),
    held: Arc<HeldMessages>,
    messages: Arc<AcceptedMessages>,
    mut settled: mpsc::Receiver<SettledChunk>,
) {
    while let Some(chunk) = settled.recv().await {
        // Before anybody looks: sessions that are sent to the ledger find the message here, and need not read it.
        messages.note(&chunk.message);
        if chunk.message.spec.collapse_key.is_some() {
            // It may take the place of one that is known to wait.
            parked.forget(&chunk.devices);
        }
        give(&registry, &held, &chunk);
        // A campaign's chunks come one after the other: the sessions must have their turn between them.
        tokio::task::yield_now().await;
    }
}

fn give(registry: &SessionRegistry, held: &HeldMessages, settled: &SettledChunk) {
    let delivery = PendingMessage { message: Arc::clone(&settled.message), chunk: settled.chunk };
    for session in registry.connected(&settled.devices) {
        match settled.is_certain {
            true => session.offer(&delivery, held),
            // Whether the device may have had it already is known to the ledger.
            false => session.look_again(),
        }
    }
}
