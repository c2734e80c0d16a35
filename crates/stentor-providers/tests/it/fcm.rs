//! The adapter to FCM, against its emulator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::{Batch, Provider};
use stentor_emulators::faults::InjectedFault;
use stentor_emulators::fcm::{FcmAuth, ServiceAccount};
use stentor_emulators::policy::{
    AnswerLatency, GoAway, Policy, ResetCode, Script, ScriptedAnswer, ServiceError, StreamLimitPolicy,
    StreamStep,
};
use stentor_emulators::{FcmConfig, FcmEmulator, FcmOptions, RunningFcm, TlsConfig};
use stentor_providers::fcm::Fcm;

use crate::support::{Account, StillClock, always, batch, once, rejected, setup, unavailable, within};

struct Scene {
    emulator: RunningFcm,
    provider: Fcm,
    clock: Arc<StillClock>,
}

async fn start(policy: Policy) -> Scene {
    start_with(FcmConfig { policy, ..FcmConfig::default() }).await
}

async fn start_with(config: FcmConfig) -> Scene {
    let account = Account::new("https://replaced.example/token");
    let public_key_pem = account.public_key_pem.clone();
    let client_email = "sender@a-project.iam.gserviceaccount.com".to_owned();
    let auth =
        FcmAuth { accounts: vec![ServiceAccount { client_email, public_key_pem }], ..config.vendor.auth };
    let emulator = FcmEmulator::start(FcmConfig { vendor: FcmOptions { auth, ..config.vendor }, ..config })
        .await
        .expect("an emulator");
    let endpoint = format!("https://{}", emulator.addr());
    let secret = json!({
        "service_account": account.json,
        "endpoint": endpoint,
        "token_endpoint": format!("{endpoint}/token"),
        "ca_pem": emulator.ca_pem().expect("TLS"),
    });
    let clock = StillClock::new();
    let provider = Fcm::open(&secret.to_string(), &setup(&clock)).expect("a credential");
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

/// Installation ids in the form that Firebase's SDKs give them.
const FIDS: [&str; 2] = ["cJ4vGd1wRk2aB-3_xYz09Q", "dQ90zYx_3-Ba2kRw1dGv4J"];

fn tokens(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("fcm-token:{n}")).collect()
}

#[tokio::test]
async fn a_thousand_devices_are_each_reached_exactly_once() {
    let scene = start(Policy::default()).await;
    let tokens = tokens(1_000);
    let outcomes = scene.send(&tokens).await;
    assert_eq!(outcomes, vec![Outcome::Accepted; 1_000]);
    for token in &tokens {
        assert_eq!(scene.emulator.counts(token).accepted, 1, "{token}");
    }
    assert_eq!(scene.emulator.sums().tokens.attempts, 1_000);
}

#[tokio::test]
async fn every_error_of_the_table_becomes_its_outcome_in_its_place() {
    let (reason, scope) = (Reason::ThirdPartyAuth, OutcomeScope::Device);
    let third_party = Outcome::Unavailable { reason, scope, retry_after: None };
    let rows = [
        ("UNREGISTERED", Outcome::Unregistered { reason: Reason::Unregistered, since: None }),
        ("INVALID_ARGUMENT", rejected(Reason::InvalidPayload, OutcomeScope::Payload)),
        ("SENDER_ID_MISMATCH", rejected(Reason::SenderMismatch, OutcomeScope::Device)),
        ("UNAVAILABLE", unavailable(None)),
        ("INTERNAL", unavailable(None)),
        ("THIRD_PARTY_AUTH_ERROR", third_party.clone()),
        ("APNS_AUTH_ERROR", third_party.clone()),
        ("PERMISSION_DENIED", rejected(Reason::CredentialRefused, OutcomeScope::Credential)),
        ("UNAUTHENTICATED", rejected(Reason::CredentialRefused, OutcomeScope::Credential)),
        ("NOT_FOUND", rejected(Reason::UnknownAnswer, OutcomeScope::Credential)),
    ];
    let scripts = rows.iter().map(|(code, _)| always(code, ServiceError::new(*code))).collect();
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
async fn a_token_that_fcm_calls_malformed_ends_one_delivery_only() {
    let scene = start(Policy::default()).await;
    let outcomes = scene.send(&["no{token}".to_owned(), "fine".to_owned()]).await;
    assert_eq!(outcomes, [rejected(Reason::InvalidToken, OutcomeScope::Device), Outcome::Accepted]);
}

#[tokio::test]
async fn installation_ids_and_tokens_are_each_reached_under_their_name() {
    let scripts = vec![always(FIDS[1], ServiceError::new("UNREGISTERED"))];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    let mixed = [FIDS[0], "fcm-token:1", FIDS[1]].map(ToOwned::to_owned);
    let (scope, reason) = (OutcomeScope::Device, Reason::Unregistered);
    let later = Outcome::Unavailable { reason, scope, retry_after: Some(Duration::from_secs(60)) };
    assert_eq!(scene.send(&mixed).await, [Outcome::Accepted, Outcome::Accepted, later]);
    for address in &mixed[..2] {
        assert_eq!(scene.emulator.counts(address).accepted, 1, "{address}");
    }
    let again = Batch { repeated: true, answered_before: true, ..batch(&mixed, &scene.clock) };
    let since = Some(again.now.minus(Duration::from_secs(86_400)));
    let outcomes = within(60, scene.provider.send(again)).await;
    assert_eq!(outcomes[2], Outcome::Unregistered { reason, since });
}

/// Returns ten tokens with this prefix.
fn ten(prefix: &str) -> Vec<String> {
    (0..10).map(|n| format!("{prefix}-{n}")).collect()
}

fn each(prefix: &str, refusal: ServiceError) -> Script {
    Script { prefix: Some(prefix.to_owned()), then: ScriptedAnswer::Error(refusal), ..Script::default() }
}

fn throttled(seconds: u64) -> Outcome {
    Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: Some(Duration::from_secs(seconds)) }
}

