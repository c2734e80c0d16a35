//! When a newer message takes the place of an older one with the same collapse key.

use crate::campaign::CampaignState;
use crate::chunk::ChunkState;
use crate::delivery::{DeliveryState, Record};
use crate::outcome::Reason;

/// What a newer message is to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// It waits, is on its way, or may have arrived: it takes the place of what is older.
    Replaces,
    /// It was given up before anything was sent.
    Over,
    /// It goes on in another chunk, which decides.
    GoesOn,
}

impl Precedence {
    /// Returns what a message is to the devices of one of its chunks, if that is the same for all; `is_over` says that the
    /// message is too late. Otherwise each device's record says it.
    #[must_use]
    pub const fn of_chunk(state: ChunkState, is_over: bool) -> Option<Self> {
        match state {
            ChunkState::Queued if is_over => Some(Self::Over),
            ChunkState::Queued | ChunkState::Leased => Some(Self::Replaces),
            ChunkState::Settled | ChunkState::Quarantined => None,
        }
    }

    /// Returns what a message is to a device, by the record of a chunk that is settled.
    #[must_use]
    pub fn of_record(record: Record) -> Self {
        match record.state() {
            DeliveryState::Queued => Self::GoesOn,
            DeliveryState::Sending | DeliveryState::Accepted => Self::Replaces,
            _ if record.is_ambiguous() => Self::Replaces,
            _ => Self::Over,
        }
    }
}

/// Returns whether a message may take the place of older ones at a provider: it was neither canceled nor stopped there.
#[must_use]
pub fn may_replace(state: CampaignState, stop: Option<Reason>) -> bool {
    state != CampaignState::Canceled && stop.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_or_may_have_arrived_replaces_and_what_was_never_sent_does_not() {
        let of = |state, ambiguous| Precedence::of_record(Record::new(state, Reason::None, ambiguous));
        assert_eq!(of(DeliveryState::Accepted, false), Precedence::Replaces);
        assert_eq!(of(DeliveryState::Queued, true), Precedence::GoesOn);
        for state in DeliveryState::ALL.iter().copied().filter(|state| state.is_final()) {
            let replaces = of(state, false) == Precedence::Replaces;
            assert_eq!(replaces, state == DeliveryState::Accepted, "{state}");
            assert_eq!(of(state, true), Precedence::Replaces, "{state}");
        }
        assert_eq!(Precedence::of_chunk(ChunkState::Queued, true), Some(Precedence::Over));
        assert_eq!(Precedence::of_chunk(ChunkState::Leased, true), Some(Precedence::Replaces));
        assert!(!may_replace(CampaignState::Canceled, None));
        assert!(!may_replace(CampaignState::Running, Some(Reason::PayloadRefused)));
        assert!(may_replace(CampaignState::Finished, None));
    }
}
