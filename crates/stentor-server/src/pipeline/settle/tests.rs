mod foreign;

use std::sync::Arc;

use proptest::prelude::*;
use stentor_core::campaign::Tally;
use stentor_core::chunk::TokenList;
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, ChunkId, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Priority, Ttl};
use stentor_core::target::Target;

use super::*;
use crate::pipeline::settle::evidence::{AnswerShares, Evidence};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn message(target: Target, ttl_seconds: u64) -> Arc<Message> {
    let ttl = Ttl::from_seconds(ttl_seconds).expect("fits");
    let content = Content::default();
    let spec = MessageSpec { target, content, priority: Priority::High, ttl, collapse_key: None };
    let (id, app) = (MessageId::from_raw(1), AppId::from_raw(1));
    Arc::new(Message { id, app, spec, created_at: NOW, due_at: NOW, occurrence: None })
}

fn chunk(decisions: Vec<SendDecision>) -> LeasedChunk {
    let devices: Vec<_> = (1..=decisions.len() as u64).map(DeviceId::from_raw).collect();
    let mut tokens = TokenList::default();
    decisions.iter().filter(|decision| **decision == SendDecision::Send).for_each(|_| tokens.push("token"));
    LeasedChunk {
        id: ChunkId::from_raw(7),
        epoch: 3,
        message: message(Target::Everyone, 3_600),
        provider: ProviderKind::Fcm,
        attempt: 1,
        ambiguous: false,
        tally: Tally { sending: devices.len() as u64, ..Tally::default() },
        devices,
        decisions,
        tokens,
    }
}

fn sending(count: usize) -> LeasedChunk {
    chunk(vec![SendDecision::Send; count])
}

/// Returns the standing of a push service of which only these outcomes are known.
fn seen(chunk: &LeasedChunk, outcomes: &[Outcome]) -> ProviderStanding {
    let evidence = Evidence::of(outcomes, is_weak(chunk, false));
    AnswerShares::default().weigh(evidence.and_foreign(count_foreign(chunk.provider, outcomes)), false)
}

fn blaming(trouble: TroubleSource) -> ProviderStanding {
    ProviderStanding { trouble, ..ProviderStanding::default() }
}

fn decide(chunk: &LeasedChunk, outcomes: &[Outcome]) -> Settled {
    settle(chunk, outcomes, seen(chunk, outcomes), &RetryPolicy::default(), 0.5, NOW)
}

fn states(settled: &Settled) -> Vec<(DeliveryState, Reason)> {
    settled.settlement.records.iter().map(|record| (record.state(), record.reason())).collect()
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let scope = prop::sample::select(vec![
        OutcomeScope::Delivery,
        OutcomeScope::Device,
        OutcomeScope::Payload,
        OutcomeScope::Credential,
        OutcomeScope::Service,
    ]);
    let reason = (0..Reason::ALL.len()).prop_map(|index| Reason::ALL[index]);
    let wait = prop::option::of((0..u64::MAX).prop_map(Duration::from_millis));
    let unsent = (reason.clone(), wait.clone())
        .prop_map(|(reason, retry_after)| Outcome::Unsent { reason, retry_after });
    let deferred = (reason.clone(), (0..u64::MAX).prop_map(Duration::from_millis))
        .prop_map(|(reason, retry_after)| Outcome::Deferred { reason, retry_after });
    prop_oneof![
        Just(Outcome::Accepted),
        Just(Outcome::Unknown),
        unsent,
        deferred,
        Just(Outcome::Replaced { token: PushToken::new("next").expect("fits") }),
        Just(Outcome::Unregistered { reason: Reason::Unregistered, since: Some(NOW) }),
        (reason.clone(), scope.clone()).prop_map(|(reason, scope)| Outcome::Rejected { reason, scope }),
        (scope.clone(), wait.clone())
            .prop_map(|(scope, retry_after)| Outcome::Throttled { scope, retry_after }),
        (reason, scope, wait).prop_map(|(reason, scope, retry_after)| Outcome::Unavailable {
            reason,
            scope,
            retry_after
        }),
    ]
}