#[tokio::test]
async fn a_quota_is_obeyed_for_as_long_as_fcm_says_and_slows_the_client_down() {
    let scripts = vec![
        each("told", ServiceError::new("QUOTA_EXCEEDED").retry_after_s(17)),
        each("untold", ServiceError::new("QUOTA_EXCEEDED")),
        each("down", ServiceError::new("UNAVAILABLE").retry_after_s(5)),
    ];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    let limit = || scene.provider.stats().inflight_limit;
    assert_eq!(scene.send(&ten("untold")).await, vec![throttled(60); 10]);
    // Not compared with the limit at the start, which grows while the first response is late, as on a busy machine.
    let first = limit();
    assert_eq!(scene.send(&ten("told")).await, vec![throttled(17); 10]);
    // Or less, where the responses have been slow.
    assert!(limit() <= first / 2, "{} of {first} after ten 429 that say for how long", limit());
    let put_off = Outcome::Unsent { reason: Reason::Throttled, retry_after: Some(Duration::from_secs(17)) };
    let mut next = scene.send(&ten("down")).await;
    assert_eq!(next, vec![put_off.clone(); 10], "nothing is sent at once after that");
    while next.contains(&put_off) {
        next = scene.send(&ten("down")).await;
    }
    assert_eq!(next, vec![unavailable(Some(5)); 10]);
    assert!(limit() <= first / 4, "{} of {first} after ten 503 that ask to wait", limit());
}

#[tokio::test]
async fn a_few_answers_that_ask_to_wait_hold_nothing_back_and_slow_nothing_down() {
    let scripts = vec![each("told", ServiceError::new("QUOTA_EXCEEDED").retry_after_s(17))];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    let limit = || scene.provider.stats().inflight_limit;
    let mut tokens: Vec<_> = (0..990).map(|n| format!("fine-{n}")).collect();
    tokens.extend(ten("told"));
    for _ in 0..6 {
        let mut outcomes = scene.send(&tokens).await;
        assert_eq!(outcomes.split_off(990), vec![throttled(17); 10]);
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    }
    // The limit never falls below the product of rate and latency.
    assert!(limit() >= 1_024, "{} after six times ten in a thousand", limit());
}

#[tokio::test]
async fn a_service_that_can_take_only_half_gets_less_at_a_time_and_one_that_fails_now_and_then_as_much() {
    let down = |prefix: &str| Script {
        prefix: Some(prefix.to_owned()),
        then: ScriptedAnswer::Error(ServiceError::new("UNAVAILABLE")),
        ..Script::default()
    };
    let scene = start(Policy { scripts: vec![down("down")], ..Policy::default() }).await;
    let limit = || scene.provider.stats().inflight_limit;
    let send = async |down: usize| {
        let tokens: Vec<String> =
            (0..1_000).map(|n| if n < down { format!("down-{n}") } else { format!("fine-{n}") }).collect();
        let outcomes = scene.send(&tokens).await;
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == unavailable(None)).count(), down);
    };
    for _ in 0..6 {
        send(2).await;
    }
    // The limit never falls below the product of rate and latency.
    assert!(limit() >= 1_024, "{} after six times two in a thousand", limit());
    for _ in 0..6 {
        send(500).await;
    }
    assert!(limit() <= 512, "{} after six times half of a thousand", limit());
}

