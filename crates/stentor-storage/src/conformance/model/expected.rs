//! The events outside of the store, as a push service has seen them.

use std::collections::{BTreeMap, BTreeSet};

use stentor_core::campaign::Ledger;
use stentor_core::delivery::DeliveryState;
use stentor_core::id::{DeviceId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{LeasedChunk, SendDecision};
use stentor_core::settlement::Settlement;

type ModelDelivery = (MessageId, DeviceId);

/// The expected state of deliveries, kept independently of the store.
#[derive(Debug, Default)]
pub(super) struct ExpectedDeliveries {
    /// The number of times that a push service accepted a delivery.
    taken: BTreeMap<ModelDelivery, u32>,
    /// Deliveries that may have been taken over unseen.
    doubtful: BTreeSet<ModelDelivery>,
    /// Deliveries in their final state.
    ended: BTreeMap<ModelDelivery, DeliveryState>,
    /// Deliveries found leased and unsettled, summed over crashes.
    bound: BTreeMap<MessageId, u64>,
}

/// Draws a number from two others; the same every time.
pub(super) fn draw(how: u8, at: usize) -> u64 {
    let mixed = (u64::from(how) << 32 | at as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
}

impl ExpectedDeliveries {
    /// Nothing is leased after its end, and a chunk is ambiguous exactly when its devices are in doubt.
    pub(super) fn check_lease(&self, chunk: &LeasedChunk) {
        for delivery in deliveries(chunk) {
            assert_eq!(self.ended.get(&delivery), None, "{delivery:?} has ended and was leased");
            let doubtful = self.doubtful.contains(&delivery);
            assert_eq!(chunk.ambiguous, doubtful, "{delivery:?} in a chunk of {:?}", chunk.devices);
        }
    }

    /// A lease ended without a settlement: the push service may have seen some of it.
    pub(super) fn lose(&mut self, chunk: &LeasedChunk, how: u8) {
        *self.bound.entry(chunk.message.id).or_default() += chunk.devices.len() as u64;
        for (at, delivery) in deliveries(chunk).enumerate() {
            self.doubtful.insert(delivery);
            if chunk.decisions[at] == SendDecision::Send && draw(how, at).is_multiple_of(2) {
                *self.taken.entry(delivery).or_default() += 1;
            }
        }
    }

    pub(super) fn settled(&mut self, chunk: &LeasedChunk, given: &Settlement, how: u8) {
        for (at, delivery) in deliveries(chunk).enumerate() {
            let record = given.records[at];
            let unknown = record.reason() == Reason::Unanswered;
            if unknown {
                self.doubtful.insert(delivery);
            }
            if record.state() == DeliveryState::Accepted || unknown && draw(how, at).is_multiple_of(3) {
                *self.taken.entry(delivery).or_default() += 1;
            }
            if record.state().is_final() {
                self.ended.insert(delivery, record.state());
            }
        }
    }

    /// Checks that the duplicate bound in the books equals the number of lost deliveries.
    pub(super) fn check_bound(&self, ledger: &Ledger) {
        let bound: u64 = ledger.providers.iter().map(|books| books.duplicate_bound).sum();
        let lost = self.bound.get(&ledger.campaign.id.into()).copied().unwrap_or(0);
        assert_eq!(bound, lost, "the bound of {}", ledger.campaign.id);
    }

    /// Checks that a delivery accepted twice is marked, that one that ended as accepted was accepted, and that the store did not change
    /// final states.
    pub(super) fn check_end(&self, delivery: ModelDelivery, state: DeliveryState, ambiguous: bool) {
        let taken = self.taken.get(&delivery).copied().unwrap_or(0);
        assert!(taken <= 1 || ambiguous, "{delivery:?} was taken over {taken} times and is not marked");
        assert!(taken >= 1 || state != DeliveryState::Accepted, "{delivery:?} was never taken over");
        assert_eq!(ambiguous, self.doubtful.contains(&delivery), "{delivery:?} {state}");
        if let Some(ended) = self.ended.get(&delivery) {
            assert_eq!(state, *ended, "{delivery:?} had ended");
        }
    }
}

fn deliveries(chunk: &LeasedChunk) -> impl Iterator<Item = ModelDelivery> {
    chunk.devices.iter().map(|device| (chunk.message.id, *device))
}
