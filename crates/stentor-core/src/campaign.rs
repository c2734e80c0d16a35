//! Campaigns: the sending of one message to its audience, and the ledger that proves it.

use serde::{Deserialize, Serialize};

use crate::codes::codes;
use crate::delivery::{DeliveryState, Record};
use crate::device::ProviderKind;
use crate::id::{AppId, CampaignId};
use crate::outcome::Reason;
use crate::time::Timestamp;

codes! {
    /// The state of a campaign.
    CampaignState {
        /// Waits for its due time.
        Scheduled = 0, "scheduled";
        /// Expanding or sending.
        Running = 1, "running";
        /// Paused: leased chunks finish, the rest waits and ages.
        Paused = 2, "paused";
        /// Ended by its owner.
        Canceled = 3, "canceled";
        /// Stopped by the server: a push service refuses it for all devices, and no device accepted it through another one.
        Stopped = 4, "stopped";
        /// Every delivery is in its final state.
        Finished = 5, "finished";
    }
}

codes! {
    /// An action of the owner on a campaign.
    CampaignAction {
        /// Ends it for good.
        Cancel = 0, "cancel";
        /// Pauses it.
        Pause = 1, "pause";
        /// Resumes it.
        Resume = 2, "resume";
    }
}

impl CampaignState {
    /// Returns true if it will never send again.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Canceled | Self::Stopped | Self::Finished)
    }

    /// Returns the state after `action`, or `None` if the action is not valid in this state.
    ///
    /// Repeating an action is harmless. `started` is true if the due time has come before.
    #[must_use]
    pub const fn after(self, action: CampaignAction, started: bool) -> Option<Self> {
        match (self, action) {
            (Self::Scheduled | Self::Running | Self::Paused | Self::Canceled, CampaignAction::Cancel) => {
                Some(Self::Canceled)
            }
            (Self::Scheduled | Self::Running | Self::Paused, CampaignAction::Pause) => Some(Self::Paused),
            (Self::Paused, CampaignAction::Resume) if started => Some(Self::Running),
            (Self::Paused, CampaignAction::Resume) => Some(Self::Scheduled),
            (Self::Scheduled | Self::Running, CampaignAction::Resume) => Some(self),
            _ => None,
        }
    }
}

/// The cause of an early stop, at one provider or of the whole campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The reason its remaining deliveries end with.
    pub reason: Reason,
    /// A sentence for its owner.
    pub detail: String,
}

/// The sending of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Campaign {
    /// Its id; the number is the message's.
    pub id: CampaignId,
    /// The owning app.
    pub app: AppId,
    /// Its state.
    pub state: CampaignState,
    /// Time of acceptance.
    pub created_at: Timestamp,
    /// Start of sending, planned or actual.
    pub due_at: Timestamp,
    /// Nothing is sent after this instant.
    pub expires_at: Timestamp,
    /// Time of the first lease of one of its chunks.
    pub started_at: Option<Timestamp>,
    /// Time at which its last delivery ended.
    pub ended_at: Option<Timestamp>,
    /// Cause of the stop of the whole campaign; a stop at one provider is recorded in the provider's books.
    pub stop: Option<Stop>,
}

/// Number of deliveries in each state; the sum is the audience.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Deliveries that wait.
    pub queued: u64,
    /// Leased, not settled.
    pub sending: u64,
    /// Taken over by the push service.
    pub accepted: u64,
    /// Refused for good.
    pub rejected: u64,
    /// Too late.
    pub expired: u64,
    /// Replaced by a newer message.
    pub collapsed: u64,
    /// Canceled, or the device is gone.
    pub canceled: u64,
    /// Given up.
    pub failed: u64,
}

