//! Leases of chunks.

use std::sync::Arc;

use crate::campaign::Tally;
use crate::chunk::{TokenList, TrafficClass};
use crate::device::ProviderKind;
use crate::id::{ChunkId, DeviceId};
use crate::message::Message;
use crate::time::Timestamp;

/// Terms of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The leasing process; one start of a server is one instance.
    pub instance: u64,
    /// End of the lease among live nodes.
    pub until: Timestamp,
    /// The current time.
    pub now: Timestamp,
    /// The class of the chunks: single messages take precedence over audiences.
    pub class: TrafficClass,
}

/// A chunk leased under an epoch. Each later lease has a larger epoch, which makes operations under older ones void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The chunk.
    pub chunk: ChunkId,
    /// Number of leases, including this one.
    pub epoch: u32,
}

/// The decision for one device at sending time; `Gone` takes precedence over `Collapsed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendDecision {
    /// To be sent; the token list has its token.
    Send,
    /// The device was removed or retired.
    Gone,
    /// A newer message of the app with the same collapse key (by [`Message::place`]), neither canceled nor stopped at the provider, has
    /// been expanded to the device, and is waiting, in flight, or may have arrived.
    Collapsed,
}

/// A chunk leased to this process: the lease is on disk, its deliveries are `sending`.
///
/// Devices, decisions and tokens are separate lists instead of one list of a struct, because that is how they are produced and consumed:
/// the store unpacks the devices or has them from a producer, and the sender's batch takes over the tokens in one allocation. A single list
/// would be allocated and filled once more for each lease, and take 16 bytes a device instead of 9.
#[derive(Debug, Clone)]
pub struct LeasedChunk {
    /// The chunk.
    pub id: ChunkId,
    /// The fence: settling under an older epoch changes nothing.
    pub epoch: u32,
    /// The message.
    pub message: Arc<Message>,
    /// The adapter that sends it.
    pub provider: ProviderKind,
    /// Number of the attempt, starting at 1.
    pub attempt: u16,
    /// True if an earlier attempt may have reached the devices unnoticed.
    pub ambiguous: bool,
    /// Its devices, ascending.
    pub devices: Vec<DeviceId>,
    /// The decision for each device.
    pub decisions: Vec<SendDecision>,
    /// Addresses of those with `SendDecision::Send`, in order.
    pub tokens: TokenList,
    /// The campaign's books at this provider at the time of the lease, with this chunk counted as `sending`.
    pub tally: Tally,
}

impl LeasedChunk {
    /// Returns its lease.
    #[must_use]
    pub const fn lease(&self) -> Lease {
        Lease { chunk: self.id, epoch: self.epoch }
    }

    /// Returns a part of the chunk under the same lease, without tokens; positions outside the chunk are skipped.
    #[must_use]
    pub fn part(&self, positions: &[u32]) -> Self {
        let (devices, decisions) = (&self.devices, &self.decisions);
        let at = || positions.iter().map(|at| *at as usize);
        Self {
            id: self.id,
            epoch: self.epoch,
            message: Arc::clone(&self.message),
            provider: self.provider,
            attempt: self.attempt,
            ambiguous: self.ambiguous,
            devices: at().filter_map(|at| devices.get(at).copied()).collect(),
            decisions: at().filter_map(|at| decisions.get(at).copied()).collect(),
            tokens: TokenList::default(),
            tally: self.tally,
        }
    }
}
