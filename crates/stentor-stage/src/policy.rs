//! The response policy of the emulators, and its meaning for each token.
//!
//! A dead token is recognizable by its prefix, so that the demo knows it independently of the ledger and the emulators. Passing errors
//! affect any token at any attempt. A project is never throttled: without a `Retry-After` a sender then has to rest for a whole minute, and
//! a demo would show little else.

use crate::devices::StagedService;
use serde_json::{Value, json};

/// The response policy of the emulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerPolicy {
    /// A few dead tokens, a few passing errors.
    Realistic,
    /// Success, always.
    AcceptAll,
}

/// One kind of permanent refusal.
struct Dead {
    code: &'static str,
    /// The field that FCM blames: the same code without it would concern the payload, and so every device.
    field: Option<&'static str>,
    /// The prefixes of the tokens that it applies to.
    prefixes: &'static [&'static str],
}

/// Of FCM's tokens, each letter begins one in 64.
const DEAD_FCM: &[Dead] = &[
    Dead { code: "UNREGISTERED", field: None, prefixes: &["A", "B"] },
    Dead {
        code: "SENDER_ID_MISMATCH",
        field: None,
        prefixes: &["Ca", "Cb", "Cc", "Cd", "Ce", "Cf", "Cg", "Ch"],
    },
    Dead {
        code: "INVALID_ARGUMENT",
        field: Some("message.token"),
        prefixes: &["Ci", "Cj", "Ck", "Cl", "Cm", "Cn", "Co", "Cp"],
    },
];
/// Of APNs' tokens, each pair of digits begins one in 256.
const DEAD_APNS: &[Dead] = &[
    Dead { code: "Unregistered", field: None, prefixes: &["00", "01", "02", "03", "04"] },
    Dead { code: "BadDeviceToken", field: None, prefixes: &["10", "11"] },
    Dead {
        code: "DeviceTokenNotForTopic",
        field: None,
        prefixes: &["200", "201", "202", "203", "204", "205", "206", "207"],
    },
];
/// Of Huawei's tokens, each letter behind the common beginning stands in one of 64.
const DEAD_HMS: &[Dead] = &[Dead { code: "80300007", field: None, prefixes: &["IQAAAACyA", "IQAAAACyB"] }];
/// Likewise of GCM's.
const DEAD_GCM: &[Dead] = &[
    Dead { code: "NotRegistered", field: None, prefixes: &["APA91bA", "APA91bB"] },
    Dead {
        code: "MismatchSenderId",
        field: None,
        prefixes: &[
            "APA91bCa", "APA91bCb", "APA91bCc", "APA91bCd", "APA91bCe", "APA91bCf", "APA91bCg", "APA91bCh",
        ],
    },
    Dead {
        code: "InvalidRegistration",
        field: None,
        prefixes: &[
            "APA91bCi", "APA91bCj", "APA91bCk", "APA91bCl", "APA91bCm", "APA91bCn", "APA91bCo", "APA91bCp",
        ],
    },
];
/// Of the paths of subscriptions, each pair of digits begins one in 256.
const DEAD_WEB_PUSH: &[Dead] = &[
    Dead { code: "Gone", field: None, prefixes: &["00", "01", "02", "03", "04"] },
    Dead { code: "NotFound", field: None, prefixes: &["10", "11"] },
];
/// Of the tokens of WNS, each letter behind the common beginning stands in one of 64.
const DEAD_WNS: &[Dead] = &[
    Dead { code: "Gone", field: None, prefixes: &["AwYAAABA"] },
    Dead { code: "NotFound", field: None, prefixes: &["AwYAAABB"] },
];
/// Passing errors with their number per 10,000 attempts; few enough that a device hardly ever meets three in a row.
const PASSING_FCM: &[(&str, u32)] = &[("UNAVAILABLE", 10), ("INTERNAL", 5)];
const PASSING_APNS: &[(&str, u32)] =
    &[("ServiceUnavailable", 10), ("InternalServerError", 5), ("TooManyRequests", 5)];
const PASSING_GCM: &[(&str, u32)] = &[("Unavailable", 10), ("InternalServerError", 5)];
const PASSING_WEB_PUSH: &[(&str, u32)] = &[("Unavailable", 10), ("InternalError", 5)];
const PASSING_WNS: &[(&str, u32)] = &[("Unavailable", 10), ("InternalError", 5)];
const ATTEMPTS: u32 = 10_000;
/// The wait that passing errors of APNs ask for: without one, a second 5xx delays its delivery by 15 minutes, longer than a demo.
const RETRY_AFTER_APNS_SECONDS: u32 = 1;
/// Passing errors of Huawei with their number per 1,000,000 attempts: each refuses a request with up to a thousand tokens.
const PASSING_HMS: &[(&str, u32)] = &[("81000001", 20), ("502", 10)];
const ATTEMPTS_HMS: u32 = 1_000_000;

impl AnswerPolicy {
    /// The policy of an emulator as JSON.
    pub fn of(self, service: StagedService) -> Value {
        if self == Self::AcceptAll {
            return json!({});
        }
        let scripts = dead(service).iter().flat_map(|Dead { code, field, prefixes }| {
            let error = json!({"code": code, "field": field});
            prefixes.iter().map(move |prefix| json!({"prefix": prefix, "then": {"error": error}}))
        });
        let passing = passing(service);
        let wait = (service == StagedService::Apns).then_some(RETRY_AFTER_APNS_SECONDS);
        let errors = passing
            .iter()
            .map(|(code, weight)| json!({"error": {"code": code, "retry_after_s": wait}, "weight": weight}));
        let accept = attempts(service) - passing.iter().map(|(_, weight)| weight).sum::<u32>();
        json!({
            "scripts": scripts.collect::<Vec<_>>(),
            "mix": {"accept": accept, "errors": errors.collect::<Vec<_>>()},
        })
    }

    /// Returns true if a token is refused for good.
    pub fn is_dead(self, service: StagedService, token: &str) -> bool {
        let mut prefixes = dead(service).iter().flat_map(|dead| dead.prefixes);
        self == Self::Realistic && prefixes.any(|prefix| token.starts_with(prefix))
    }
}

fn dead(service: StagedService) -> &'static [Dead] {
    match service {
        StagedService::Fcm => DEAD_FCM,
        StagedService::Apns => DEAD_APNS,
        StagedService::Hms => DEAD_HMS,
        StagedService::Gcm => DEAD_GCM,
        StagedService::WebPush => DEAD_WEB_PUSH,
        StagedService::Wns => DEAD_WNS,
    }
}

fn passing(service: StagedService) -> &'static [(&'static str, u32)] {
    match service {
        StagedService::Fcm => PASSING_FCM,
        StagedService::Apns => PASSING_APNS,
        StagedService::Hms => PASSING_HMS,
        StagedService::Gcm => PASSING_GCM,
        StagedService::WebPush => PASSING_WEB_PUSH,
        StagedService::Wns => PASSING_WNS,
    }
}

const fn attempts(service: StagedService) -> u32 {
    match service {
        StagedService::Hms => ATTEMPTS_HMS,
        _ => ATTEMPTS,
    }
}

#[cfg(test)]
mod tests;
