//! Evidence about the push service, as shares of answers: one answer concerns its delivery, most of many concern the service.
//!
//! First attempts are strong evidence. A retry of a failed delivery is weak evidence: the cause that makes one device's deliveries fail
//! makes them fail again, even if the service is healthy. So a good answer to a retry counts, and a bad one does not.

use std::borrow::Cow;

use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, OutcomeScope};

/// Fewest first attempts from which a share concerns the push service.
const MIN_ANSWERS: u32 = 20;
/// Fewest refusals of a credential in a row that count against it after it was good.
const REFUSALS_MIN_ANSWERS: u32 = 3;
/// Number of answers remembered; beyond it, earlier ones count half.
const WINDOW_MAX_ANSWERS: u32 = 256;

/// Number of accepted messages after which a disproved suspicion is forgotten.
const CLEARED_MAX_ANSWERS: u32 = 10_000;
/// This many tokens of another sender in a row are no coincidence, even after a disproved suspicion.
const FOREIGN_MAX_ANSWERS: u32 = 2_048;

/// Returns the outcomes that are evidence about a provider's push service. Where each device names its own one, the silence of one says
/// nothing about the others. Where a request carries many tokens, trouble of the whole request is one answer.
pub(crate) fn evident(provider: ProviderKind, outcomes: &[Outcome]) -> Cow<'_, [Outcome]> {
    let descriptor = stentor_providers::descriptor(provider);
    if descriptor.names_hosts {
        return Cow::Owned(
            outcomes.iter().filter(|outcome| **outcome != Outcome::Unknown).cloned().collect(),
        );
    }
    if descriptor.tokens_per_request == 1 {
        return Cow::Borrowed(outcomes);
    }
    let requests = outcomes.chunks(descriptor.tokens_per_request);
    Cow::Owned(requests.flat_map(answers_of_request).cloned().collect())
}

/// Returns the answers to one request: one for trouble that all its tokens share, otherwise one for each token.
fn answers_of_request(outcomes: &[Outcome]) -> &[Outcome] {
    match outcomes {
        [first, rest @ ..] if is_trouble(first) && rest.iter().all(|outcome| outcome == first) => {
            std::slice::from_ref(first)
        }
        each => each,
    }
}

/// The evidence of one batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Answers about the device or the message, good or bad.
    pub(crate) fine: u32,
    /// The accepted ones among them.
    pub(crate) accepted: u32,
    /// First attempts that met a rate limit, an unavailable service, or no answer.
    pub(crate) troubled: u32,
    /// First attempts for which the credential was refused.
    pub(crate) refused: u32,
    /// Answers that a token belongs to another sender; `fine` includes them.
    pub(crate) foreign: u32,
}

impl Evidence {
    /// Adds the number of answers that a token belongs to another sender.
    pub(crate) const fn and_foreign(self, foreign: u32) -> Self {
        Self { foreign, ..self }
    }

    /// Adds the good answers of the same batch that were settled earlier, so that the shares are those of the whole batch.
    pub(crate) const fn and_fine(self, before: Self) -> Self {
        Self { fine: self.fine + before.fine, accepted: self.accepted + before.accepted, ..self }
    }

    /// Counts outcomes; those of a `repeated` attempt are weak.
    pub(crate) fn of(outcomes: &[Outcome], repeated: bool) -> Self {
        let mut evidence = Self::default();
        for outcome in outcomes {
            match outcome {
                Outcome::Rejected { scope: OutcomeScope::Credential | OutcomeScope::Service, .. }
                | Outcome::Unavailable { scope: OutcomeScope::Credential, .. } => {
                    evidence.refused += u32::from(!repeated);
                }
                Outcome::Deferred { .. } => {}
                // Put off because of answers to other deliveries, which were counted with them.
                Outcome::Unsent { retry_after: Some(_), .. } if repeated => {}
                // Not an attempt, hence no retry: the service cannot be reached.
                Outcome::Unsent { .. } => evidence.troubled += 1,
                other if is_trouble(other) => evidence.troubled += u32::from(!repeated),
                Outcome::Accepted | Outcome::Replaced { .. } => {
                    evidence.fine += 1;
                    evidence.accepted += 1;
                }
                _ => evidence.fine += 1,
            }
        }
        evidence
    }

