//! The answers of push services that devices name, and their meaning.

use std::time::Duration;

use stentor_core::outcome::{Outcome, OutcomeScope, Reason};

use super::pace::HostVerdict;

/// The answer to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Taken over.
    Accepted,
    /// The address has ended.
    Gone,
    /// The address belongs to another sender.
    Foreign,
    /// Taken, and dropped: the user has switched notifications off, or the device is away and the message may not wait.
    Dropped,
    /// The body is larger than this push service takes.
    TooLarge,
    /// The request is malformed.
    Malformed,
    /// The push service refuses the sender, at this address or at all.
    Refused,
    /// Too many messages.
    Throttled(Option<Duration>),
    /// The push service cannot take messages now.
    Unavailable(Option<Duration>),
    /// An answer that no document defines.
    Undefined,
    /// The push service cannot be reached; the request was not sent.
    Unreached,
    /// The outbound policy refuses all addresses of the push service.
    AddressRefused,
    /// The request cannot be written, because of the address or the keys in the token.
    Unwritten,
    /// Sent and never answered.
    Unanswered,
}

/// Returns the outcome of an answer. The verdict on its push service says whether a bad answer concerns all its devices: such a delivery
/// waits without limit, because its device is not the cause.
pub(crate) fn outcome(answer: Answer, verdict: &HostVerdict) -> Outcome {
    let deferred = |reason| Outcome::Deferred { reason, retry_after: verdict.wait };
    match answer {
        Answer::Accepted => Outcome::Accepted,
        Answer::Gone => Outcome::Unregistered { reason: Reason::Unregistered, since: None },
        Answer::Foreign => rejected(Reason::SenderMismatch, OutcomeScope::Device),
        Answer::Dropped => rejected(Reason::Dropped, OutcomeScope::Device),
        // Another push service may take larger bodies, so that this one stops no campaign.
        Answer::TooLarge => rejected(Reason::PayloadTooLarge, OutcomeScope::Device),
        Answer::Malformed => rejected(Reason::InvalidPayload, OutcomeScope::Payload),
        Answer::Unwritten => rejected(Reason::InvalidToken, OutcomeScope::Device),
        Answer::AddressRefused => rejected(Reason::AddressRefused, OutcomeScope::Device),
        Answer::Refused if verdict.concerns_all => deferred(Reason::CredentialRefused),
        Answer::Refused => rejected(Reason::SenderMismatch, OutcomeScope::Device),
        Answer::Throttled(_) if verdict.concerns_all => deferred(Reason::Throttled),
        Answer::Throttled(retry_after) => Outcome::Throttled { scope: OutcomeScope::Device, retry_after },
        Answer::Unavailable(_) if verdict.concerns_all => deferred(Reason::Unavailable),
        Answer::Unavailable(retry_after) => unavailable(Reason::Unavailable, retry_after),
        Answer::Undefined => unavailable(Reason::UnknownAnswer, None),
        Answer::Unreached => deferred(Reason::Unavailable),
        Answer::Unanswered => Outcome::Unknown,
    }
}

fn rejected(reason: Reason, scope: OutcomeScope) -> Outcome {
    Outcome::Rejected { reason, scope }
}

fn unavailable(reason: Reason, retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason, scope: OutcomeScope::Device, retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(7);

    fn outcome_of(answer: Answer, concerns_all: bool) -> Outcome {
        outcome(answer, &HostVerdict { concerns_all, wait: WAIT })
    }

    #[test]
    fn an_answer_about_a_device_ends_its_delivery_whatever_the_push_service_says_to_others() {
        for concerns_all in [false, true] {
            let outcome_of = |answer| outcome_of(answer, concerns_all);
            let gone = Outcome::Unregistered { reason: Reason::Unregistered, since: None };
            assert_eq!(outcome_of(Answer::Accepted), Outcome::Accepted);
            assert_eq!(outcome_of(Answer::Gone), gone);
            assert_eq!(outcome_of(Answer::TooLarge), rejected(Reason::PayloadTooLarge, OutcomeScope::Device));
            assert_eq!(
                outcome_of(Answer::Malformed),
                rejected(Reason::InvalidPayload, OutcomeScope::Payload)
            );
            assert_eq!(outcome_of(Answer::Undefined), unavailable(Reason::UnknownAnswer, None));
        }
    }

    #[test]
    fn a_bad_answer_of_a_push_service_to_most_requests_only_delays_them() {
        for (answer, reason) in [
            (Answer::Refused, Reason::CredentialRefused),
            (Answer::Throttled(None), Reason::Throttled),
            (Answer::Unavailable(None), Reason::Unavailable),
        ] {
            assert_eq!(
                outcome_of(answer, true),
                Outcome::Deferred { reason, retry_after: WAIT },
                "{answer:?}"
            );
        }
        assert_eq!(
            outcome_of(Answer::Refused, false),
            rejected(Reason::SenderMismatch, OutcomeScope::Device)
        );
        assert_eq!(outcome_of(Answer::Unavailable(None), false), unavailable(Reason::Unavailable, None));
        let throttled = Outcome::Throttled { scope: OutcomeScope::Device, retry_after: None };
        assert_eq!(outcome_of(Answer::Throttled(None), false), throttled);
    }
}
