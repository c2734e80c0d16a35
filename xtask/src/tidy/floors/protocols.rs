//! The floors of the crates for push services: wire formats, providers and emulators.

use super::Floors;

pub(super) const WIRE: Floors = Floors {
    folder: "crates/stentor-wire/src/",
    module: &[],
    floors: &[
        &["error", "value"],
        &["limits", "web_push"],
        &["frame", "xml"],
        &["content", "wsdl", "xmlrpc"],
        &["json", "protobuf", "soap"],
        &["mcs"],
        &["tests"],
    ],
    back: &[],
    parent: &[],
};

/// The common parts of all adapters are below them; FCM passes Apple's part of a message on in APNs' own words, and Live
/// Activities are requests to APNs.
pub(super) const PROVIDERS: Floors = Floors {
    folder: "crates/stentor-providers/src/",
    module: &[],
    floors: &[
        &[
            "attempt",
            "credential",
            "header_text",
            "json",
            "outbound",
            "preview",
            "retry_after",
            "schema",
            "subset",
            "trouble",
        ],
        &["descriptor", "replies", "vendor_http"],
        &["hosts", "multicast", "oauth"],
        &["apns", "gateway", "gcm", "hms", "null", "web_push", "wns"],
        &["fcm", "live_activity"],
        &["live_activity_channel", "live_activity_start"],
        &["registry"],
    ],
    back: &[],
    parent: &[
        ("ADAPTERS", "the list of all adapters, which look-ups read"),
        ("RefusedHost", "the refusal of a host, which each adapter returns"),
        ("Setup", "the surroundings of an adapter"),
    ],
};

pub(super) const EMULATORS: Floors = Floors {
    folder: "crates/stentor-emulators/src/",
    module: &[],
    floors: &[
        &["clock"],
        &["access_tokens", "credential", "dice", "error", "frames", "json", "prefetch"],
        &["files"],
        &["observer", "tls"],
        &["device", "listener", "policy"],
        &["faults"],
        &["service"],
        &["control"],
        &["config"],
        &["apns", "fcm", "sink", "web_push"],
        // The topics of the older generation are those of the newer one, and forms and tokens are read in one way.
        &["gcm", "hms", "wns"],
        &["ccs"],
        &["fuzzing"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const GATEWAY: Floors = Floors {
    folder: "crates/stentor-gateway/src/",
    module: &[],
    floors: &[
        &[
            "collapse",
            "device_turns",
            "identity",
            "limits",
            "receipt_waits",
            "session_outcomes",
            "stats",
            "upstream_window",
        ],
        &[
            "accepted_messages",
            "backlog",
            "batched_reads",
            "delivery_cursor",
            "device_changes",
            "held_messages",
            "sender_receipts",
            "upstream_broker",
            "web_push",
        ],
        &["device_reads", "session_state"],
        &["doubts"],
        &["parked_deliveries", "receipts", "registry"],
        &["delivery", "session_claims", "silence"],
        &["gateway"],
        &["device_logins"],
        &["ccs", "confirming", "device_keys", "device_topics", "registration", "session_checks", "upstream"],
        &["session"],
        &["autopush", "mcs", "mqtt"],
        &["client"],
    ],
    back: &[
        ("session_state", "delivery", "a message that is pending is a value of the loop that delivers it"),
        (
            "session_state",
            "doubts",
            "a session asks for room under its own lock, and is called out of the line from there",
        ),
        (
            "session_state",
            "silence",
            "a session has its sign of life; the clock that ends silent ones stands beside it",
        ),
        ("gateway", "session", "it opens sessions, which hold its state"),
        ("gateway", "mcs", "it remembers the programs that registered through it"),
    ],
    parent: &[],
};
