//! The adapter to GCM's legacy protocol, against its emulator.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use stentor_core::device::PushToken;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::Provider;
use stentor_emulators::device::TokenRegistration;
use stentor_emulators::policy::{Policy, ResetCode, ScriptedAnswer, ServiceError, Stall};
use stentor_emulators::{GcmConfig, GcmEmulator, GcmOptions, RunningGcm, TlsConfig};
use stentor_providers::gcm::Gcm;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{StillClock, always, batch, once, rejected, setup, unavailable, within};

const KEY: &str = "AIza-a-key";

struct Scene {
    emulator: RunningGcm,
    provider: Gcm,
    clock: Arc<StillClock>,
}

async fn start(policy: Policy) -> Scene {
    start_with(GcmConfig { policy, ..GcmConfig::default() }, KEY).await
}

/// Starts an emulator that knows one key, and an adapter that bears this one.
async fn start_with(config: GcmConfig, key: &str) -> Scene {
    let vendor = GcmOptions { keys: vec![KEY.to_owned()], ..config.vendor };
    let emulator = GcmEmulator::start(GcmConfig { vendor, ..config }).await.expect("an emulator");
    let scheme = if emulator.ca_pem().is_some() { "https" } else { "http" };
    let secret = json!({
        "api_key": key, "endpoint": format!("{scheme}://{}", emulator.addr()), "ca_pem": emulator.ca_pem(),
    });
    let clock = StillClock::new();
    let provider = Gcm::open(&secret.to_string(), &setup(&clock)).expect("a credential");
    Scene { emulator, provider, clock }
}

impl Scene {
    async fn send(&self, tokens: &[String]) -> Vec<Outcome> {
        within(60, self.provider.send(batch(tokens, &self.clock))).await
    }

    async fn send_one(&self, token: &str) -> Outcome {
        self.send(&[token.to_owned()]).await.remove(0)
    }
}

fn tokens(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("gcm-token:{n}")).collect()
}

#[tokio::test]
async fn a_thousand_devices_are_reached_with_one_request_over_http_2() {
    let scene = start(Policy::default()).await;
    let tokens = tokens(1_000);
    assert_eq!(scene.send(&tokens).await, vec![Outcome::Accepted; 1_000]);
    assert_eq!(scene.emulator.sums().wire.requests, 1);
    for token in &tokens {
        assert_eq!(scene.emulator.counts(token).accepted, 1, "{token}");
    }
}

#[tokio::test]
async fn every_error_of_the_table_becomes_the_outcome_of_its_token_in_its_place() {
    let device = |reason| rejected(reason, OutcomeScope::Device);
    let wait = Some(Duration::from_secs(3));
    let third_party = Outcome::Unavailable {
        reason: Reason::ThirdPartyAuth,
        scope: OutcomeScope::Device,
        retry_after: wait,
    };
    let rows = [
        ("NotRegistered", Outcome::Unregistered { reason: Reason::Unregistered, since: None }),
        ("InvalidRegistration", device(Reason::InvalidToken)),
        ("MismatchSenderId", device(Reason::SenderMismatch)),
        ("InvalidPackageName", device(Reason::SenderMismatch)),
        ("MessageTooBig", rejected(Reason::PayloadTooLarge, OutcomeScope::Payload)),
        ("InvalidDataKey", rejected(Reason::InvalidPayload, OutcomeScope::Payload)),
        ("InvalidTtl", rejected(Reason::InvalidPayload, OutcomeScope::Payload)),
        ("Unavailable", unavailable(Some(3))),
        ("InternalServerError", unavailable(Some(3))),
        ("DeviceMessageRateExceeded", Outcome::Throttled { scope: OutcomeScope::Device, retry_after: wait }),
        ("InvalidApnsCredential", third_party),
    ];
    let answer = |code: &str| {
        let error = ServiceError::new(code);
        // The longest `Retry-After` of the results is the header of them all.
        if code == "Unavailable" { error.retry_after_s(3) } else { error }
    };
    let scripts = rows.iter().map(|(code, _)| always(code, answer(code))).collect();
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    let mut tokens: Vec<String> = rows.iter().map(|(code, _)| (*code).to_owned()).collect();
    tokens.push("fine".to_owned());
    let outcomes = scene.send(&tokens).await;
    for ((code, wanted), outcome) in rows.iter().zip(&outcomes) {
        assert_eq!(outcome, wanted, "{code}");
    }
    assert_eq!(outcomes.last(), Some(&Outcome::Accepted));
}

#[tokio::test]
async fn a_larger_chunk_is_divided_and_its_outcomes_stand_in_their_places() {
    let scripts = vec![always("gone", ServiceError::new("NotRegistered"))];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    let mut tokens = tokens(1_501);
    tokens[1_500] = "gone".to_owned();
    let outcomes = scene.send(&tokens).await;
    assert_eq!(scene.emulator.sums().wire.requests, 2);
    let dead = Outcome::Unregistered { reason: Reason::Unregistered, since: None };
    assert_eq!(outcomes[..1_500], vec![Outcome::Accepted; 1_500]);
    assert_eq!(outcomes[1_500..], [dead]);
}

#[tokio::test]
async fn a_device_that_registered_again_gets_the_message_and_its_new_token_is_told() {
    let scene = start(Policy::default()).await;
    let devices = scene.emulator.devices();
    let named =
        |token: &str| TokenRegistration { token: Some(token.to_owned()), ..TokenRegistration::default() };
    devices.register(named("old"));
    devices.replace("old", named("new")).expect("a device");
    let outcomes = scene.send(&["old", "new"].map(str::to_owned)).await;
    let replaced = Outcome::Replaced { token: PushToken::new("new").expect("a token") };
    assert_eq!(outcomes, [replaced, Outcome::Accepted]);
}