prop_compose! {
    fn any_case()(
        decisions in prop::collection::vec(prop::sample::select(vec![SendDecision::Send, SendDecision::Send, SendDecision::Gone, SendDecision::Collapsed]), 1..60),
        outcomes in prop::collection::vec(any_outcome(), 0..60),
        ttl in prop::sample::select(vec![0_u64, 1, 60, 3_600]),
        attempt in 1..14_u16,
        ambiguous in any::<bool>(),
        age in 0..120_000_i64,
        jitter in 0.0..1.0_f64,
    ) -> (LeasedChunk, Vec<Outcome>, f64, Timestamp) {
        let mut chunk = chunk(decisions);
        let sent = chunk.decisions.iter().filter(|decision| **decision == SendDecision::Send).count();
        chunk.message = message(Target::Everyone, ttl);
        (chunk.attempt, chunk.ambiguous) = (attempt, ambiguous);
        let outcomes = outcomes.into_iter().take(sent).collect();
        (chunk, outcomes, jitter, Timestamp::from_millis(NOW.as_millis() + age))
    }
}

#[test]
fn an_attempt_that_was_lost_counts_for_no_answer() {
    let after = |attempt, ambiguous| answered_before(&LeasedChunk { attempt, ambiguous, ..sending(1) });
    assert_eq!([after(1, false), after(2, false)], [false, true]);
    assert_eq!([after(1, true), after(2, true), after(3, true)], [false, false, true]);
}

proptest! {
    #[test]
    fn every_settlement_is_coherent_and_gives_every_position_one_fate((chunk, outcomes, jitter, now) in any_case()) {
        let settled = settle(&chunk, &outcomes, seen(&chunk, &outcomes), &RetryPolicy::default(), jitter, now);
        prop_assert!(settled.settlement.is_coherent(chunk.devices.len()));
        let sent = outcomes.iter().filter(|outcome| is_attempt(outcome)).count();
        prop_assert_eq!(settled.settlement.attempts as usize, sent);
        prop_assert!(chunk.tally.settled(&settled.settlement.records).is_some_and(|after| after.sum() == chunk.tally.sum()));
    }

    #[test]
    fn ambiguity_is_never_lost((chunk, outcomes, jitter, now) in any_case()) {
        let settled = settle(&chunk, &outcomes, seen(&chunk, &outcomes), &RetryPolicy::default(), jitter, now);
        let records = &settled.settlement.records;
        prop_assert!(!chunk.ambiguous || records.iter().all(|record| record.is_ambiguous()));
        let sent = (0..).zip(&chunk.decisions).filter(|(_, decision)| **decision == SendDecision::Send).map(|(at, _)| at);
        for (position, outcome) in sent.zip(&outcomes) {
            let record: Record = records[position];
            prop_assert!(*outcome != Outcome::Unknown || record.is_ambiguous());
        }
        for child in &settled.settlement.children {
            let marked = child.positions.iter().all(|at| records[*at as usize].is_ambiguous() == child.ambiguous);
            prop_assert!(marked);
        }
    }

    #[test]
    fn no_child_is_due_before_now_or_after_the_end_and_none_at_all_with_ttl_0((chunk, outcomes, jitter, now) in any_case()) {
        let settled = settle(&chunk, &outcomes, seen(&chunk, &outcomes), &RetryPolicy::default(), jitter, now);
        let zero = chunk.message.spec.ttl.as_seconds() == 0;
        for child in &settled.settlement.children {
            prop_assert!(child.due_at >= now && (zero || child.due_at <= chunk.message.expires_at()));
            prop_assert!((chunk.attempt..=chunk.attempt + 1).contains(&child.attempt));
        }
        let sent = chunk.decisions.iter().filter(|decision| **decision == SendDecision::Send).count();
        prop_assert!(!zero || outcomes.len() < sent || settled.settlement.children.is_empty());
    }

    #[test]
    fn only_a_reach_of_device_or_payload_ends_a_delivery(outcome in any_outcome(), attempt in 1..100_u16) {
        let mut one = sending(1);
        one.attempt = attempt;
        let standing = ProviderStanding { credential_refused: true, ..blaming(TroubleSource::Service) };
        let outcomes = std::slice::from_ref(&outcome);
        let settled = settle(&one, outcomes, standing, &RetryPolicy::default(), 0.5, NOW);
        let ours = matches!(outcome,
            Outcome::Rejected { scope: OutcomeScope::Credential | OutcomeScope::Service, .. }
            | Outcome::Throttled { scope: OutcomeScope::Credential | OutcomeScope::Service, .. }
            | Outcome::Unavailable { scope: OutcomeScope::Credential | OutcomeScope::Service, .. });
        if ours {
            prop_assert_eq!(settled.settlement.records[0].state(), DeliveryState::Queued);
            prop_assert_eq!(settled.settlement.children[0].attempt, attempt);
        }
    }

    #[test]
    fn a_provider_is_stopped_only_when_every_one_of_enough_attempts_is_refused_for_its_payload((chunk, outcomes, jitter, now) in any_case()) {
        let settled = settle(&chunk, &outcomes, seen(&chunk, &outcomes), &RetryPolicy::default(), jitter, now);
        let payload = |outcome: &Outcome| matches!(outcome, Outcome::Rejected { scope: OutcomeScope::Payload, .. });
        let attempted = chunk.decisions.iter().filter(|decision| **decision == SendDecision::Send).count();
        let enough = !outcomes.is_empty() && outcomes.len() >= attempted.min(10);
        prop_assert_eq!(settled.settlement.stop.is_some(), enough && outcomes.iter().all(payload));
    }

    #[test]
    fn waits_of_any_kind_give_few_children(waits in prop::collection::vec(0..100_000_000_u64, 1_000)) {
        let throttled = |millis: &u64| Outcome::Throttled { scope: OutcomeScope::Device, retry_after: Some(Duration::from_millis(*millis)) };
        let outcomes: Vec<_> = waits.iter().map(throttled).collect();
        prop_assert!(decide(&sending(1_000), &outcomes).settlement.children.len() <= 200);
    }

    #[test]
    fn rounding_a_wait_never_shortens_it(millis in 0..u64::from(u32::MAX)) {
        let wait = Duration::from_millis(millis);
        let after = rounded(wait);
        prop_assert!(after >= wait && after <= wait + wait / 8 + Duration::from_millis(100));
    }
}

