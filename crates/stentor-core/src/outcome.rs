//! Responses of push services in vendor-neutral terms.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::PushToken;
pub use crate::reason::Reason;
use crate::time::Timestamp;

/// The scope of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeScope {
    /// This delivery only: the push service failed at it again, and it waits without the others.
    Delivery,
    /// This device only: may end its delivery.
    Device,
    /// This content, for every device: may stop the campaign.
    Payload,
    /// Our credential: parks the lane, never ends a delivery.
    Credential,
    /// The push service as a whole: parks the lane if the response states a duration.
    Service,
}

/// The outcome of one attempt; never an error of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The push service took it over.
    Accepted,
    /// Taken over, and the device has a new token from now on.
    Replaced {
        /// The address to use from now on.
        token: PushToken,
    },
    /// Refused permanently within `scope`.
    Rejected {
        /// The reason, as in the ledger.
        reason: Reason,
        /// The scope of the refusal.
        scope: OutcomeScope,
    },
    /// The token is dead.
    Unregistered {
        /// `Unregistered` or `TokenExpired`.
        reason: Reason,
        /// Time since which the token is dead, if reported by the push service: a later registration revives the token.
        since: Option<Timestamp>,
    },
    /// Slow down and try again.
    Throttled {
        /// Device, Credential or Service.
        scope: OutcomeScope,
        /// Shortest delay before a retry.
        retry_after: Option<Duration>,
    },
    /// Certainly not taken over; try again.
    Unavailable {
        /// The reason, as in the ledger.
        reason: Reason,
        /// Delivery, Device, Credential or Service.
        scope: OutcomeScope,
        /// Shortest delay before a retry.
        retry_after: Option<Duration>,
    },
    /// Certainly never written to the push service, and therefore not an attempt; try again.
    Unsent {
        /// The reason, as in the ledger.
        reason: Reason,
        /// Shortest delay before a retry, because the push service throttled another request.
        retry_after: Option<Duration>,
    },
    /// Certainly not taken over, because one of the push services behind the provider cannot take more now. It concerns neither the
    /// credential nor the deliveries through the others, and is not an attempt; try again.
    Deferred {
        /// The reason, as in the ledger.
        reason: Reason,
        /// Delay before a retry.
        retry_after: Duration,
    },
    /// Written, never answered: perhaps taken over, perhaps not.
    Unknown,
}
