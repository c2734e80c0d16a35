//! The error codes of the legacy API in XMPP, and the sentences beside them.

use super::CcsGeneration;
use crate::policy::{Dialect, ServiceError, WeightedMix, WeightedRefusal};

pub(super) const INVALID_JSON: &str = "INVALID_JSON";
pub(super) const BAD_ACK: &str = "BAD_ACK";
pub(super) const CONNECTION_DRAINING: &str = "CONNECTION_DRAINING";
pub(super) const UNAVAILABLE: &str = "SERVICE_UNAVAILABLE";
const BAD_REGISTRATION: &str = "BAD_REGISTRATION";
const UNREGISTERED: &str = "DEVICE_UNREGISTERED";
const SENDER_ID_MISMATCH: &str = "SENDER_ID_MISMATCH";
const INTERNAL: &str = "INTERNAL_SERVER_ERROR";
const DEVICE_RATE: &str = "DEVICE_MESSAGE_RATE_EXCEEDED";
const TOPICS_RATE: &str = "TOPICS_MESSAGE_RATE_EXCEEDED";

/// The codes that a policy can return, with their descriptions.
const ROWS: &[(&str, &str)] = &[
    (INVALID_JSON, "InvalidJson: the message cannot be taken"),
    (BAD_REGISTRATION, "Invalid token on 'to' field"),
    (UNREGISTERED, "The registration token is dead"),
    (SENDER_ID_MISMATCH, "The registration token belongs to another sender"),
    (UNAVAILABLE, "The service is unavailable for now"),
    (INTERNAL, "The service failed"),
    (DEVICE_RATE, "Downstream message rate exceeded for this registration id"),
    (TOPICS_RATE, "Message rate exceeded for this topic"),
    (CONNECTION_DRAINING, "Connection draining"),
    (BAD_ACK, "No message with this id waits for an acknowledgement"),
    ("INVALID_APNS_CREDENTIAL", "Credentials for APNs fail"),
];

pub(super) const DIALECT: Dialect =
    Dialect { knows: |code| sentence(code).is_some(), quota_code: DEVICE_RATE, realistic };

/// Returns the description of a code, or `None` when the service has no such code.
pub(super) fn sentence(code: &str) -> Option<&'static str> {
    ROWS.iter().find(|(known, _)| *known == code).map(|(_, sentence)| *sentence)
}

/// Returns the XMPP code and its description for a code of the HTTP API, or for one that is already of XMPP.
pub(super) fn in_xmpp(code: &str, generation: CcsGeneration) -> (&str, String) {
    let xmpp = match code {
        "InvalidRegistration" => BAD_REGISTRATION,
        "NotRegistered" => UNREGISTERED,
        "MissingRegistration" | "InvalidPackageName" | "MessageTooBig" | "InvalidDataKey" | "InvalidTtl" => {
            return (INVALID_JSON, format!("InvalidJson: {code}"));
        }
        // The older generation had one code for both.
        SENDER_ID_MISMATCH if generation == CcsGeneration::Gcm => BAD_REGISTRATION,
        other => other,
    };
    (xmpp, sentence(xmpp).unwrap_or_default().to_owned())
}

fn realistic() -> WeightedMix {
    let row = |code, weight, per_token| WeightedRefusal { error: ServiceError::new(code), weight, per_token };
    WeightedMix {
        accept: 9650,
        errors: vec![
            row(UNREGISTERED, 270, true),
            row(SENDER_ID_MISMATCH, 20, true),
            row(BAD_REGISTRATION, 10, true),
            row(DEVICE_RATE, 20, false),
            row(UNAVAILABLE, 20, false),
            row(INTERNAL, 10, false),
        ],
    }
}