#[tokio::test]
async fn a_request_that_is_refused_as_a_whole_is_refused_for_each_of_its_tokens() {
    let wait = Some(Duration::from_secs(5));
    let rows = [
        ("400", rejected(Reason::InvalidPayload, OutcomeScope::Payload)),
        ("401", rejected(Reason::CredentialRefused, OutcomeScope::Credential)),
        ("404", rejected(Reason::UnknownAnswer, OutcomeScope::Credential)),
        ("429", Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: wait }),
        ("500", unavailable(Some(5))),
        ("503", unavailable(Some(5))),
    ];
    let scripts =
        rows.iter().map(|(code, _)| always(code, ServiceError::new(*code).retry_after_s(5))).collect();
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    for (code, wanted) in rows {
        assert_eq!(scene.send(&["fine", code].map(str::to_owned)).await, vec![wanted; 2], "{code}");
    }
    assert_eq!(scene.emulator.counts("fine").accepted, 0);
}

#[tokio::test]
async fn a_wrong_key_parks_the_credential() {
    let scene = start_with(GcmConfig::default(), "AIza-another").await;
    let refused = rejected(Reason::CredentialRefused, OutcomeScope::Credential);
    assert_eq!(scene.send(&tokens(2)).await, vec![refused; 2]);
    assert_eq!(scene.emulator.sums().tokens.attempts, 0);
}

#[tokio::test]
async fn a_server_that_asks_to_wait_gets_no_more_requests() {
    let busy = always("busy", ServiceError::new("503").retry_after_s(9));
    let scene = start(Policy { scripts: vec![busy], ..Policy::default() }).await;
    for number in 0..10 {
        assert_eq!(scene.send_one("busy").await, unavailable(Some(9)), "{number}");
    }
    let mut next = scene.send_one("busy").await;
    while next == unavailable(Some(9)) {
        next = scene.send_one("busy").await;
    }
    let retry_after = Some(Duration::from_secs(9));
    assert_eq!(next, Outcome::Unsent { reason: Reason::Unavailable, retry_after });
}

#[tokio::test]
async fn a_batch_that_is_cut_off_or_broken_off_is_in_doubt() {
    let scripts = vec![once("broken", ScriptedAnswer::Reset(ResetCode::InternalError))];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    assert_eq!(scene.send(&["broken", "a"].map(str::to_owned)).await, vec![Outcome::Unknown; 2]);
    let stall = Some(Stall { all: true, ..Stall::default() });
    scene.emulator.set_policy(Policy { stall, ..Policy::default() }).expect("a policy");
    let tokens = tokens(3);
    let arrived = async {
        while scene.emulator.counts("gcm-token:2").attempts == 0 {
            tokio::task::yield_now().await;
        }
    };
    let sent = batch(&tokens, &scene.clock);
    let sending = scene.provider.send_until(sent, Box::new(drop), Box::pin(arrived));
    assert_eq!(within(20, sending).await, vec![Outcome::Unknown; 3]);
}

#[tokio::test]
async fn plain_http_2_works_for_trials_and_the_other_path_too() {
    let emulator = GcmEmulator::start(GcmConfig { tls: TlsConfig::Plaintext, ..GcmConfig::default() });
    let emulator = emulator.await.expect("an emulator");
    let endpoint = format!("http://{}", emulator.addr());
    let secret = json!({"api_key": "any\n", "endpoint": endpoint, "path": "/fcm/send"}).to_string();
    let clock = StillClock::new();
    let provider = Gcm::open(&secret, &setup(&clock)).expect("a credential");
    assert_eq!(within(20, provider.warm()).await, None);
    assert_eq!(within(20, provider.send(batch(&tokens(2), &clock))).await, vec![Outcome::Accepted; 2]);
    within(20, provider.close()).await;
    assert_eq!(provider.stats().connections, 0);
}

#[tokio::test]
async fn a_server_that_speaks_http_1_only_gets_nothing_and_the_trouble_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1_024]).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    let secret = json!({"api_key": "any", "endpoint": endpoint}).to_string();
    let clock = StillClock::new();
    let provider = Gcm::open(&secret, &setup(&clock)).expect("a credential");
    let unsent = Outcome::Unsent { reason: Reason::Unavailable, retry_after: None };
    assert_eq!(within(30, provider.send(batch(&tokens(2), &clock))).await, vec![unsent; 2]);
    assert!(provider.trouble().is_some());
    server.abort();
}

#[tokio::test]
async fn a_device_group_is_sent_to_by_its_notification_key() {
    let scene = start_with(GcmConfig { tls: TlsConfig::Plaintext, ..GcmConfig::default() }, KEY).await;
    let members = ["a", "b"];
    let body = json!({"operation": "create", "notification_key_name": "me", "registration_ids": members});
    let url = format!("http://{}/gcm/notification", scene.emulator.addr());
    let made = reqwest::Client::new().post(url).header("authorization", format!("key={KEY}"));
    let made = made.header("project_id", "1").json(&body).send().await.expect("sent");
    let made: serde_json::Value = made.json().await.expect("JSON");
    let key = made["notification_key"].as_str().expect("a key");
    assert_eq!(scene.send_one(key).await, Outcome::Accepted);
    for member in members {
        assert_eq!(scene.emulator.counts(member).accepted, 1, "{member}");
    }
}
