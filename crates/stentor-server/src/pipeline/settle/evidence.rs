//! What answers say about the push service, as shares: one answer speaks for its delivery, most of many speak for the service.
//!
//! First attempts are strong evidence. An attempt that repeats a delivery which failed before is weak: what makes one
//! device's deliveries fail makes them fail again, however well the service is. So a good answer to a repeated attempt
//! counts, and a bad one does not.

use stentor_core::outcome::{Outcome, OutcomeScope};

/// Fewest first attempts whose share speaks for the push service.
const MIN_ANSWERS: u32 = 20;
/// Fewest refusals of a credential in a row that speak against it after it was good.
const REFUSALS_MIN_ANSWERS: u32 = 3;
/// Answers that are remembered: beyond, what came earlier counts half.
const WINDOW_MAX_ANSWERS: u32 = 256;

/// Good answers after which a suspicion that was wrong is forgotten.
const CLEARED_MAX_ANSWERS: u32 = 10_000;
/// So many tokens of another sender in a row are no chance, whatever was wrong before.
const FOREIGN_MAX_ANSWERS: u32 = 2_048;

/// What one batch showed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Answers about the device or the message, good or bad.
    pub(crate) fine: u32,
    /// The good ones among them.
    pub(crate) accepted: u32,
    /// First attempts that met a rate limit or a service that is down, or no answer at all.
    pub(crate) troubled: u32,
    /// First attempts for which the credential was refused.
    pub(crate) refused: u32,
    /// Answers that a token belongs to another sender; `fine` counts them too.
    pub(crate) foreign: u32,
}

impl Evidence {
    /// Adds how many answers said that a token belongs to another sender.
    pub(crate) const fn and_foreign(self, foreign: u32) -> Self {
        Self { foreign, ..self }
    }

    /// Adds what was answered well of the same batch before, so that the shares are those of the whole batch.
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
                // Put off because of answers to others, which were counted with them.
                Outcome::Unsent { retry_after: Some(_), .. } if repeated => {}
                // Not an attempt, so that it repeats nothing: the service is not reached.
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

/// Returns whether an outcome may be the push service's trouble as well as the device's.
const fn is_trouble(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Unknown
            | Outcome::Throttled { scope: OutcomeScope::Credential | OutcomeScope::Service, .. }
            | Outcome::Unavailable { scope: OutcomeScope::Service, .. }
    )
}

/// How the push service stands after a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderStanding {
    /// Whose trouble it is, where there is any.
    pub trouble: TroubleSource,
    /// Whether refusals of the credential speak against it, and not for one device.
    pub credential_refused: bool,
    /// Whether it has accepted nothing lately, so that a token which belongs to another sender may mean the credential.
    pub accepts_nothing: bool,
    /// How many answers in a row, up to the last of this batch, said that a token belongs to another sender.
    pub foreign_in_a_row: u32,
    /// Whether the lane rests because the credential seems to be another sender's.
    pub is_suspected: bool,
    /// Whether that suspicion was wrong lately.
    pub is_disproved: bool,
    /// Whether the batch shows that the credential is good for a device.
    pub has_accepted: bool,
    /// Whether the batch was the probe of an open breaker: one answer then tells enough.
    pub is_probe: bool,
}

/// Whose trouble it is when an attempt is throttled, met by a service that is down, or not answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TroubleSource {
    /// Too little was seen to tell.
    #[default]
    Unclear,
    /// The delivery's: others fare well.
    Delivery,
    /// The push service's: most fare alike.
    Service,
}

/// The shares of the last answers.
#[derive(Debug, Default)]
pub(crate) struct AnswerShares {
    fine: u32,
    accepted: u32,
    troubled: u32,
    refused_in_a_row: u32,
    foreign_in_a_row: u32,
}

/// Whether a lane that rested because its credential seemed to be another sender's turned out to be well.
#[derive(Debug, Default)]
pub(crate) struct ClearedSuspicion(Option<u32>);

impl ClearedSuspicion {
    /// Notes that the suspicion was wrong.
    pub(crate) fn note(&mut self) {
        self.0 = Some(0);
    }

    /// Adds a batch; returns whether it still counts.
    pub(crate) fn counts(&mut self, batch: Evidence, foreign_in_a_row: u32) -> bool {
        let accepted = self.0.map(|accepted| accepted.saturating_add(batch.accepted));
        let counts =
            |accepted: &u32| *accepted < CLEARED_MAX_ANSWERS && foreign_in_a_row < FOREIGN_MAX_ANSWERS;
        self.0 = accepted.filter(counts);
        self.0.is_some()
    }
}

impl AnswerShares {
    /// Adds what a batch showed and returns how the push service stands.
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
            // Rounded towards the good, so that no share becomes trouble by halving.
            (self.fine, self.troubled) = (self.fine.div_ceil(2), self.troubled / 2);
            self.accepted /= 2;
        }
    }

    /// Forgets all, because a breaker was opened or closed: what comes next speaks for itself.
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