#[test]
fn an_unregistered_token_is_retired_and_an_invalid_one_kept() {
    let outcomes = [
        Outcome::Unregistered { reason: Reason::TokenExpired, since: Some(NOW) },
        Outcome::Rejected { reason: Reason::InvalidToken, scope: OutcomeScope::Device },
        Outcome::Replaced { token: PushToken::new("next").expect("fits") },
    ];
    let settled = decide(&sending(3), &outcomes);
    let rejected = DeliveryState::Rejected;
    let wanted = [
        (rejected, Reason::TokenExpired),
        (rejected, Reason::InvalidToken),
        (DeliveryState::Accepted, Reason::None),
    ];
    assert_eq!(states(&settled), wanted);
    let retire =
        TokenChange::Retire { device: DeviceId::from_raw(1), reason: Reason::TokenExpired, since: Some(NOW) };
    assert_eq!(settled.settlement.tokens[0], retire);
    assert!(
        matches!(&settled.settlement.tokens[1..], [TokenChange::Replace { device, .. }] if device.raw() == 3)
    );
}

#[test]
fn a_refused_credential_parks_the_lane_and_ends_nothing() {
    let refused = Outcome::Rejected { reason: Reason::CredentialRefused, scope: OutcomeScope::Credential };
    let settled = decide(&sending(2), &[refused]);
    let parking = settled.parking.clone().expect("parked");
    assert_eq!((parking.until, parking.reason), (None, Reason::CredentialRefused));
    assert_eq!(states(&settled), [(DeliveryState::Queued, Reason::CredentialRefused); 2]);
}

#[test]
fn a_retry_after_parks_the_lane_and_delays_every_child() {
    let wait = Duration::from_secs(30);
    let throttled = Outcome::Throttled { scope: OutcomeScope::Service, retry_after: Some(wait) };
    let settled = decide(&sending(3), &[Outcome::Accepted, throttled]);
    assert_eq!(settled.parking.as_ref().and_then(|parking| parking.until), Some(NOW.plus(wait)));
    assert!(settled.settlement.children.iter().all(|child| child.due_at >= NOW.plus(wait)));
    assert_eq!(settled.settlement.children.iter().map(|child| child.positions.len()).sum::<usize>(), 2);
}

