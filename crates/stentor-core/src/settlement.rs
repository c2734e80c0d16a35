//! Settlements: the consequences of one chunk's outcomes, as a value that the store writes in one transaction.

use crate::campaign::Stop;
use crate::delivery::{DeliveryState, Record};
use crate::device::PushToken;
use crate::id::{ChunkId, DeviceId};
use crate::outcome::Reason;
use crate::time::Timestamp;

/// A change of a device's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenChange {
    /// The token is dead. The device stays if it was registered again after `since`, or after the lease, when the token was read.
    Retire {
        /// The device.
        device: DeviceId,
        /// The reason.
        reason: Reason,
        /// Time since which the push service considers it dead; `None` means the time of the lease, when the token was read.
        since: Option<Timestamp>,
    },
    /// The device has a new token; if another device of the app already has this token, this device is retired.
    Replace {
        /// The device.
        device: DeviceId,
        /// Its new token.
        token: PushToken,
    },
}

/// Positions of a chunk that continue together in a child chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Ascending positions in the parent.
    pub positions: Vec<u32>,
    /// Earliest time of the lease.
    pub due_at: Timestamp,
    /// Number of the next attempt (the first attempt is 1).
    pub attempt: u16,
    /// True if an earlier attempt may have reached the device unnoticed.
    pub ambiguous: bool,
}

/// The consequences of one leased chunk's outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The chunk.
    pub chunk: ChunkId,
    /// The epoch of the lease under which it was sent; a later lease makes this settlement void.
    pub epoch: u32,
    /// Time of the settlement.
    pub now: Timestamp,
    /// One record for each position; `Queued` exactly at the positions of the children and of the awaited deliveries.
    pub records: Vec<Record>,
    /// Attempts at the push service; deliveries that were certainly not written to it are not counted.
    pub attempts: u32,
    /// Changes of tokens.
    pub tokens: Vec<TokenChange>,
    /// Deliveries to be retried.
    pub children: Vec<Child>,
    /// Ascending positions without an answer yet: they continue as a chunk of their own under the same lease, and are settled separately.
    pub awaited: Vec<u32>,
    /// Set when the campaign must end at the chunk's provider.
    pub stop: Option<Stop>,
}

impl Settlement {
    /// Ends the deliveries that would have been retried, because their campaign has ended in the meantime. Deliveries in flight cannot be
    /// recalled.
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

    /// Returns the settlement of a whole chunk, given the settlement of its answered positions alone: position i of `self` is `answered[i]`
    /// in the result, and `awaited` are all others. Both ascend.
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

    /// Returns true if positions, records and children agree for a chunk of `count` devices.
    #[must_use]
    pub fn is_coherent(&self, count: usize) -> bool {
        let mut positions: Vec<_> =
            self.children.iter().flat_map(|child| &child.positions).chain(&self.awaited).copied().collect();
        // Sorted and then compared one by one, so that a repeated position is found as well.
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
