//! The adapter to APNs, against its emulator.

use std::sync::Arc;
use std::time::Duration;

use rcgen::KeyPair;
use serde_json::json;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::{Batch, Provider};
use stentor_core::time::Timestamp;
use stentor_emulators::apns::ApnsKey;
use stentor_emulators::policy::{
    AfterGoAway, GoAway, Policy, ScriptedAnswer, ServiceError, StreamLimitPolicy,
};
use stentor_emulators::{ApnsConfig, ApnsEmulator, ApnsOptions, RunningApns};
use stentor_providers::apns::{Apns, TO_APPS};

use crate::support::{StillClock, always, batch, once, rejected, setup, unavailable, within};

struct Scene {
    emulator: RunningApns,
    provider: Apns,
    clock: Arc<StillClock>,
}

async fn start(policy: Policy) -> Scene {
    start_with(ApnsConfig { policy, ..ApnsConfig::default() }).await
}

async fn start_with(config: ApnsConfig) -> Scene {
    start_at(StillClock::new(), config).await
}

async fn start_at(clock: Arc<StillClock>, config: ApnsConfig) -> Scene {
    let key = KeyPair::generate().expect("a key");
    let known = ApnsKey {
        team_id: "TEAM012345".into(),
        key_id: "KEY0123456".into(),
        public_key_pem: Some(key.public_key_pem()),
    };
    let config = ApnsConfig { vendor: ApnsOptions { keys: vec![known], ..config.vendor }, ..config };
    let emulator = ApnsEmulator::start(config).await.expect("an emulator");
    let secret = json!({
        "key_p8": key.serialize_pem(),
        "key_id": "KEY0123456",
        "team_id": "TEAM012345",
        "bundle_id": "com.example.app",
        "endpoint": format!("https://{}", emulator.addr()),
        "server_name": "api.push.apple.com",
        "ca_pem": emulator.ca_pem().expect("TLS"),
    });
    let provider = Apns::open(&secret.to_string(), &setup(&clock), &TO_APPS).expect("a credential");
    Scene { emulator, provider, clock }
}

impl Scene {
    async fn send(&self, tokens: &[String]) -> Vec<Outcome> {
        within(60, self.provider.send(batch(tokens, &self.clock))).await
    }
}

fn tokens(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{n:064x}")).collect()
}

#[tokio::test]
async fn a_thousand_devices_are_each_reached_exactly_once() {
    let scene = start(Policy::default()).await;
    let tokens = tokens(1_000);
    assert_eq!(scene.send(&tokens).await, vec![Outcome::Accepted; 1_000]);
    for token in &tokens {
        assert_eq!(scene.emulator.counts(token).accepted, 1, "{token}");
    }
    assert_eq!(scene.emulator.sums().tokens.attempts, 1_000);
}

#[tokio::test]
async fn every_reason_becomes_its_outcome_in_its_place() {
    let dead_since = 1_700_000_000_000;
    let dead = |reason| Outcome::Unregistered { reason, since: Some(Timestamp::from_millis(dead_since)) };
    let refused = rejected(Reason::CredentialRefused, OutcomeScope::Credential);
    let payload = rejected(Reason::InvalidPayload, OutcomeScope::Payload);
    let throttled = |scope, seconds: Option<u64>| Outcome::Throttled {
        scope,
        retry_after: seconds.map(Duration::from_secs),
    };
    let rows = [
        ("Unregistered", dead(Reason::Unregistered)),
        ("ExpiredToken", dead(Reason::TokenExpired)),
        ("BadDeviceToken", rejected(Reason::InvalidToken, OutcomeScope::Device)),
        ("DeviceTokenNotForTopic", rejected(Reason::SenderMismatch, OutcomeScope::Device)),
        ("PayloadTooLarge", rejected(Reason::PayloadTooLarge, OutcomeScope::Payload)),
        ("BadCollapseId", payload.clone()),
        ("BadPriority", payload),
        ("TopicDisallowed", refused.clone()),
        ("InvalidProviderToken", refused.clone()),
        ("Forbidden", refused),
        ("TooManyRequests", throttled(OutcomeScope::Device, None)),
        ("TooManyProviderTokenUpdates", throttled(OutcomeScope::Credential, Some(60))),
        ("InternalServerError", unavailable(None)),
        ("ServiceUnavailable", unavailable(None)),
        ("Shutdown", unavailable(None)),
    ];
    let tokens = tokens(rows.len() + 1);
    let refusal =
        |reason: &str| ServiceError { timestamp_ms: Some(dead_since as u64), ..ServiceError::new(reason) };
    let scripts =
        rows.iter().zip(&tokens).map(|((reason, _), token)| always(token, refusal(reason))).collect();
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    let outcomes = scene.send(&tokens).await;
    for ((reason, wanted), outcome) in rows.iter().zip(&outcomes) {
        assert_eq!(outcome, wanted, "{reason}");
    }
    assert_eq!(outcomes.last(), Some(&Outcome::Accepted));
}

#[tokio::test]
async fn retry_after_is_passed_on() {
    let token = tokens(1);
    let scripts = vec![always(&token[0], ServiceError::new("ServiceUnavailable").retry_after_s(9))];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    assert_eq!(scene.send(&token).await, [unavailable(Some(9))]);
}

#[tokio::test]
async fn a_repeated_attempt_that_fails_again_waits_alone_for_a_quarter_of_an_hour() {
    let token = tokens(1);
    let scripts = vec![always(&token[0], ServiceError::new("InternalServerError"))];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    assert_eq!(scene.send(&token).await, [unavailable(None)]);
    let again = Batch { repeated: true, answered_before: true, ..batch(&token, &scene.clock) };
    let later = Outcome::Unavailable {
        reason: Reason::Unavailable,
        scope: OutcomeScope::Delivery,
        retry_after: Some(Duration::from_secs(900)),
    };
    assert_eq!(within(60, scene.provider.send(again)).await, [later]);
}

