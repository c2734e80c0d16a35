//! Tokens of another sender.

use super::*;

fn refused_as(provider: ProviderKind, reason: Reason, count: usize, accepted: u64) -> Settled {
    let mut chunk = sending(count);
    (chunk.provider, chunk.tally.accepted) = (provider, accepted);
    decide(&chunk, &vec![Outcome::Rejected { reason, scope: OutcomeScope::Device }; count])
}

#[test]
fn tokens_that_all_belong_to_another_sender_rest_the_lane_and_end_nothing() {
    for (provider, reason) in [
        (ProviderKind::Fcm, Reason::SenderMismatch),
        (ProviderKind::Apns, Reason::SenderMismatch),
        (ProviderKind::Apns, Reason::InvalidToken),
    ] {
        let settled = refused_as(provider, reason, 10, 0);
        let parking = settled.parking.clone().expect("parked");
        assert_eq!((parking.until, parking.reason), (None, Reason::SenderMismatch));
        assert!(states(&settled).iter().all(|(state, _)| *state == DeliveryState::Queued));
        assert_eq!(settled.settlement.tokens, []);
        assert!(settled.settlement.children.iter().all(|child| child.attempt == 1));
    }
}

#[test]
fn a_few_foreign_tokens_and_those_beside_an_accepted_one_are_rejected_each_for_itself() {
    for (count, accepted) in [(9, 0), (10, 1)] {
        let settled = refused_as(ProviderKind::Apns, Reason::InvalidToken, count, accepted);
        assert_eq!(settled.parking, None);
        assert!(states(&settled).iter().all(|(state, _)| *state == DeliveryState::Rejected));
    }
    let invalid = refused_as(ProviderKind::Fcm, Reason::InvalidToken, 10, 0);
    assert_eq!(invalid.parking, None, "an invalid token is no other sender's");
}

/// Settles a chunk of devices that all belong to another sender, after a number of such answers in a row.
fn foreign_after(before: u32, count: usize, audience: u64, standing: ProviderStanding) -> Settled {
    let mut chunk = sending(count);
    chunk.tally.sending = audience;
    let outcomes =
        vec![Outcome::Rejected { reason: Reason::SenderMismatch, scope: OutcomeScope::Device }; count];
    let foreign_in_a_row = before + count as u32;
    settle(
        &chunk,
        &outcomes,
        ProviderStanding { foreign_in_a_row, ..standing },
        &RetryPolicy::default(),
        0.5,
        NOW,
    )
}

#[test]
fn the_rest_of_an_audience_ends_no_better_than_its_first_answers_however_few_it_is() {
    let standing = ProviderStanding { accepts_nothing: true, ..ProviderStanding::default() };
    for (before, count, audience) in [(0, 10, 10), (8, 2, 10), (1_000, 5, 1_005), (9, 1, 1_000_000)] {
        let settled = foreign_after(before, count, audience, standing);
        assert!(settled.parking.is_some(), "{count} of {audience} after {before}");
        assert!(states(&settled).iter().all(|(state, _)| *state == DeliveryState::Queued));
    }
    let few = foreign_after(0, 4, 10, standing);
    assert_eq!(few.parking, None, "too few to tell");
    assert!(states(&few).iter().all(|(state, _)| *state == DeliveryState::Queued), "and ended they are not");
    assert_eq!(few.settlement.children[0].attempt, 2);
}

#[test]
fn a_credential_that_was_good_before_is_suspected_as_well() {
    assert!(foreign_after(0, 10, 1_000, ProviderStanding::default()).parking.is_some());
}

#[test]
fn while_a_credential_is_suspected_no_answer_of_that_kind_ends_a_delivery() {
    let standing = ProviderStanding { is_suspected: true, ..ProviderStanding::default() };
    for (count, audience) in [(1, 1), (3, 3), (5, 1_000)] {
        let settled = foreign_after(0, count, audience, standing);
        assert!(settled.parking.is_some());
        assert!(states(&settled).iter().all(|(state, _)| *state == DeliveryState::Queued));
    }
}

#[test]
fn foreign_tokens_behind_a_credential_that_was_suspected_wrongly_are_rejected_each_for_itself() {
    let standing = ProviderStanding { is_disproved: true, ..ProviderStanding::default() };
    let settled = foreign_after(0, 1_000, 1_000, standing);
    assert_eq!(settled.parking, None);
    assert!(states(&settled).iter().all(|(state, _)| *state == DeliveryState::Rejected));
}
