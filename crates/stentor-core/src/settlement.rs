//! Settlements: what one chunk's outcomes mean, as a value for the store to write in one transaction.

use crate::campaign::Stop;
use crate::delivery::{DeliveryState, Record};
use crate::device::PushToken;
use crate::id::{ChunkId, DeviceId};
use crate::outcome::Reason;
use crate::ports::clock::Timestamp;

/// What is to be done about a device's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenChange {
    /// The token is dead; the device is kept when it was registered again after `since` or after the lease, when the
    /// token was read.
    Retire {
        /// The device.
        device: DeviceId,
        /// Why.
        reason: Reason,
        /// Since when the push service holds it dead; `None` means the time of the lease, when the token was read.
        since: Option<Timestamp>,
    },
    /// The device has a new address; when another device of the app holds that already, this one is retired.
    Replace {
        /// The device.
        device: DeviceId,
        /// Its new address.
        token: PushToken,
    },
}

/// Positions of a chunk that go on together in a child chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Ascending positions in the parent.
    pub positions: Vec<u32>,
    /// Not before.
    pub due_at: Timestamp,
    /// Number of the attempt to come (the first attempt is 1).
    pub attempt: u16,
    /// Whether an attempt so far may have reached the device unseen.
    pub ambiguous: bool,
}

/// What one leased chunk's outcomes mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The chunk.
    pub chunk: ChunkId,
    /// The lease under which it was sent; a later one makes this settlement void.
    pub epoch: u32,
    /// When.
    pub now: Timestamp,
    /// One for each position; `Queued` exactly at the positions of the children.
    pub records: Vec<Record>,
    /// Attempts at the push service; what was certainly not written to it is none.
    pub attempts: u32,
    /// Token hygiene.
    pub tokens: Vec<TokenChange>,
    /// What is tried again.
    pub children: Vec<Child>,
    /// Set when the campaign must end at the chunk's provider.
    pub stop: Option<Stop>,
}

impl Settlement {
    /// Ends what would have been tried again, because its campaign has ended meanwhile.
    #[must_use]
    pub fn without_children(mut self, state: DeliveryState, reason: Reason) -> Self {
        for record in self.records.iter_mut().filter(|record| record.state() == DeliveryState::Queued) {
            *record = Record::new(state, reason, record.is_ambiguous());
        }
        self.children.clear();
        self
    }

    /// Tells whether positions, records and children agree for a chunk of `count` devices.
    #[must_use]
    pub fn is_coherent(&self, count: usize) -> bool {
        let mut positions: Vec<_> =
            self.children.iter().flat_map(|child| child.positions.iter().copied()).collect();
        positions.sort_unstable();
        let queued = (0..).zip(&self.records).filter(|(_, record)| record.state() == DeliveryState::Queued);
        let no_sending = self.records.iter().all(|record| record.state() != DeliveryState::Sending);
        self.records.len() == count && no_sending && queued.map(|(at, _)| at).eq(positions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settlement(positions: Vec<u32>) -> Settlement {
        let now = Timestamp::from_millis(5);
        let accepted = Record::new(DeliveryState::Accepted, Reason::None, false);
        let queued = Record::new(DeliveryState::Queued, Reason::Unavailable, true);
        let child = Child { positions, due_at: now, attempt: 2, ambiguous: true };
        Settlement {
            chunk: ChunkId::from_raw(1),
            epoch: 1,
            now,
            records: vec![accepted, queued],
            attempts: 2,
            tokens: Vec::new(),
            children: vec![child],
            stop: None,
        }
    }

    #[test]
    fn queued_records_are_exactly_the_positions_of_children() {
        assert!(settlement(vec![1]).is_coherent(2));
        assert!(!settlement(vec![0]).is_coherent(2));
        assert!(!settlement(vec![]).is_coherent(2));
        assert!(!settlement(vec![1]).is_coherent(3));
    }

    #[test]
    fn an_ended_campaign_ends_its_retries_and_keeps_their_ambiguity() {
        let ended = settlement(vec![1]).without_children(DeliveryState::Canceled, Reason::CampaignCanceled);
        assert!(ended.is_coherent(2));
        assert_eq!(ended.records[1], Record::new(DeliveryState::Canceled, Reason::CampaignCanceled, true));
    }
}
