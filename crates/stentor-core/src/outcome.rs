//! What a push service answered, in words that no single vendor owns.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::PushToken;
pub use crate::reason::Reason;
use crate::time::Timestamp;

/// To whom an outcome applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeScope {
    /// This device only: may end its delivery.
    Device,
    /// This content, whoever gets it: may stop the campaign.
    Payload,
    /// Our key: parks the lane, never ends a delivery.
    Credential,
    /// The push service as a whole: parks the lane when it says for how long.
    Service,
}

/// What became of one attempt; never an error of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The push service took it over.
    Accepted,
    /// Taken over, and the device has a new address from now on.
    Replaced {
        /// The address to use from now on.
        token: PushToken,
    },
    /// Refused for good, as far as `scope` goes.
    Rejected {
        /// The cause, in the words of the ledger.
        reason: Reason,
        /// To whom it applies.
        scope: OutcomeScope,
    },
    /// The token is dead.
    Unregistered {
        /// `Unregistered` or `TokenExpired`.
        reason: Reason,
        /// Since when, if the push service tells: a later registration revives the token.
        since: Option<Timestamp>,
    },
    /// Slow down and try again.
    Throttled {
        /// Device, Credential or Service.
        scope: OutcomeScope,
        /// Not before this long from now.
        retry_after: Option<Duration>,
    },
    /// Not taken over, certainly; try again.
    Unavailable {
        /// The cause, in the words of the ledger.
        reason: Reason,
        /// Credential or Service.
        scope: OutcomeScope,
        /// Not before this long from now.
        retry_after: Option<Duration>,
    },
    /// Certainly never written to the push service, which is why it is no attempt; try again.
    Unsent {
        /// The cause, in the words of the ledger.
        reason: Reason,
        /// Not before this long from now, because the push service has asked another request to wait.
        retry_after: Option<Duration>,
    },
    /// Written, never answered: perhaps taken over, perhaps not.
    Unknown,
}