#[test]
fn attempts_without_answer_end_when_the_policy_is_exhausted() {
    let mut last = sending(1);
    last.attempt = RetryPolicy::default().max_attempts;
    let settled = decide(&last, &[Outcome::Unknown]);
    let wanted = Record::new(DeliveryState::Failed, Reason::AttemptsExhausted, true);
    assert_eq!(settled.settlement.records, [wanted]);
}

#[test]
fn a_message_too_late_ends_expired_without_an_attempt() {
    let mut late = chunk(vec![SendDecision::Send, SendDecision::Gone, SendDecision::Collapsed]);
    late.message = message(Target::Everyone, 10);
    let settled = settle(
        &late,
        &[],
        ProviderStanding::default(),
        &RetryPolicy::default(),
        0.0,
        late.message.expires_at(),
    );
    let wanted = [
        (DeliveryState::Expired, Reason::TtlPassed),
        (DeliveryState::Canceled, Reason::DeviceGone),
        (DeliveryState::Collapsed, Reason::ReplacedByNewer),
    ];
    assert_eq!(states(&settled), wanted);
    assert_eq!(settled.settlement.attempts, 0);
}

fn refused_payload_stops(mut chunk: LeasedChunk, target: Target, accepted: u64) -> bool {
    chunk.message = message(target, 60);
    chunk.tally.accepted = accepted;
    let refused = Outcome::Rejected { reason: Reason::InvalidPayload, scope: OutcomeScope::Payload };
    let outcomes = vec![refused; chunk.devices.len()];
    decide(&chunk, &outcomes).settlement.stop.is_some()
}

#[test]
fn a_refused_payload_stops_an_audience_but_not_a_single_message_nor_what_was_accepted_before() {
    let one = || Target::Device(DeviceId::from_raw(1));
    assert!(refused_payload_stops(sending(3), Target::Everyone, 0));
    assert!(refused_payload_stops(sending(1), Target::Everyone, 0));
    assert!(!refused_payload_stops(sending(1), one(), 0));
    assert!(!refused_payload_stops(sending(3), Target::Everyone, 1));
}

fn stops(audience: u64, refused: usize) -> bool {
    let mut one = sending(refused);
    one.tally = Tally { sending: audience, ..Tally::default() };
    refused_payload_stops(one, Target::Everyone, 0)
}

#[test]
fn ten_answers_stop_a_large_audience_and_fewer_do_not() {
    assert!(stops(1_000_000, 10));
    assert!(!stops(1_000_000, 9), "nine of a million say little");
}

#[test]
fn a_small_audience_is_stopped_only_by_all_who_can_be_asked() {
    assert!(stops(4, 4));
    assert!(!stops(4, 3));
    let mut one_gone = chunk(vec![SendDecision::Send, SendDecision::Gone, SendDecision::Send]);
    one_gone.message = message(Target::Everyone, 60);
    let refused = Outcome::Rejected { reason: Reason::InvalidPayload, scope: OutcomeScope::Payload };
    assert!(decide(&one_gone, &[refused.clone(), refused.clone()]).settlement.stop.is_some());
    assert!(decide(&one_gone, &[refused]).settlement.stop.is_none(), "one was not asked yet");
}

#[test]
fn what_was_not_sent_because_another_was_told_to_wait_waits_as_long_and_closes_the_lane() {
    let wait = Duration::from_secs(600);
    let unsent = Outcome::Unsent { reason: Reason::Throttled, retry_after: Some(wait) };
    let settled = decide(&sending(2), &[unsent.clone(), unsent]);
    assert_eq!(settled.settlement.attempts, 0);
    assert_eq!(states(&settled), [(DeliveryState::Queued, Reason::Throttled); 2]);
    let child = &settled.settlement.children[0];
    assert!(child.attempt == sending(2).attempt && child.due_at >= NOW.plus(wait), "{child:?}");
    assert_eq!(settled.parking.and_then(|parking| parking.until), Some(NOW.plus(wait)));
    assert_eq!(settled.health, AnswerCounts::default(), "a service that asks to wait is not down");
}

