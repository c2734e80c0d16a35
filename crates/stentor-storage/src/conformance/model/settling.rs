//! The answers of a push service, and the settlements that result.

use std::time::Duration;

use stentor_core::campaign::Stop;
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{LeaseTerms, LeasedChunk, SendDecision, SettleReply};
use stentor_core::settlement::{Child, Settlement, TokenChange};
use stentor_core::time::Timestamp;

use super::expected::draw;
use super::world::{HeldLease, World};
use crate::conformance::scene::{accept_all, awaited_chunk, lease_of};

impl World<'_> {
    pub(super) async fn settle(&mut self, which: usize, how: u8) {
        if self.held.is_empty() {
            return;
        }
        let HeldLease { chunk, until } = self.held.remove(which % self.held.len());
        let given = answered(&chunk, Some(how), self.now());
        if !given.children.is_empty() {
            self.reach("children");
        }
        if given.stop.is_some() {
            self.reach("a stop");
        }
        let reply = self.store().settle(vec![given.clone()]).await.expect("settled").remove(0);
        let SettleReply::Settled { tickets: children, awaited } = reply else {
            panic!("a lease that holds was lost")
        };
        assert_eq!(awaited.is_some(), !given.awaited.is_empty());
        if let Some(awaited) = awaited {
            self.reach("an awaited chunk");
            self.held.push(HeldLease { chunk: awaited_chunk(&chunk, awaited, &given.awaited), until });
        }
        self.expected.settled(&chunk, &given, how);
        self.show(&children.len());
        self.publish(children);
        self.lost.push(chunk);
    }

    /// Makes a call that must change nothing, or releases a chunk.
    pub(super) async fn disturb(&mut self, which: usize, how: u8) {
        match how % 3 {
            0 => self.settle_stale(which).await,
            1 => self.release(which).await,
            _ => self.extend().await,
        }
    }

    async fn settle_stale(&mut self, which: usize) {
        let Some(chunk) = super::world::pick(&self.lost, which) else { return };
        let given = accept_all(chunk, self.now());
        let reply = self.store().settle(vec![given]).await.expect("asked").remove(0);
        assert_eq!(reply, SettleReply::Stale, "a lost lease settled something");
        self.reach("a stale settlement");
    }

    async fn release(&mut self, which: usize) {
        if self.held.is_empty() {
            return;
        }
        let HeldLease { chunk, .. } = self.held.remove(which % self.held.len());
        let back = self.store().release(&[chunk.lease()], self.now()).await.expect("given back");
        self.reach("a chunk given back");
        self.publish(back);
        self.lost.push(chunk);
    }

    async fn extend(&mut self) {
        let now = self.now();
        let lease = LeaseTerms { until: now.plus(Duration::from_secs(90)), ..lease_of(self.instance, now) };
        let held: Vec<_> = self.held.iter().map(|held| held.chunk.lease()).collect();
        self.store().extend(&held, lease).await.expect("prolonged");
        self.held.iter_mut().for_each(|held| held.until = lease.until);
    }
}

/// Creates the settlement of a leased chunk with answers drawn from `how`; without it all are accepted.
pub(super) fn answered(chunk: &LeasedChunk, how: Option<u8>, now: Timestamp) -> Settlement {
    let mut given = accept_all(chunk, now);
    let late = chunk.message.is_expired(now);
    let (mut again, mut unknown) = (Vec::new(), Vec::new());
    let awaits = how.is_some_and(|how| how % 3 == 0);
    for (at, decision) in chunk.decisions.iter().enumerate() {
        let draw = how.map_or(7, |how| draw(how, at) % 8);
        let (state, reason) = match (decision, draw) {
            (SendDecision::Gone, _) => (DeliveryState::Canceled, Reason::DeviceGone),
            (SendDecision::Collapsed, _) => (DeliveryState::Collapsed, Reason::ReplacedByNewer),
            (SendDecision::Send, _) if late => (DeliveryState::Expired, Reason::TtlPassed),
            (SendDecision::Send, 0) => (DeliveryState::Rejected, Reason::Unregistered),
            (SendDecision::Send, 1) => (DeliveryState::Failed, Reason::AttemptsExhausted),
            (SendDecision::Send, 2) => (DeliveryState::Queued, Reason::Unavailable),
            (SendDecision::Send, 4) if awaits => (DeliveryState::Queued, Reason::None),
            (SendDecision::Send, 3) => (DeliveryState::Queued, Reason::Unanswered),
            (SendDecision::Send, _) => (DeliveryState::Accepted, Reason::None),
        };
        if (state, reason) == (DeliveryState::Queued, Reason::None) {
            given.awaited.push(at as u32);
        }
        match reason {
            Reason::Unavailable => again.push(at as u32),
            Reason::Unanswered => unknown.push(at as u32),
            Reason::Unregistered => {
                let device = chunk.devices[at];
                given.tokens.push(TokenChange::Retire { device, reason, since: None });
            }
            _ => {}
        }
        given.records[at] = Record::new(state, reason, chunk.ambiguous || reason == Reason::Unanswered);
    }
    given.attempts = if late { 0 } else { chunk.tokens.len() as u32 };
    for (positions, ambiguous) in [(again, chunk.ambiguous), (unknown, true)] {
        if !positions.is_empty() {
            let due_at = now.plus(Duration::from_secs(how.map_or(0, u64::from) % 15));
            given.children.push(Child { positions, due_at, attempt: chunk.attempt + 1, ambiguous });
        }
    }
    if how.is_some_and(|how| how >= 250) {
        given.stop =
            Some(Stop { reason: Reason::PayloadRefused, detail: "refused for everybody".to_owned() });
    }
    given
}
