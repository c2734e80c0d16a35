//! The port by which the pipeline tells what was settled, to whoever brings it to the devices.

use std::sync::Arc;

use crate::id::{ChunkId, DeviceId};
use crate::message::Message;

/// A chunk of a provider with receipts whose deliveries are accepted, on disk.
#[derive(Debug, Clone)]
pub struct SettledChunk {
    /// The chunk.
    pub chunk: ChunkId,
    /// What is to be delivered.
    pub message: Arc<Message>,
    /// To whom, ascending.
    pub devices: Vec<DeviceId>,
    /// False when it is not known which of some chunks were settled: the ledger then says what waits.
    pub is_certain: bool,
}

/// Takes what was settled to the devices that are connected. It never waits: what it cannot take is found in the ledger.
pub trait SettledFeed: Send + Sync {
    /// Is told of one chunk.
    fn settled(&self, chunk: SettledChunk);
}
