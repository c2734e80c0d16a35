//! What the emulators are told to answer, and what that means for each token.
//!
//! Whether a token is dead shows in how it begins, so that the demo knows it from neither the ledger nor the emulators.
//! Passing trouble meets any token at any attempt. A project is never throttled: without a `Retry-After` a sender has
//! to rest for a whole minute then, and a demo would show little else.

use super::DemoPolicy;
use super::fleet::Half;
use serde_json::{Value, json};

/// Tokens that begin so are refused for good. Of FCM's, each letter begins one token in 64.
const DEAD_FCM: &[(&str, &[&str])] = &[
    ("UNREGISTERED", &["A", "B"]),
    ("SENDER_ID_MISMATCH", &["Ca", "Cb", "Cc", "Cd", "Ce", "Cf", "Cg", "Ch"]),
];
/// Of APNs' tokens, each pair of digits begins one in 256.
const DEAD_APNS: &[(&str, &[&str])] = &[
    ("Unregistered", &["00", "01", "02", "03", "04"]),
    ("BadDeviceToken", &["10", "11"]),
    ("DeviceTokenNotForTopic", &["200", "201", "202", "203", "204", "205", "206", "207"]),
];
/// Of 10,000 attempts, so many meet this. Few enough that hardly any meets it three times in a row.
const PASSING_FCM: &[(&str, u32)] = &[("UNAVAILABLE", 10), ("INTERNAL", 5)];
const PASSING_APNS: &[(&str, u32)] =
    &[("ServiceUnavailable", 10), ("InternalServerError", 5), ("TooManyRequests", 5)];
const ATTEMPTS: u32 = 10_000;

impl DemoPolicy {
    /// The policy of an emulator as JSON.
    pub(crate) fn of(self, half: Half) -> Value {
        if self == Self::AcceptAll {
            return json!({});
        }
        let scripts = dead(half).iter().flat_map(|(code, prefixes)| {
            prefixes.iter().map(move |prefix| json!({"prefix": prefix, "then": {"error": {"code": code}}}))
        });
        let passing = passing(half);
        let errors = passing.iter().map(|(code, weight)| json!({"error": {"code": code}, "weight": weight}));
        let accept = ATTEMPTS - passing.iter().map(|(_, weight)| weight).sum::<u32>();
        json!({
            "scripts": scripts.collect::<Vec<_>>(),
            "mix": {"accept": accept, "errors": errors.collect::<Vec<_>>()},
        })
    }

    /// Tells whether a token is refused for good.
    pub(crate) fn is_dead(self, half: Half, token: &str) -> bool {
        let mut prefixes = dead(half).iter().flat_map(|(_, prefixes)| *prefixes);
        self == Self::Realistic && prefixes.any(|prefix| token.starts_with(prefix))
    }
}

fn dead(half: Half) -> &'static [(&'static str, &'static [&'static str])] {
    match half {
        Half::Fcm => DEAD_FCM,
        Half::Apns => DEAD_APNS,
    }
}

fn passing(half: Half) -> &'static [(&'static str, u32)] {
    match half {
        Half::Fcm => PASSING_FCM,
        Half::Apns => PASSING_APNS,
    }
}

#[cfg(test)]
mod tests;