impl Tally {
    /// Adds all states.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.open()
            + self.accepted
            + self.rejected
            + self.expired
            + self.collapsed
            + self.canceled
            + self.failed
    }

    /// Adds the states that are not final.
    #[must_use]
    pub const fn open(&self) -> u64 {
        self.queued + self.sending
    }

    /// Returns the count of one state.
    pub const fn of(&mut self, state: DeliveryState) -> &mut u64 {
        match state {
            DeliveryState::Queued => &mut self.queued,
            DeliveryState::Sending => &mut self.sending,
            DeliveryState::Accepted => &mut self.accepted,
            DeliveryState::Rejected => &mut self.rejected,
            DeliveryState::Expired => &mut self.expired,
            DeliveryState::Collapsed => &mut self.collapsed,
            DeliveryState::Canceled => &mut self.canceled,
            DeliveryState::Failed => &mut self.failed,
        }
    }

    /// Moves deliveries from one state to another. Returns `None` if there are fewer than `count`, so that no sum is wrong unnoticed.
    #[must_use]
    pub fn moved(mut self, from: DeliveryState, to: DeliveryState, count: u64) -> Option<Self> {
        let source = self.of(from);
        *source = source.checked_sub(count)?;
        *self.of(to) += count;
        Some(self)
    }

    /// Settles leased deliveries: each moves from `sending` to the state in its record.
    #[must_use]
    pub fn settled(mut self, records: &[Record]) -> Option<Self> {
        self.sending = self.sending.checked_sub(records.len() as u64)?;
        for record in records {
            *self.of(record.state()) += 1;
        }
        Some(self)
    }

    /// Adds another tally.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        let mut other = *other;
        for state in DeliveryState::ALL {
            *self.of(*state) += *other.of(*state);
        }
        self
    }
}

/// The books of one campaign at one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderLedger {
    /// The provider.
    pub provider: ProviderKind,
    /// Devices expanded so far.
    pub audience: u64,
    /// True if the audience is complete; a campaign that ends early expands no more.
    pub audience_complete: bool,
    /// Their states.
    pub tally: Tally,
    /// Deliveries confirmed by the device; also counted in `accepted`.
    pub delivered: u64,
    /// Attempts at the push service so far.
    pub attempts: u64,
    /// Deliveries that ended ambiguous: a duplicate is possible.
    pub ambiguous: u64,
    /// Sum over crashes of the deliveries found leased and unsettled at recovery.
    pub duplicate_bound: u64,
    /// Cause of the stop at this provider; the other providers continue.
    pub stop: Option<Stop>,
    /// Final states by reason.
    pub reasons: Vec<ReasonCount>,
}

/// Number of deliveries that ended in a state for a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasonCount {
    /// The final state.
    pub state: DeliveryState,
    /// The reason of the state.
    pub reason: Reason,
    /// Number of deliveries.
    pub count: u64,
}

/// The books of one campaign, read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// The campaign.
    pub campaign: Campaign,
    /// One entry for each provider that has an audience or may still get one. A provider without an entry will get no deliveries.
    pub providers: Vec<ProviderLedger>,
}

impl Ledger {
    /// Adds the tallies of all providers.
    #[must_use]
    pub fn total(&self) -> Tally {
        self.providers.iter().fold(Tally::default(), |sum, one| sum.plus(&one.tally))
    }

    /// Adds the audiences of all providers.
    #[must_use]
    pub fn audience(&self) -> u64 {
        self.providers.iter().map(|one| one.audience).sum()
    }

    /// Returns true if all sums are consistent: an invariant of every snapshot.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.providers
            .iter()
            .all(|one| one.audience == one.tally.sum() && one.delivered <= one.tally.accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_state() -> impl Strategy<Value = DeliveryState> {
        (0..DeliveryState::ALL.len()).prop_map(|index| DeliveryState::ALL[index])
    }

    proptest! {
        #[test]
        fn no_move_changes_the_sum(counts in prop::array::uniform8(0..1_000_u64), from in any_state(), to in any_state(), n in 0..2_000_u64) {
            let mut tally = Tally::default();
            for (state, count) in DeliveryState::ALL.iter().zip(counts) {
                *tally.of(*state) = count;
            }
            if let Some(after) = tally.moved(from, to, n) {
                prop_assert_eq!(after.sum(), tally.sum());
            }
        }

        #[test]
        fn settling_keeps_the_sum(states in prop::collection::vec(any_state(), 0..200)) {
            let records: Vec<_> = states.iter().map(|state| Record::new(*state, Reason::None, false)).collect();
            let before = Tally { sending: 300, ..Tally::default() };
            let after = before.settled(&records).expect("enough are sending");
            prop_assert_eq!(after.sum(), 300);
        }
    }

    #[test]
    fn more_than_there_is_cannot_be_moved() {
        let tally = Tally { queued: 1, ..Tally::default() };
        assert_eq!(tally.moved(DeliveryState::Queued, DeliveryState::Sending, 2), None);
    }

    #[test]
    fn a_finished_campaign_cannot_be_canceled_and_a_canceled_one_not_resumed() {
        assert_eq!(CampaignState::Finished.after(CampaignAction::Cancel, true), None);
        assert_eq!(CampaignState::Canceled.after(CampaignAction::Resume, true), None);
        assert_eq!(
            CampaignState::Paused.after(CampaignAction::Resume, false),
            Some(CampaignState::Scheduled)
        );
    }
}
