//! The end of a run: everything is brought to its end, and the final states are read.

use std::collections::BTreeMap;

use crate::conformance::PlainChanges;
use stentor_core::campaign::{CampaignAction, CampaignState, Tally};
use stentor_core::delivery::DeliveryState;
use stentor_core::device::ProviderKind;
use stentor_core::id::MessageId;
use stentor_core::ports::store::{AttemptFilter, AttemptRecord, Expansion, SettleReply};

use super::settling::answered;
use super::world::{CHUNK_MAX_DEVICES, HeldLease, World};

/// More rounds than any script can need.
const ROUNDS_MAX_COUNT: usize = 100;

impl World<'_> {
    /// Brings all campaigns to their end.
    pub(super) async fn drain(&mut self) {
        for message in self.messages.clone() {
            if self.ledger(message).await.campaign.state == CampaignState::Paused {
                let resumed = self.store().act(self.app, message.into(), CampaignAction::Resume, self.now());
                let (_, tickets) = resumed.await.expect("resumed");
                self.publish(tickets);
            }
        }
        for _ in 0..ROUNDS_MAX_COUNT {
            self.round().await;
            if self.is_over().await {
                return;
            }
        }
        panic!("campaigns are stuck");
    }

    async fn round(&mut self) {
        self.wait(31).await;
        let how = Expansion { chunk_max_devices: CHUNK_MAX_DEVICES, max_chunks: 100, now: self.now() };
        for task in self.store().producers().await.expect("listed") {
            let step = self.store().expand(task, how).await.expect("expanded");
            self.publish(step.tickets);
        }
        self.lease(1_000).await;
        for HeldLease { chunk, .. } in std::mem::take(&mut self.held) {
            let given = answered(&chunk, None, self.now());
            let reply = self.store().settle(vec![given.clone()]).await.expect("settled").remove(0);
            let SettleReply::Settled { tickets: children, .. } = reply else {
                panic!("a lease that holds was lost")
            };
            self.expected.settled(&chunk, &given, 0);
            self.publish(children);
        }
    }

    async fn is_over(&self) -> bool {
        for message in &self.messages {
            let ledger = self.ledger(*message).await;
            let has_ended = ledger.campaign.state.is_ended() && ledger.campaign.ended_at.is_some();
            if !has_ended {
                return false;
            }
            assert_eq!(ledger.total().open(), 0, "an ended campaign has open deliveries");
        }
        true
    }

    /// Reads the history of every device: each delivery is in one state, and all together make the books.
    pub(super) async fn check_histories(&mut self) {
        for message in self.messages.clone() {
            let mut tallies: BTreeMap<ProviderKind, (Tally, u64)> = BTreeMap::new();
            for device in self.known.clone() {
                let attempts = self
                    .store()
                    .attempts(self.app, device, AttemptFilter::Message(message))
                    .await
                    .expect("a delivery");
                let Some(last) = last(message, &attempts) else { continue };
                self.expected.check_end((message, device), last.record.state(), last.record.is_ambiguous());
                let (tally, ambiguous) = tallies.entry(last.provider).or_default();
                *tally.of(last.record.state()) += 1;
                *ambiguous += u64::from(last.record.is_ambiguous());
            }
            for books in self.ledger(message).await.providers {
                let (tally, ambiguous) = tallies.remove(&books.provider).unwrap_or_default();
                assert_eq!((books.tally, books.ambiguous), (tally, ambiguous), "books of {message}");
            }
            assert!(tallies.is_empty(), "deliveries without books: {tallies:?}");
        }
    }
}

/// Returns the last attempt; all earlier ones must have been retried.
fn last(message: MessageId, attempts: &[AttemptRecord]) -> Option<&AttemptRecord> {
    let (last, before) = attempts.split_last()?;
    assert!(attempts.iter().all(|one| one.message == message));
    assert!(attempts.windows(2).all(|pair| pair[0].chunk < pair[1].chunk), "in order");
    for one in before {
        assert_eq!(one.record.state(), DeliveryState::Queued, "an attempt after the end: {attempts:?}");
    }
    assert!(last.record.state().is_final(), "not ended: {attempts:?}");
    Some(last)
}