    const fn sum(self) -> u32 {
        self.fine.saturating_add(self.troubled).saturating_add(self.refused)
    }
}

/// Returns true if an outcome may be caused by the push service as well as by the device.
const fn is_trouble(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Unknown
            | Outcome::Throttled { scope: OutcomeScope::Credential | OutcomeScope::Service, .. }
            | Outcome::Unavailable { scope: OutcomeScope::Delivery | OutcomeScope::Service, .. }
    )
}

/// The standing of the push service after a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderStanding {
    /// Source of the trouble, if there is any.
    pub trouble: TroubleSource,
    /// True if refusals of the credential count against it, and not only for one device.
    pub credential_refused: bool,
    /// True if it has accepted nothing lately, so that a token of another sender may indicate a wrong credential.
    pub accepts_nothing: bool,
    /// Number of answers in a row, up to the last of this batch, that a token belongs to another sender.
    pub foreign_in_a_row: u32,
    /// True if the lane rests because the credential seems to be another sender's.
    pub is_suspected: bool,
    /// True if that suspicion was recently disproved.
    pub is_disproved: bool,
    /// True if the batch proves that the credential is good for a device.
    pub has_accepted: bool,
    /// True if the batch was the probe of an open breaker, for which one answer suffices.
    pub is_probe: bool,
}

/// The source of trouble when an attempt is throttled, finds the service unavailable, or is not answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TroubleSource {
    /// Too few answers to decide.
    #[default]
    Unclear,
    /// The delivery: others succeed.
    Delivery,
    /// The push service: most deliveries are affected.
    Service,
}

/// The shares of recent answers.
#[derive(Debug, Default)]
pub(crate) struct AnswerShares {
    fine: u32,
    accepted: u32,
    troubled: u32,
    refused_in_a_row: u32,
    foreign_in_a_row: u32,
}

/// The memory of a disproved suspicion: the lane rested because its credential seemed to be another sender's, and then a message was
/// accepted.
#[derive(Debug, Default)]
pub(crate) struct ClearedSuspicion(Option<u32>);

impl ClearedSuspicion {
    /// Records that the suspicion was disproved.
    pub(crate) fn note(&mut self) {
        self.0 = Some(0);
    }

    /// Adds a batch. Returns true if the disproof still counts.
    pub(crate) fn counts(&mut self, batch: Evidence, foreign_in_a_row: u32) -> bool {
        let accepted = self.0.map(|accepted| accepted.saturating_add(batch.accepted));
        let counts =
            |accepted: &u32| *accepted < CLEARED_MAX_ANSWERS && foreign_in_a_row < FOREIGN_MAX_ANSWERS;
        self.0 = accepted.filter(counts);
        self.0.is_some()
    }
}

impl AnswerShares {
    /// Adds the evidence of a batch and returns the standing of the push service.
    pub(crate) fn weigh(&mut self, batch: Evidence, is_probe: bool) -> ProviderStanding {
        self.add(batch);
        let (fine, troubled) = (self.fine, self.troubled);
        let most = are_most(batch.troubled, batch.fine) || are_most(troubled, fine);
        let again = is_probe && batch.fine == 0 && batch.sum() > 0;
        let trouble = match () {
            () if most || again => TroubleSource::Service,
            () if fine > 0 => TroubleSource::Delivery,
            () => TroubleSource::Unclear,
        };
        let refused = batch.refused > 0
            && (again || fine == 0 || self.refused_in_a_row >= REFUSALS_MIN_ANSWERS)
            && 2 * batch.refused >= batch.sum();
        ProviderStanding {
            trouble,
            credential_refused: refused,
            accepts_nothing: self.accepted == 0,
            foreign_in_a_row: self.foreign_in_a_row,
            has_accepted: batch.accepted > 0,
            is_probe,
            ..ProviderStanding::default()
        }
    }

