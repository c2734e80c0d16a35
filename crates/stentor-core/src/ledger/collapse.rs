//! The rules by which a newer message replaces an older one with the same collapse key.

use crate::campaign::CampaignState;
use crate::chunk::ChunkState;
use crate::delivery::{DeliveryState, Record};
use crate::outcome::Reason;

/// The effect of a newer message on older ones for the same device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// It waits, is in flight, or may have arrived: it replaces older messages.
    Replaces,
    /// It was given up before anything was sent.
    Over,
    /// It continues in another chunk, which decides.
    GoesOn,
}

impl Precedence {
    /// Returns the effect for all devices of a chunk. `is_over` is true if the message is too late. Returns `None` if it differs by device
    /// and each device's record decides.
    #[must_use]
    pub const fn of_chunk(state: ChunkState, is_over: bool) -> Option<Self> {
        match state {
            ChunkState::Queued if is_over => Some(Self::Over),
            ChunkState::Queued | ChunkState::Leased => Some(Self::Replaces),
            ChunkState::Settled | ChunkState::Quarantined => None,
        }
    }

    /// Returns the effect for one device, from the record in a settled chunk.
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

/// Returns true if a message may replace older ones at a provider: it was neither canceled nor stopped there.
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
