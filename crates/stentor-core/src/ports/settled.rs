//! The port by which the pipeline hands settled deliveries to the component that brings them to the devices.

use std::sync::Arc;

use crate::id::{ChunkId, DeviceId};
use crate::message::Message;

/// A chunk with accepted deliveries, on disk, of a provider with receipts.
#[derive(Debug, Clone)]
pub struct SettledChunk {
    /// The chunk.
    pub chunk: ChunkId,
    /// The message to be delivered.
    pub message: Arc<Message>,
    /// Its devices, ascending.
    pub devices: Vec<DeviceId>,
    /// False if some of several chunks were settled, but it is unknown which: the ledger then has the pending deliveries.
    pub is_certain: bool,
}

/// Hands settled deliveries to connected devices. It never waits: deliveries that it cannot take are found in the ledger.
pub trait SettledFeed: Send + Sync {
    /// Receives one chunk.
    fn settled(&self, chunk: SettledChunk);
}