#[tokio::test]
async fn the_stats_tell_how_fast_and_how_soon_the_service_answers() {
    let latency = Some(AnswerLatency::Fixed { ms: 30.0 });
    let scene = start(Policy { latency, ..Policy::default() }).await;
    let stats = || scene.provider.stats();
    assert_eq!((stats().delivery_rate, stats().latency_floor), (0, Duration::ZERO), "nothing was answered");
    let (began, tokens) = (Instant::now(), tokens(1_000));
    for _ in 0..4 {
        assert_eq!(scene.send(&tokens).await, vec![Outcome::Accepted; 1_000]);
    }
    let mean_rate = 4_000.0 / began.elapsed().as_secs_f64();
    assert!(stats().delivery_rate as f64 >= mean_rate / 4.0, "{:?}, at {mean_rate} a second", stats());
    assert!(stats().latency_floor >= Duration::from_millis(30), "{:?}", stats());
}

#[tokio::test]
async fn a_goaway_in_the_middle_of_a_batch_loses_and_doubles_nothing() {
    let goaway = GoAway { after_requests: 150, unprocessed: 40, connections: Some(2), ..GoAway::default() };
    let scene = start(Policy { goaway: Some(goaway), ..Policy::default() }).await;
    let tokens = tokens(1_000);
    assert_eq!(scene.send(&tokens).await, vec![Outcome::Accepted; 1_000]);
    let totals = scene.emulator.sums().tokens;
    assert_eq!((totals.accepted, totals.tokens_accepted_twice), (1_000, 0));
    let goaways = scene.emulator.sums().wire.goaways;
    assert!(goaways > 0);
    assert_eq!(scene.provider.stats().drains, goaways);
}

#[tokio::test]
async fn a_lowered_stream_limit_is_obeyed_without_a_refusal() {
    let step = |after_requests, limit| StreamStep { after_requests, limit };
    let streams =
        StreamLimitPolicy { steps: vec![step(50, 1), step(80, 60)], ..StreamLimitPolicy::default() };
    let scene = start(Policy { streams: Some(streams), ..Policy::default() }).await;
    assert_eq!(scene.send(&tokens(500)).await, vec![Outcome::Accepted; 500]);
    assert_eq!(scene.emulator.sums().tokens.tokens_accepted_twice, 0);
    assert_eq!(scene.emulator.sums().wire.refused, 0);
}

#[tokio::test]
async fn a_refused_stream_goes_again_and_a_broken_one_is_unknown() {
    let scripts = vec![
        once("refused", ScriptedAnswer::Reset(ResetCode::RefusedStream)),
        once("broken", ScriptedAnswer::Reset(ResetCode::InternalError)),
    ];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    let outcomes = scene.send(&["refused".to_owned(), "broken".to_owned()]).await;
    assert_eq!(outcomes, [Outcome::Accepted, Outcome::Unknown]);
    assert_eq!(scene.emulator.counts("broken").attempts, 1);
}

#[tokio::test]
async fn a_stalled_answer_is_unknown() {
    let scene = start(Policy::default()).await;
    assert_eq!(scene.send_one("first").await, Outcome::Accepted);
    scene.emulator.inject(InjectedFault::Stall { on: true });
    assert_eq!(scene.send_one("second").await, Outcome::Unknown);
}

#[tokio::test]
async fn what_a_service_that_is_gone_cannot_take_is_unsent() {
    let Scene { emulator, provider, clock } = start(Policy::default()).await;
    let one = [String::from("token")];
    assert_eq!(within(20, provider.send(batch(&one, &clock))).await, [Outcome::Accepted]);
    emulator.stop().await;
    let unsent = Outcome::Unsent { reason: Reason::Unavailable, retry_after: None };
    assert_eq!(within(20, provider.send(batch(&one, &clock))).await, [unsent]);
    assert!(provider.stats().connect_failures > 0);
}

#[tokio::test]
async fn an_access_token_that_is_refused_is_replaced_once_and_its_requests_sent_again() {
    let scripts = vec![once("late", ScriptedAnswer::Error(ServiceError::new("UNAUTHENTICATED")))];
    let scene = start(Policy { scripts, ..Policy::default() }).await;
    assert_eq!(scene.send_one("late").await, Outcome::Accepted);
    assert_eq!(scene.emulator.counts("late").attempts, 2);
}