#[test]
fn r17_what_may_not_be_connected_to_closes_the_lane_and_ends_nothing() {
    let mut last = sending(3);
    last.attempt = RetryPolicy::default().max_attempts;
    let refused = Outcome::Unsent { reason: Reason::AddressRefused, retry_after: None };
    let settled = decide(&last, &vec![refused; 3]);
    assert_eq!(states(&settled), [(DeliveryState::Queued, Reason::AddressRefused); 3]);
    assert_eq!((settled.settlement.attempts, settled.settlement.children[0].attempt), (0, last.attempt));
    let parking = settled.parking.expect("parked");
    assert_eq!((parking.until, parking.reason), (None, Reason::AddressRefused));
    assert!(parking.detail.contains("outbound.allowed_networks"), "{}", parking.detail);
}

#[test]
fn what_one_of_several_push_services_defers_waits_as_long_as_it_says_and_concerns_nothing_else() {
    let mut last = sending(40);
    last.attempt = RetryPolicy::default().max_attempts;
    let wait = Duration::from_secs(600);
    let deferred = Outcome::Deferred { reason: Reason::Throttled, retry_after: wait };
    let settled = decide(&last, &[vec![Outcome::Accepted], vec![deferred; 39]].concat());
    assert_eq!((settled.parking, settled.settlement.attempts), (None, 1));
    assert_eq!(settled.health, AnswerCounts { answered: 1, unanswered: 0 });
    let child = &settled.settlement.children[0];
    assert_eq!((child.positions.len(), child.attempt, child.ambiguous), (39, last.attempt, false));
    assert!(child.due_at >= NOW.plus(wait) && child.due_at <= NOW.plus(wait + wait / 8));
}

#[test]
fn what_was_certainly_not_sent_is_tried_again_and_is_no_attempt() {
    let mut last = sending(2);
    last.attempt = RetryPolicy::default().max_attempts;
    let settled = decide(
        &last,
        &[Outcome::Accepted, Outcome::Unsent { reason: Reason::Unavailable, retry_after: None }],
    );
    assert_eq!(settled.settlement.attempts, 1);
    assert_eq!(states(&settled)[1], (DeliveryState::Queued, Reason::Unavailable));
    let child = &settled.settlement.children[0];
    assert_eq!(
        (child.attempt, child.ambiguous),
        (last.attempt, false),
        "it does not count against the policy"
    );
    assert_eq!(
        settled.health,
        AnswerCounts { answered: 1, unanswered: 1 },
        "but it says that the service is not reached"
    );
}

/// Returns the wait in milliseconds of a delivery with the given outcome and age of its message.
fn waits_ms(scope: OutcomeScope, retry_after: Option<Duration>, age: Duration) -> u64 {
    let now = NOW.plus(age);
    let down = Outcome::Unavailable { reason: Reason::Unavailable, scope, retry_after };
    let settled =
        settle(&sending(1), &[down], blaming(TroubleSource::Service), &RetryPolicy::default(), 0.5, now);
    settled.settlement.children[0].due_at.since(now).as_millis() as u64
}

#[test]
fn what_a_service_could_not_take_waits_longer_the_older_its_message_is_up_to_half_a_minute() {
    let after = |seconds| waits_ms(OutcomeScope::Service, None, Duration::from_secs(seconds));
    assert!((500..=1_000).contains(&after(0)), "{}", after(0));
    assert!((2_000..=3_000).contains(&after(2)), "{}", after(2));
    assert!((16_000..=20_000).contains(&after(16)), "{}", after(16));
    assert!((30_000..=36_000).contains(&after(600)), "{}", after(600));
}

#[test]
fn the_age_of_a_message_lengthens_no_wait_of_a_known_length() {
    let age = Duration::from_secs(600);
    let wait_ms = waits_ms(OutcomeScope::Service, Some(Duration::from_secs(2)), age);
    assert!((2_000..=3_000).contains(&wait_ms), "{wait_ms}");
    let own = waits_ms(OutcomeScope::Device, None, age);
    assert!((500..=1_000).contains(&own), "{own}");
}

