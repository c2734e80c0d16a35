//! The meanings of JetStream's error codes that our requests can cause. A queue holds nothing that the store does not, so none of them is
//! damage.

use stentor_core::ports::queue::QueueError;

use super::address::unavailable;
use crate::failure::FailureMeaning::{self, Busy, Conflict, Full, Lost, Misused, Refused, Retry};
use crate::failure::meaning_in;

const CODES: &[(u32, FailureMeaning)] = &[
    (10_002, Full),     // resource limits exceeded for account
    (10_003, Misused),  // bad request
    (10_004, Retry),    // incomplete results
    (10_005, Retry),    // no suitable peers for placement
    (10_006, Retry),    // JetStream clustering is not active
    (10_007, Retry),    // JetStream is not assigned yet
    (10_008, Retry),    // JetStream system temporarily unavailable
    (10_009, Retry),    // not the leader of the cluster
    (10_010, Refused),  // JetStream clustering required
    (10_012, Retry),    // consumer could not be made
    (10_013, Conflict), // consumer name already in use
    (10_014, Lost),     // consumer not found
    (10_023, Full),     // insufficient resources
    (10_025, Misused),  // invalid JSON
    (10_026, Full),     // maximum number of consumers
    (10_027, Full),     // maximum number of streams
    (10_028, Full),     // insufficient memory resources
    (10_037, Retry),    // no message found
    (10_039, Refused),  // JetStream not enabled for account
    (10_041, Retry),    // general failure of the cluster's log
    (10_043, Retry),    // sequence not found
    (10_047, Full),     // insufficient storage resources
    (10_049, Retry),    // stream could not be made
    (10_053, Full),     // limits of a stream
    (10_054, Misused),  // message exceeds the maximum
    (10_058, Refused),  // stream name already in use with another configuration
    (10_059, Lost),     // stream not found
    (10_065, Refused),  // subjects overlap with an existing stream
    (10_071, Conflict), // wrong last sequence
    (10_072, Full),     // temporary storage failed
    (10_074, Refused),  // replicas need a cluster
    (10_075, Retry),    // peer remap failed
    (10_076, Refused),  // JetStream not enabled
    (10_077, Retry),    // a stream's catch-all: the file system, or an existing message
    (10_099, Refused),  // consumers of a work queue overlap
    (10_104, Retry),    // consumer could not be stored
    (10_109, Refused),  // stream is sealed
    (10_110, Retry),    // stream could not be purged
    (10_113, Refused),  // a stream of this account needs a limit of bytes
    (10_118, Retry),    // stream is offline
    (10_119, Retry),    // consumer is offline
    (10_120, Refused),  // no limits are set for the account
    (10_122, Refused),  // a stream of this account may not have this number of bytes
    (10_148, Conflict), // consumer already exists
    (10_149, Lost),     // consumer does not exist
    (10_167, Busy),     // too many requests
    (10_194, Retry),    // stream is offline, with a reason
    (10_195, Retry),    // consumer is offline, with a reason
];

/// The client's text before the code.
const BEFORE_CODE: &str = "error code ";

/// Returns the meaning of a code; an unknown code is retried.
fn meaning(code: u32) -> FailureMeaning {
    meaning_in(CODES, &code).unwrap_or(Retry)
}

/// Finds the code in the text of an error: the client stores it in a different place for each kind of request.
fn code_in(words: &str) -> Option<u32> {
    let (_, rest) = words.rsplit_once(BEFORE_CODE)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Returns a failure with advice for the operator.
pub(super) fn described(error: &impl std::fmt::Display) -> QueueError {
    let words = error.to_string();
    let advice = match code_in(&words).map(meaning) {
        Some(Full) => ": its servers have no room: raise the account's or the server's limits, or free some",
        Some(Refused) => ": nothing is queued until an operator changes NATS, or queue.url and queue.stream",
        Some(Busy) => ": its servers have too much to do",
        Some(Misused) => ": please report it",
        _ => "",
    };
    unavailable(&format!("{words}{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_once_in_order_and_none_is_damage() {
        assert!(CODES.is_sorted_by(|(one, _), (next, _)| one < next));
        let never = [FailureMeaning::Damaged, FailureMeaning::Unreadable];
        assert!(CODES.iter().all(|(_, meaning)| !never.contains(meaning)));
        assert_eq!(meaning(1), Retry);
    }

    #[test]
    fn the_code_is_found_in_the_clients_words_and_says_what_helps() {
        let full = "JetStream error: insufficient storage resources (code 500, error code 10047)";
        assert_eq!(code_in(full), Some(10_047));
        assert!(described(&full).to_string().contains("no room"));
        let refused = "jetstream not enabled for account (code 503, error code 10039)";
        assert!(described(&refused).to_string().contains("operator"));
        for words in ["timed out", "error code ", "error code x"] {
            assert_eq!(code_in(words), None);
            assert!(described(&words).to_string().ends_with(words));
        }
    }

    #[test]
    fn each_code_of_the_table_means_what_is_to_be_done() {
        let of = |wanted| CODES.iter().filter(move |(_, meaning)| *meaning == wanted).map(|(code, _)| *code);
        assert_eq!(
            of(Full).collect::<Vec<_>>(),
            [10_002, 10_023, 10_026, 10_027, 10_028, 10_047, 10_053, 10_072]
        );
        assert_eq!(of(Lost).collect::<Vec<_>>(), [10_014, 10_059, 10_149], "what is gone is made again");
        assert_eq!(of(Conflict).collect::<Vec<_>>(), [10_013, 10_071, 10_148]);
        assert_eq!(of(Busy).collect::<Vec<_>>(), [10_167]);
        assert_eq!(of(Misused).collect::<Vec<_>>(), [10_003, 10_025, 10_054]);
        assert_eq!(
            of(Refused).collect::<Vec<_>>(),
            [10_010, 10_039, 10_058, 10_065, 10_074, 10_076, 10_099, 10_109, 10_113, 10_120, 10_122]
        );
    }
}