    fn add(&mut self, batch: Evidence) {
        self.refused_in_a_row =
            if batch.fine > 0 { 0 } else { self.refused_in_a_row.saturating_add(batch.refused) };
        self.foreign_in_a_row =
            if batch.fine > batch.foreign { 0 } else { self.foreign_in_a_row.saturating_add(batch.foreign) };
        self.fine = self.fine.saturating_add(batch.fine);
        self.accepted = self.accepted.saturating_add(batch.accepted);
        self.troubled = self.troubled.saturating_add(batch.troubled);
        while self.fine.saturating_add(self.troubled) > WINDOW_MAX_ANSWERS {
            // Rounded in favour of the good answers, so that halving turns no share into trouble.
            (self.fine, self.troubled) = (self.fine.div_ceil(2), self.troubled / 2);
            self.accepted /= 2;
        }
    }

    /// Clears everything, because a breaker was opened or closed and earlier answers no longer count.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

const fn are_most(troubled: u32, fine: u32) -> bool {
    troubled.saturating_add(fine) >= MIN_ANSWERS && troubled >= fine
}

#[cfg(test)]
mod tests {
    use stentor_core::outcome::Reason;

    use super::*;

    const fn evidence(fine: u32, troubled: u32, refused: u32) -> Evidence {
        Evidence { fine, accepted: fine, troubled, refused, foreign: 0 }
    }

    #[test]
    fn silence_is_evidence_only_where_all_devices_have_one_push_service() {
        let outcomes = [Outcome::Unknown, Outcome::Accepted];
        assert_eq!(*evident(ProviderKind::Fcm, &outcomes), outcomes);
        for provider in [ProviderKind::WebPush, ProviderKind::Wns] {
            assert_eq!(*evident(provider, &outcomes), [Outcome::Accepted]);
        }
    }

    #[test]
    fn trouble_of_a_request_with_many_tokens_is_one_answer_and_trouble_of_single_tokens_is_theirs() {
        let down = Outcome::Unavailable {
            reason: Reason::Unavailable,
            scope: OutcomeScope::Service,
            retry_after: None,
        };
        let whole = vec![down.clone(); 1_700];
        let single = [Outcome::Accepted, down.clone(), down.clone()];
        for provider in [ProviderKind::Hms, ProviderKind::Gcm] {
            assert_eq!(*evident(provider, &whole), [down.clone(), down.clone()]);
            assert_eq!(*evident(provider, &single), single);
        }
        assert_eq!(*evident(ProviderKind::Fcm, &whole), whole);
    }

    #[test]
    fn a_fifth_of_all_answers_is_the_deliveries_trouble_however_many_they_are() {
        let mut shares = AnswerShares::default();
        for _ in 0..1_000 {
            assert_eq!(shares.weigh(evidence(800, 200, 0), false).trouble, TroubleSource::Delivery);
        }
    }

    #[test]
    fn half_of_all_answers_is_the_services_trouble() {
        assert_eq!(
            AnswerShares::default().weigh(evidence(500, 500, 0), false).trouble,
            TroubleSource::Service
        );
    }

    #[test]
    fn a_service_that_was_well_for_long_is_found_down_by_singles_too() {
        let mut shares = AnswerShares::default();
        shares.weigh(evidence(1_000_000, 0, 0), false);
        let until =
            (0..1_000).position(|_| shares.weigh(evidence(0, 1, 0), false).trouble == TroubleSource::Service);
        assert!(until.is_some_and(|count| count < WINDOW_MAX_ANSWERS as usize), "{until:?}");
    }

