use proptest::prelude::*;
use stentor_core::campaign::Tally;
use stentor_core::chunk::TokenList;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Priority, Ttl};
use stentor_core::retry::RetryPolicy;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::*;
use crate::pipeline::settle::evidence::ProviderStanding;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn chunk(decisions: Vec<SendDecision>) -> LeasedChunk {
    let (target, ttl) = (Target::Everyone, Ttl::from_seconds(60).expect("fits"));
    let content = Content::default();
    let spec = MessageSpec { target, content, priority: Priority::High, ttl, collapse_key: None };
    let (id, app) = (MessageId::from_raw(1), AppId::from_raw(1));
    LeasedChunk {
        id: ChunkId::from_raw(7),
        epoch: 3,
        message: Arc::new(Message { id, app, spec, created_at: NOW, due_at: NOW, occurrence: None }),
        provider: ProviderKind::Fcm,
        attempt: 1,
        ambiguous: false,
        tally: Tally { sending: decisions.len() as u64, ..Tally::default() },
        devices: (1..=decisions.len() as u64).map(DeviceId::from_raw).collect(),
        decisions,
        tokens: TokenList::default(),
    }
}

prop_compose! {
    fn any_case()(
        decisions in prop::collection::vec(prop::sample::select(vec![SendDecision::Send, SendDecision::Send, SendDecision::Gone, SendDecision::Collapsed]), 1..60),
        answers in prop::collection::vec(prop::option::of(prop::sample::select(vec![Outcome::Accepted, Outcome::Unknown])), 60),
    ) -> (LeasedChunk, Vec<Option<Outcome>>) {
        let sent = decisions.iter().filter(|decision| **decision == SendDecision::Send).count();
        (chunk(decisions), answers.into_iter().take(sent).collect())
    }
}

proptest! {
    #[test]
    fn what_is_settled_early_is_what_was_answered_and_the_rest_is_awaited((chunk, early) in any_case()) {
        let parts = Parts::of(&chunk, early.clone());
        let awaited: Vec<_> = (0..early.len()).filter(|place| early[*place].is_none()).collect();
        prop_assert_eq!(&parts.places, &awaited);
        let answered = chunk.part(&parts.answered);
        let settled = settle(&answered, &parts.outcomes, ProviderStanding::default(), &RetryPolicy::default(), 0.5, NOW);
        let whole = settled.settlement.spread(&parts.answered, parts.awaited.clone(), false);
        prop_assert!(whole.is_coherent(chunk.devices.len()));
        let rest = chunk.part(&parts.awaited);
        prop_assert_eq!(rest.devices.len(), awaited.len());
        prop_assert!(rest.decisions.iter().all(|decision| *decision == SendDecision::Send));
        let mut sent = early.iter();
        for (at, decision) in chunk.decisions.iter().enumerate() {
            let expected = match (decision, if *decision == SendDecision::Send { sent.next() } else { None }) {
                (SendDecision::Collapsed, _) => DeliveryState::Collapsed,
                (SendDecision::Gone, _) => DeliveryState::Canceled,
                (_, Some(Some(Outcome::Accepted))) => DeliveryState::Accepted,
                _ => DeliveryState::Queued,
            };
            prop_assert_eq!(whole.records[at].state(), expected);
        }
    }
}