#[test]
fn a_delivery_that_waits_alone_parks_no_lane_and_counts_only_where_others_succeed() {
    let wait = Duration::from_secs(900);
    let scope = OutcomeScope::Delivery;
    let failed = Outcome::Unavailable { reason: Reason::Unavailable, scope, retry_after: Some(wait) };
    let mut again = sending(1);
    again.attempt = 2;
    for (trouble, attempt) in
        [(TroubleSource::Delivery, 3), (TroubleSource::Unclear, 3), (TroubleSource::Service, 2)]
    {
        let outcomes = std::slice::from_ref(&failed);
        let settled = settle(&again, outcomes, blaming(trouble), &RetryPolicy::default(), 0.5, NOW);
        assert_eq!((settled.parking, settled.health), (None, AnswerCounts::default()), "{trouble:?}");
        let child = &settled.settlement.children[0];
        assert_eq!(child.attempt, attempt, "{trouble:?}");
        let waits = child.due_at.since(NOW);
        assert!(waits >= wait && waits <= wait + wait / 4, "{trouble:?}: {waits:?}");
    }
}

fn down(retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason: Reason::Unavailable, scope: OutcomeScope::Service, retry_after }
}

/// Good answers except for these.
fn among_good(troubles: &[Outcome]) -> (LeasedChunk, Vec<Outcome>) {
    let mut outcomes = vec![Outcome::Accepted; 100 - troubles.len()];
    outcomes.extend_from_slice(troubles);
    (sending(100), outcomes)
}

#[test]
fn a_few_answers_that_ask_to_wait_rest_no_lane_and_delay_their_own_deliveries() {
    let wait = Duration::from_secs(30);
    let throttled = Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: Some(wait) };
    let (chunk, outcomes) = among_good(&[throttled.clone(), throttled, down(Some(wait))]);
    let settled = decide(&chunk, &outcomes);
    assert_eq!(settled.parking, None);
    let children = &settled.settlement.children;
    assert_eq!(children.iter().map(|child| child.positions.len()).sum::<usize>(), 3);
    assert!(
        children.iter().all(|child| child.attempt == 2 && child.due_at >= NOW.plus(wait)),
        "{children:?}"
    );
}

#[test]
fn most_answers_that_ask_to_wait_rest_the_lane_and_count_for_nobody() {
    let wait = Duration::from_secs(30);
    let throttled = Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: Some(wait) };
    let settled = decide(&sending(20), &vec![throttled; 20]);
    assert_eq!(settled.parking.and_then(|parking| parking.until), Some(NOW.plus(wait)));
    assert!(settled.settlement.children.iter().all(|child| child.attempt == 1));
}

#[test]
fn a_quota_that_is_named_as_the_senders_own_rests_the_lane_at_once() {
    let wait = Duration::from_secs(30);
    let throttled = Outcome::Throttled { scope: OutcomeScope::Service, retry_after: Some(wait) };
    let (chunk, outcomes) = among_good(&[throttled]);
    assert!(decide(&chunk, &outcomes).parking.is_some());
}

#[test]
fn one_refused_credential_among_good_answers_rests_no_lane() {
    let refused = Outcome::Rejected { reason: Reason::CredentialRefused, scope: OutcomeScope::Credential };
    let (chunk, outcomes) = among_good(&[refused]);
    assert_eq!(decide(&chunk, &outcomes).parking, None);
}

#[test]
fn a_device_that_always_fails_ends_when_others_fare_well_and_not_while_that_is_unclear() {
    let mut last = sending(1);
    last.attempt = RetryPolicy::default().max_attempts;
    let ends = |trouble| {
        let settled = settle(&last, &[down(None)], blaming(trouble), &RetryPolicy::default(), 0.5, NOW);
        states(&settled)[0].0
    };
    assert_eq!(ends(TroubleSource::Delivery), DeliveryState::Failed);
    assert_eq!(ends(TroubleSource::Unclear), DeliveryState::Queued);
    assert_eq!(ends(TroubleSource::Service), DeliveryState::Queued);
}

#[test]
fn what_fails_again_waits_longer_each_time_and_says_nothing_of_the_push_service() {
    let mut again = sending(50);
    let mut waits = Vec::new();
    for attempt in 2..6 {
        again.attempt = attempt;
        let settled = decide(&again, &vec![down(None); 50]);
        assert_eq!((settled.parking, settled.health), (None, AnswerCounts::default()));
        waits.push(settled.settlement.children[0].due_at.since(NOW));
    }
    assert!(waits.is_sorted() && waits[3] >= 4 * waits[0], "{waits:?}");
}