    #[test]
    fn repeated_attempts_that_fail_again_say_nothing_and_those_that_succeed_do() {
        let down = Outcome::Unavailable {
            reason: Reason::Unavailable,
            scope: OutcomeScope::Service,
            retry_after: None,
        };
        let refused =
            Outcome::Rejected { reason: Reason::CredentialRefused, scope: OutcomeScope::Credential };
        let outcomes = [down.clone(), Outcome::Unknown, refused, down, Outcome::Accepted];
        assert_eq!(Evidence::of(&outcomes, true), evidence(1, 0, 0));
        assert_eq!(Evidence::of(&outcomes, false), evidence(1, 3, 1));
    }

    #[test]
    fn repeated_attempts_that_are_put_off_for_others_say_nothing() {
        let unsent = |retry_after| Outcome::Unsent { reason: Reason::Throttled, retry_after };
        let outcomes = [unsent(Some(std::time::Duration::from_secs(1))), unsent(None)];
        assert_eq!(Evidence::of(&outcomes, true), evidence(0, 1, 0));
        assert_eq!(Evidence::of(&outcomes, false), evidence(0, 2, 0));
    }

    #[test]
    fn a_delivery_that_waits_alone_says_nothing_and_as_a_probe_that_the_service_fails() {
        let failed = Outcome::Unavailable {
            reason: Reason::Unavailable,
            scope: OutcomeScope::Delivery,
            retry_after: Some(std::time::Duration::from_secs(900)),
        };
        assert_eq!(Evidence::of(std::slice::from_ref(&failed), true), evidence(0, 0, 0));
        assert_eq!(Evidence::of(&[failed], false), evidence(0, 1, 0));
    }

    #[test]
    fn what_is_late_of_a_batch_is_weighed_beside_what_was_answered_of_it() {
        let mut shares = AnswerShares::default();
        let before = evidence(950, 0, 0);
        shares.weigh(before, false);
        assert_eq!(shares.weigh(evidence(0, 50, 0).and_fine(before), false).trouble, TroubleSource::Delivery);
    }

    #[test]
    fn a_first_refusal_speaks_against_a_credential_and_one_among_good_answers_does_not() {
        assert!(AnswerShares::default().weigh(evidence(0, 0, 1), false).credential_refused);
        let mut shares = AnswerShares::default();
        assert!(!shares.weigh(evidence(99, 0, 1), false).credential_refused);
        let singles: Vec<_> =
            (0..3).map(|_| shares.weigh(evidence(0, 0, 1), false).credential_refused).collect();
        assert_eq!(singles, [false, false, true]);
    }

    #[test]
    fn tokens_of_another_sender_are_counted_in_a_row_across_batches() {
        let mut shares = AnswerShares::default();
        let foreign = |count| evidence(0, 0, 0).and_foreign(count);
        let all = |count| Evidence { fine: count, ..foreign(count) };
        let steps = [all(4), all(5), evidence(0, 3, 0), all(2), evidence(1, 0, 0), all(3)];
        let counts = steps.map(|batch| shares.weigh(batch, false).foreign_in_a_row);
        assert_eq!(counts, [4, 9, 9, 11, 0, 3]);
    }

    #[test]
    fn a_suspicion_that_was_wrong_is_remembered_for_a_while() {
        let mut disproof = ClearedSuspicion::default();
        assert!(!disproof.counts(evidence(1, 0, 0), 0));
        disproof.note();
        assert!(disproof.counts(evidence(9_999, 0, 0), 0) && !disproof.counts(evidence(1, 0, 0), 0));
        disproof.note();
        assert!(disproof.counts(evidence(0, 0, 0), 2_047) && !disproof.counts(evidence(0, 0, 0), 2_048));
    }

    #[test]
    fn few_answers_tell_nothing_and_a_probe_needs_no_more() {
        let mut shares = AnswerShares::default();
        assert_eq!(shares.weigh(evidence(0, 1, 0), false).trouble, TroubleSource::Unclear);
        assert_eq!(shares.weigh(evidence(0, 1, 0), true).trouble, TroubleSource::Service);
    }
}
