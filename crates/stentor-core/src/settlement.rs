//! Settlements: what one chunk's outcomes mean, as a value for the store to write in one transaction.

use crate::campaign::Stop;
use crate::delivery::{DeliveryState, Record};
use crate::device::PushToken;
use crate::id::{ChunkId, DeviceId};
use crate::outcome::Reason;
use crate::time::Timestamp;

/// What is to be done about a device's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenChange {
    /// The token is dead; the device is kept when it was registered again after `since` or after the lease, when the
    /// token was read.
    Retire {
        /// The device.
        device: DeviceId,
        /// Why the token is dead.
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
    /// The instant of the settlement.
    pub now: Timestamp,
    /// One for each position; `Queued` exactly at the positions of the children and of what is awaited.
    pub records: Vec<Record>,
    /// Attempts at the push service; what was certainly not written to it is none.
    pub attempts: u32,
    /// Token hygiene.
    pub tokens: Vec<TokenChange>,
    /// What is tried again.
    pub children: Vec<Child>,
    /// Ascending positions whose answers are still waited for: they go on as a chunk of their own, leased as this one is,
    /// and are settled by themselves.
    pub awaited: Vec<u32>,
    /// Set when the campaign must end at the chunk's provider.
    pub stop: Option<Stop>,
}

impl Settlement {
    /// Ends what would have been tried again, because its campaign has ended meanwhile; what is on its way is past recall.
    #[must_use]
    pub fn without_children(mut self, state: DeliveryState, reason: Reason) -> Self {
        for at in self.children.iter().flat_map(|child| &child.positions) {
            if let Some(record) = self.records.get_mut(*at as usize) {
                *record = Record::new(state, reason, record.is_ambiguous());
            }
        }
        self.children.clear();
        self
    }

    /// Returns the settlement of a whole chunk, given that of its answered positions alone: position i of this one is
    /// `answered[i]` there, and `awaited` are all others. Both ascend.
    #[must_use]
    pub fn spread(self, answered: &[u32], awaited: Vec<u32>, ambiguous: bool) -> Self {
        let waits = Record::new(DeliveryState::Queued, Reason::None, ambiguous);
        let mut records = vec![waits; answered.len() + awaited.len()];
        for (at, record) in answered.iter().zip(&self.records) {
            if let Some(place) = records.get_mut(*at as usize) {
                *place = *record;
            }
        }
        let place = |at: u32| answered.get(at as usize).copied().unwrap_or(u32::MAX);
        let moved =
            |child: Child| Child { positions: child.positions.into_iter().map(place).collect(), ..child };
        let children = self.children.into_iter().map(moved).collect();
        Self { records, children, awaited, ..self }
    }

    /// Returns whether positions, records and children agree for a chunk of `count` devices.
    #[must_use]
    pub fn is_coherent(&self, count: usize) -> bool {
        let mut positions: Vec<_> =
            self.children.iter().flat_map(|child| &child.positions).chain(&self.awaited).copied().collect();
        // Sorted and then compared one by one, so that a position named twice is found, too.
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
            awaited: Vec::new(),
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
    fn what_is_awaited_lies_between_what_was_answered() {
        let whole = settlement(vec![1]).spread(&[1, 3], vec![0, 2], false);
        assert!(whole.is_coherent(4));
        let states: Vec<_> = whole.records.iter().map(|record| record.state()).collect();
        assert_eq!(states[1], DeliveryState::Accepted);
        assert!([0, 2, 3].iter().all(|at| states[*at] == DeliveryState::Queued));
        assert_eq!((&whole.children[0].positions, &whole.awaited), (&vec![3], &vec![0, 2]));
    }

    #[test]
    fn an_ended_campaign_ends_no_delivery_that_is_on_its_way() {
        let whole = settlement(vec![1]).spread(&[1, 3], vec![0, 2], false);
        let ended = whole.without_children(DeliveryState::Canceled, Reason::CampaignCanceled);
        assert!(ended.is_coherent(4));
        assert_eq!(ended.records[3].state(), DeliveryState::Canceled);
        assert_eq!(ended.records[0].state(), DeliveryState::Queued);
    }

    #[test]
    fn an_ended_campaign_ends_its_retries_and_keeps_their_ambiguity() {
        let ended = settlement(vec![1]).without_children(DeliveryState::Canceled, Reason::CampaignCanceled);
        assert!(ended.is_coherent(2));
        assert_eq!(ended.records[1], Record::new(DeliveryState::Canceled, Reason::CampaignCanceled, true));
    }
}
