//! Accepting messages and leasing their chunks.

use std::time::Duration;

use stentor_core::device::ProviderKind;
use stentor_core::id::first_number_at;
use stentor_core::ports::store::{
    Accepted, AtOnce, Idempotent, LeaseReply, LeaseTerms, NewMessage, SendDecision,
};
use stentor_core::target::Target;
use stentor_core::topic::Condition;

use super::world::{CHUNK_MAX_DEVICES, HeldLease, World, pick};
use crate::conformance::scene::{Draft, lease_of, person, topic};

impl World<'_> {
    pub(super) async fn accept(&mut self, which: usize, how: u8) {
        let Some(target) = self.target(which) else { return };
        let now = self.now();
        let due_at = if how % 8 == 7 { now.plus(Duration::from_secs(20)) } else { now };
        let ttl = if how & 8 == 0 { 100_000 } else { 60 };
        let mut draft = Draft::to(target).ttl(ttl).sent_at(now).due(due_at);
        draft.collapse_key = (how & 48 == 0).then_some("score");
        // Numbers have the time in them, as those of the server.
        let number = first_number_at(now) + self.number();
        let message = draft.message(self.app, number);
        let id = message.id;
        let (lease, providers) = (self.terms(), vec![ProviderKind::Fcm, ProviderKind::Apns]);
        let at_once = (how & 64 != 0 && due_at == now).then_some(AtOnce { lease, providers });
        let new = NewMessage { message, idempotency: None, at_once };
        let leased = match self.store().accept(vec![new]).await.remove(0).expect("accepted") {
            Idempotent::Done(Accepted::Leased(chunks)) => chunks,
            Idempotent::Done(Accepted::Waits) => Vec::new(),
            other => panic!("kept before: {other:?}"),
        };
        let started = self.store().start_due(10, CHUNK_MAX_DEVICES, now).await.expect("started");
        self.publish(started.tickets);
        self.messages.push(id);
        for chunk in leased {
            self.reach("a message sent at once");
            self.hold(HeldLease { chunk, until: lease.until });
        }
    }

    fn terms(&self) -> LeaseTerms {
        let now = self.now();
        LeaseTerms { until: now.plus(Duration::from_secs(90)), ..lease_of(self.instance, now) }
    }

    fn target(&self, which: usize) -> Option<Target> {
        let parsed = |text| Condition::parse(text).expect("a condition");
        let topics_exist = self.devices.iter().any(|(_, device)| !device.topics.is_empty());
        let id = pick(&self.devices, which / 8).map(|(id, _)| *id);
        match which % 8 {
            0 | 1 => Some(Target::Everyone),
            2 if topics_exist => Some(Target::Topic(topic("news"))),
            2 | 3 => Some(Target::Condition(parsed("!('news' in topics)"))),
            4 => Some(Target::User(person("ada"))),
            5 => id.map(Target::Device),
            _ => {
                let all: Vec<_> = self.devices.iter().map(|(id, _)| *id).step_by(1 + which % 3).collect();
                Target::Devices(all).checked().ok()
            }
        }
    }

    /// Leases due tickets in the order of a queue.
    pub(super) async fn lease(&mut self, max: usize) {
        let now = self.now();
        let due = self.tickets.iter().filter(|(_, ticket)| ticket.due_at <= now);
        let keys: Vec<_> = due.map(|(key, _)| *key).take(max).collect();
        let chunks: Vec<_> = keys.iter().map(|(_, chunk)| *chunk).collect();
        let lease = self.terms();
        let replies = self.store().lease(&chunks, lease).await.expect("asked");
        assert_eq!(replies.len(), chunks.len());
        for (key, reply) in keys.iter().zip(replies) {
            self.tickets.remove(key);
            match reply {
                LeaseReply::Leased(chunk) => self.hold(HeldLease { chunk: *chunk, until: lease.until }),
                LeaseReply::Paused => self.reach("a paused chunk asked for"),
                LeaseReply::Void => self.reach("a void chunk asked for"),
            }
        }
    }

    fn hold(&mut self, held: HeldLease) {
        let chunk = &held.chunk;
        assert!(matches!(chunk.provider, ProviderKind::Fcm | ProviderKind::Apns));
        assert_eq!(chunk.decisions.len(), chunk.devices.len());
        assert!(chunk.devices.windows(2).all(|pair| pair[0] < pair[1]), "ascending");
        for (device, decision) in chunk.devices.iter().zip(&chunk.decisions) {
            let present = self.devices.iter().any(|(id, _)| id == device);
            assert!(present || *decision == SendDecision::Gone, "{device} is removed");
        }
        let sent = chunk.decisions.iter().filter(|decision| **decision == SendDecision::Send).count();
        assert_eq!(chunk.tokens.len(), sent, "one address for each that is sent to");
        self.expected.check_lease(chunk);
        let decisions = chunk.decisions.clone();
        if decisions.contains(&SendDecision::Collapsed) {
            self.reach("a collapsed delivery");
        }
        if decisions.contains(&SendDecision::Gone) {
            self.reach("a device gone at sending time");
        }
        if chunk.ambiguous {
            self.reach("an ambiguous chunk");
        }
        self.show(&(decisions, held.chunk.ambiguous, held.chunk.attempt, held.chunk.tally));
        self.held.push(held);
    }
}