#[tokio::test]
async fn a_token_that_cannot_be_apple_s_is_rejected_without_a_request() {
    let scene = start(Policy::default()).await;
    let mixed = ["nonsense".to_owned(), tokens(1).remove(0), "z".repeat(64)];
    let malformed = rejected(Reason::InvalidToken, OutcomeScope::Device);
    assert_eq!(scene.send(&mixed).await, [malformed.clone(), Outcome::Accepted, malformed]);
    assert_eq!(scene.emulator.sums().wire.requests, 1);
}

#[tokio::test]
async fn tokens_of_every_length_are_reached() {
    let scene = start(Policy::default()).await;
    let tokens = [64, 160, 202, 1_000, 4_096].map(|digits| "5e".repeat(digits / 2));
    assert_eq!(scene.send(&tokens).await, vec![Outcome::Accepted; 5]);
    for token in &tokens {
        assert_eq!(scene.emulator.counts(token).accepted, 1, "{} digits", token.len());
    }
}

#[tokio::test]
async fn the_stream_limit_of_a_fresh_connection_and_after_a_rejection_is_one() {
    let tokens = tokens(300);
    let scripts = vec![
        always(&tokens[20], ServiceError::new("BadDeviceToken")),
        always(&tokens[200], ServiceError::new("Unregistered")),
    ];
    let streams =
        StreamLimitPolicy { initial: Some(1), after_reject: Some(1), ..StreamLimitPolicy::default() };
    let scene = start(Policy { scripts, streams: Some(streams), ..Policy::default() }).await;
    let outcomes = scene.send(&tokens).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Accepted).count(), 298);
    let totals = scene.emulator.sums().tokens;
    assert_eq!((totals.accepted, totals.rejected, totals.tokens_accepted_twice), (298, 2, 0));
}

#[tokio::test]
async fn a_goaway_with_a_reason_loses_and_doubles_nothing() {
    let goaway = GoAway {
        after_requests: 100,
        unprocessed: 30,
        then: AfterGoAway::Linger,
        debug: r#"{"reason":"Shutdown"}"#.into(),
        connections: Some(3),
        ..GoAway::default()
    };
    let scene = start(Policy { goaway: Some(goaway), ..Policy::default() }).await;
    assert_eq!(scene.send(&tokens(1_000)).await, vec![Outcome::Accepted; 1_000]);
    let totals = scene.emulator.sums().tokens;
    assert_eq!((totals.accepted, totals.tokens_accepted_twice), (1_000, 0));
}

#[tokio::test]
async fn a_provider_token_is_renewed_at_fifty_minutes_and_not_before() {
    let config = ApnsConfig {
        vendor: ApnsOptions { min_token_renewal_s: 3_600, ..ApnsOptions::default() },
        ..ApnsConfig::default()
    };
    let scene = start_at(StillClock::minutes_ago(52), config).await;
    assert_eq!(scene.send(&tokens(1)).await, [Outcome::Accepted]);
    scene.clock.advance(Duration::from_secs(49 * 60));
    assert_eq!(
        scene.send(&tokens(1)).await,
        [Outcome::Accepted],
        "the same token: the emulator minds changes"
    );
    scene.clock.advance(Duration::from_secs(2 * 60));
    let too_soon =
        Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: Some(Duration::from_secs(60)) };
    assert_eq!(scene.send(&tokens(1)).await, [too_soon], "another token");
}

#[tokio::test]
async fn an_expired_provider_token_is_replaced_and_its_requests_sent_again() {
    let token = tokens(1);
    let scripts = vec![once(&token[0], ScriptedAnswer::Error(ServiceError::new("ExpiredProviderToken")))];
    let policy = Policy { scripts, ..Policy::default() };
    let config = ApnsConfig {
        policy,
        vendor: ApnsOptions { min_token_renewal_s: 0, ..ApnsOptions::default() },
        ..ApnsConfig::default()
    };
    let scene = start_at(StillClock::minutes_ago(25), config).await;
    scene.send(&tokens(2)[1..]).await;
    scene.clock.advance(Duration::from_secs(21 * 60));
    assert_eq!(scene.send(&token).await, [Outcome::Accepted]);
    assert_eq!(scene.emulator.counts(&token[0]).attempts, 2);
}

#[tokio::test]
async fn a_young_provider_token_is_never_replaced() {
    let token = tokens(1);
    let scripts = vec![once(&token[0], ScriptedAnswer::Error(ServiceError::new("ExpiredProviderToken")))];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    let later = Outcome::Unavailable {
        reason: Reason::CredentialRefused,
        scope: OutcomeScope::Credential,
        retry_after: None,
    };
    assert_eq!(scene.send(&token).await, [later]);
    assert_eq!(scene.emulator.counts(&token[0]).attempts, 1);
}

#[tokio::test]
async fn an_endpoint_at_which_nobody_listens_is_named_with_the_cause() {
    let clock = StillClock::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let key = KeyPair::generate().expect("a key").serialize_pem();
    let secret = json!({"key_p8": key, "key_id": "KEY0123456", "team_id": "TEAM012345",
        "bundle_id": "com.example.app", "endpoint": format!("http://{host}")});
    let provider = Apns::open(&secret.to_string(), &setup(&clock), &TO_APPS).expect("a credential");
    let trouble = within(20, provider.check()).await.expect_err("nobody listens");
    assert_eq!(trouble.host, host);
    assert!(trouble.cause.contains(&host) && trouble.cause.contains("refused"), "{trouble}");
    within(20, provider.send(batch(&tokens(2), &clock))).await;
    assert_eq!(provider.trouble(), Some(trouble));
}