#[tokio::test]
async fn one_access_token_serves_until_it_is_renewed_ahead_of_its_end() {
    let auth = FcmAuth { token_life_s: 100, ..FcmAuth::default() };
    let scene = start_with(FcmConfig {
        vendor: FcmOptions { auth, ..FcmOptions::default() },
        ..FcmConfig::default()
    })
    .await;
    scene.send(&tokens(3)).await;
    let requests = || scene.emulator.sums().wire.requests;
    assert_eq!(requests(), 3 + 1, "one for the access token");
    scene.clock.advance(Duration::from_secs(75));
    scene.send(&tokens(2)).await;
    assert_eq!(requests(), 5 + 1, "not yet at four fifths of its life");
    scene.clock.advance(Duration::from_secs(10));
    assert_eq!(scene.send_one("a").await, Outcome::Accepted);
    within(20, async {
        while requests() < 6 + 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    scene.clock.advance(Duration::from_secs(30));
    assert_eq!(scene.send_one("b").await, Outcome::Accepted, "the first token would have ended");
}

#[tokio::test]
async fn many_batches_at_once_fetch_one_access_token() {
    let scene = start(Policy::default()).await;
    let batches = (0..10).map(|n| {
        let one = [format!("token-{n}")];
        let batch = batch(&one, &scene.clock);
        scene.provider.send(batch)
    });
    let mut all = Vec::new();
    for outcomes in within(30, futures(batches.collect())).await {
        all.extend(outcomes);
    }
    assert_eq!(all, vec![Outcome::Accepted; 10]);
    assert_eq!(scene.emulator.sums().wire.requests, 11);
}

/// Waits for all futures concurrently.
async fn futures<F: Future + Unpin>(mut pending: Vec<F>) -> Vec<F::Output> {
    let mut done: Vec<Option<F::Output>> = pending.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, slot) in pending.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(output) = std::pin::Pin::new(future).poll(cx)
            {
                *slot = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_service_account_that_the_token_endpoint_refuses_parks_the_credential() {
    let stranger = Account::new("https://replaced.example/token");
    let known =
        ServiceAccount { client_email: "other@example.com".into(), public_key_pem: stranger.public_key_pem };
    let auth = FcmAuth { accounts: vec![known], ..FcmAuth::default() };
    let emulator = FcmEmulator::start(FcmConfig {
        vendor: FcmOptions { auth, ..FcmOptions::default() },
        ..FcmConfig::default()
    })
    .await
    .expect("an emulator");
    let endpoint = format!("https://{}", emulator.addr());
    let secret = json!({
        "service_account": stranger.json,
        "endpoint": endpoint,
        "token_endpoint": format!("{endpoint}/token"),
        "ca_pem": emulator.ca_pem().expect("TLS"),
    });
    let clock = StillClock::new();
    let provider = Fcm::open(&secret.to_string(), &setup(&clock)).expect("a credential");
    let outcomes = within(20, provider.send(batch(&tokens(2), &clock))).await;
    assert_eq!(outcomes, vec![rejected(Reason::CredentialRefused, OutcomeScope::Credential); 2]);
    assert_eq!(emulator.sums().tokens.attempts, 0, "no message was sent in vain");
}

#[tokio::test]
async fn plain_http_2_works_for_trials() {
    let account = Account::new("http://replaced.example/token");
    let config = FcmConfig { tls: TlsConfig::Plaintext, ..FcmConfig::default() };
    let emulator = FcmEmulator::start(config).await.expect("an emulator");
    let endpoint = format!("http://{}", emulator.addr());
    let secret = json!({
        "service_account": account.json,
        "endpoint": endpoint,
        "token_endpoint": format!("{endpoint}/token"),
    });
    let clock = StillClock::new();
    let provider = Fcm::open(&secret.to_string(), &setup(&clock)).expect("a credential");
    within(20, provider.warm()).await;
    assert_eq!(within(20, provider.send(batch(&tokens(2), &clock))).await, vec![Outcome::Accepted; 2]);
    within(20, provider.close()).await;
    assert_eq!(provider.stats().connections, 0);
}

#[tokio::test]
async fn a_credential_that_cannot_reach_its_service_names_host_and_cause_and_forgets_both_once_it_does() {
    let scene = start(Policy::default()).await;
    within(20, scene.provider.check()).await.expect("all is well");
    let endpoint = format!("https://{}", scene.emulator.addr());
    let account = Account::new("https://replaced.example/token");
    // Without the emulator's authority.
    let token_endpoint = format!("{endpoint}/token");
    let secret =
        json!({"service_account": account.json, "endpoint": endpoint, "token_endpoint": token_endpoint});
    let provider = Fcm::open(&secret.to_string(), &setup(&scene.clock)).expect("a credential");
    assert_eq!(provider.trouble(), None, "nothing was tried yet");
    let trouble = within(20, provider.check()).await.expect_err("no such authority is known");
    let host = scene.emulator.addr().to_string();
    assert_eq!(trouble.host, host);
    assert_eq!(trouble.to_string(), format!("certificate of {host}: UnknownIssuer"));
    assert_eq!(within(20, provider.send(batch(&tokens(2), &scene.clock))).await.len(), 2);
    assert_eq!(provider.trouble(), Some(trouble));
    assert_eq!(scene.send_one("fcm-token:1").await, Outcome::Accepted);
    assert_eq!(scene.provider.trouble(), None);
}
