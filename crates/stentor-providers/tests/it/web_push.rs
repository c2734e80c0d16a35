//! The adapter to Web Push, against small push services that answer as a test says.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::clock::Clock as _;
use stentor_core::ports::provider::Provider;
use stentor_emulators::web_push::{
    RunningWebPush, SyntheticSubscriptions, WebPushConfig, WebPushEmulator, WebPushOptions,
};
use stentor_providers::web_push::WebPush;
use stentor_providers::{Outbound, Setup};
use stentor_wire::web_push::PushKeyPair;
use tokio::net::TcpListener;

use crate::push_service::PushService;
use crate::support::{StillClock, allowing, batch, rejected, setup, within};

/// The key of the app, in base64url.
const KEY: &str = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
const OTHER_KEY: &str = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94";

fn provider(fields: &Value, clock: &Arc<StillClock>) -> WebPush {
    let mut secret = json!({"subject": "mailto:ops@app.example", "private_key": KEY});
    secret.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    WebPush::open(&secret.to_string(), &setup(clock)).expect("a credential")
}

fn subscription(origin: &str, name: &str, device: &PushKeyPair) -> String {
    let (p256dh, auth) = device.public().expect("keys").texts();
    format!("{origin}/push/{name}#p256dh={p256dh}&auth={auth}")
}

fn subscriptions(origin: &str, names: &[&str]) -> Vec<String> {
    let device = PushKeyPair::generate().expect("keys");
    names.iter().map(|name| subscription(origin, name, &device)).collect()
}

fn deferred_for(outcome: &Outcome) -> (Reason, u64) {
    match outcome {
        Outcome::Deferred { reason, retry_after } => (*reason, retry_after.as_secs()),
        other => panic!("{other:?}"),
    }
}

/// Checks the signature of a header, and returns its claims and its key.
fn vapid(header: &str) -> (Value, String) {
    let (token, key) =
        header.strip_prefix("vapid t=").and_then(|text| text.split_once(", k=")).expect("RFC 8292");
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).expect("base64url");
    let (signed, signature) = token.rsplit_once('.').expect("a JWT");
    let public = decoded(key);
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &public);
    public.verify(signed.as_bytes(), &decoded(signature)).expect("the signature of the key");
    let claims = signed.split_once('.').expect("a JWT").1;
    (serde_json::from_slice(&decoded(claims)).expect("JSON"), key.to_owned())
}

#[tokio::test]
async fn every_device_gets_its_own_sealed_message_from_a_sender_that_is_known() {
    let service = PushService::start(|_| Some((201, ""))).await;
    let clock = StillClock::new();
    let provider = provider(&json!({"navigate": "https://app.example/"}), &clock);
    let devices: Vec<_> = (0..50).map(|_| PushKeyPair::generate().expect("keys")).collect();
    let name = |at: usize| format!("device-{at}");
    let tokens: Vec<_> =
        devices.iter().enumerate().map(|(at, one)| subscription(&service.origin, &name(at), one)).collect();
    let outcomes = within(30, provider.send(batch(&tokens, &clock))).await;
    assert_eq!(outcomes, vec![Outcome::Accepted; 50]);
    let received = service.received();
    assert_eq!(received.len(), 50);
    for request in &received {
        let at = (0..50).find(|at| request.path == format!("/push/{}", name(*at))).expect("a known path");
        let text: Value =
            serde_json::from_slice(&devices[at].open(&request.body).expect("opened")).expect("JSON");
        let shown = json!({"title": "Hi", "navigate": "https://app.example/"});
        assert_eq!(text, json!({"web_push": 8030, "notification": shown, "data": {"n": "7"}}));
        for (header, value) in [("ttl", "3600"), ("urgency", "high"), ("content-encoding", "aes128gcm")] {
            assert_eq!(request.headers[header], value, "{header}");
        }
        let (claims, _) = vapid(&request.headers["authorization"]);
        assert_eq!(
            (&claims["aud"], &claims["sub"]),
            (&json!(service.origin), &json!("mailto:ops@app.example"))
        );
    }
}

#[tokio::test]
async fn every_status_becomes_its_outcome_in_its_place() {
    let service = PushService::start(|request| {
        let (_, status) = request.path.rsplit_once('/')?;
        Some((status.parse().ok()?, "retry-after: 7\r\n"))
    })
    .await;
    let clock = StillClock::new();
    let wait = Some(Duration::from_secs(7));
    let gone = || Outcome::Unregistered { reason: Reason::Unregistered, since: None };
    let expected = [
        ("201", Outcome::Accepted),
        ("404", gone()),
        ("200", Outcome::Accepted),
        ("410", gone()),
        ("413", rejected(Reason::PayloadTooLarge, OutcomeScope::Device)),
        ("400", rejected(Reason::InvalidPayload, OutcomeScope::Payload)),
        ("403", rejected(Reason::SenderMismatch, OutcomeScope::Device)),
        ("429", Outcome::Throttled { scope: OutcomeScope::Device, retry_after: wait }),
        (
            "503",
            Outcome::Unavailable {
                reason: Reason::Unavailable,
                scope: OutcomeScope::Device,
                retry_after: wait,
            },
        ),
        ("204", Outcome::Accepted),
    ];
    let mut tokens = subscriptions(&service.origin, &expected.each_ref().map(|(name, _)| *name));
    tokens.push("https://push.example/no-keys".to_owned());
    let outcomes = within(30, provider(&json!({}), &clock).send(batch(&tokens, &clock))).await;
    let mut expected: Vec<_> = expected.into_iter().map(|(_, outcome)| outcome).collect();
    expected.push(rejected(Reason::InvalidToken, OutcomeScope::Device));
    assert_eq!(outcomes, expected);
}

#[tokio::test]
async fn subscriptions_made_with_the_former_key_are_reached_after_a_rotation() {
    let former = {
        let service = PushService::start(|_| Some((201, ""))).await;
        let clock = StillClock::new();
        let tokens = subscriptions(&service.origin, &["a"]);
        within(30, provider(&json!({"private_key": OTHER_KEY}), &clock).send(batch(&tokens, &clock))).await;
        vapid(&service.received()[0].headers["authorization"]).1
    };
    let service = PushService::start(move |request| {
        let (_, key) = vapid(&request.headers["authorization"]);
        let is_old = request.path.ends_with("old");
        Some((if is_old == (key == former) { 201 } else { 403 }, ""))
    })
    .await;
    let clock = StillClock::new();
    let provider = provider(&json!({"previous_private_key": OTHER_KEY}), &clock);
    let tokens = subscriptions(&service.origin, &["old", "new", "old", "new"]);
    let outcomes = within(30, provider.send(batch(&tokens, &clock))).await;
    assert_eq!(outcomes, vec![Outcome::Accepted; 4]);
    assert_eq!(service.received().len(), 6);
}

#[tokio::test]
async fn a_push_service_that_is_down_delays_its_own_deliveries_alone() {
    let service = PushService::start(|_| Some((201, ""))).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let clock = StillClock::new();
    let provider = provider(&json!({}), &clock);
    let down = subscriptions(&format!("http://{closed}"), &["a", "b"]);
    let up = subscriptions(&service.origin, &["c", "d"]);
    let tokens = vec![down[0].clone(), up[0].clone(), down[1].clone(), up[1].clone()];
    let send = || within(30, provider.send(batch(&tokens, &clock)));
    let first = send().await;
    assert_eq!((&first[1], &first[3]), (&Outcome::Accepted, &Outcome::Accepted));
    assert_eq!(deferred_for(&first[0]), (Reason::Unavailable, 1));
    clock.advance(Duration::from_secs(1));
    assert_eq!(deferred_for(&send().await[2]), (Reason::Unavailable, 2), "longer each time");
    assert_eq!(service.received().len(), 4);
}

#[tokio::test]
async fn a_limit_is_learned_and_what_is_beyond_it_waits_for_its_turn() {
    let clock = StillClock::new();
    let (taken, time) = (Mutex::new((0, clock.now())), Arc::clone(&clock));
    let service = PushService::start(move |_| {
        let mut taken = taken.lock();
        if time.now().since(taken.1) >= Duration::from_secs(60) {
            *taken = (0, time.now());
        }
        taken.0 += 1;
        Some(if taken.0 <= 60 { (201, "") } else { (429, "retry-after: 60\r\n") })
    })
    .await;
    let provider = provider(&json!({}), &clock);
    let device = PushKeyPair::generate().expect("keys");
    let tokens: Vec<_> = (0..200).map(|n| subscription(&service.origin, &n.to_string(), &device)).collect();
    let outcomes = within(30, provider.send(batch(&tokens, &clock))).await;
    let accepted = outcomes.iter().filter(|outcome| **outcome == Outcome::Accepted).count();
    assert_eq!(accepted, 60);
    let waiting = outcomes.iter().filter(|outcome| **outcome != Outcome::Accepted);
    assert!(waiting.clone().all(|outcome| deferred_for(outcome) == (Reason::Throttled, 60)));
    assert_eq!(service.received().len(), 200);
    let [standing] = &provider.services()[..] else { panic!("one push service limits it") };
    assert_eq!((standing.per_minute, standing.resting), (Some(60), Some(Reason::Throttled)));
    assert_eq!(standing.backlog, Duration::from_secs(60));
    // While it rests, nothing is sent. Afterwards 60 a minute are.
    let again = within(30, provider.send(batch(&tokens[..100], &clock))).await;
    assert_eq!((service.received().len(), deferred_for(&again[99])), (200, (Reason::Throttled, 60)));
    clock.advance(Duration::from_secs(90));
    let later = within(30, provider.send(batch(&tokens[..100], &clock))).await;
    assert_eq!(service.received().len(), 260);
    assert_eq!(deferred_for(&later[99]).0, Reason::Throttled);
    assert_eq!(provider.services()[0].backlog, Duration::from_secs(40), "40 others at 60 a minute");
}

#[tokio::test]
async fn r17_an_endpoint_in_a_network_that_is_not_allowed_is_not_connected_to_and_stops_nothing_else() {
    let service = PushService::start(|_| Some((201, ""))).await;
    let clock = StillClock::new();
    let outbound = Outbound::new(allowing(&[]));
    let secret = json!({"subject": "mailto:ops@app.example", "private_key": KEY}).to_string();
    let provider = WebPush::open(&secret, &Setup { outbound, ..setup(&clock) }).expect("a credential");
    let mut tokens = subscriptions(&service.origin, &["a"]);
    tokens.extend(subscriptions("https://10.0.0.1", &["b"]));
    tokens.extend(subscriptions("https://169.254.169.254", &["latest"]));
    let outcomes = within(30, provider.send(batch(&tokens, &clock))).await;
    assert_eq!(outcomes, vec![rejected(Reason::AddressRefused, OutcomeScope::Device); 3]);
    assert!(service.received().is_empty());
}

#[tokio::test]
async fn a_silent_push_service_holds_up_no_outcome_of_the_others() {
    let service = PushService::start(|_| Some((201, ""))).await;
    let silent = PushService::start(|_| None).await;
    let clock = StillClock::new();
    let provider = provider(&json!({}), &clock);
    let mut tokens = subscriptions(&service.origin, &["a", "b", "c"]);
    tokens.extend(subscriptions(&silent.origin, &["d"]));
    let (tell, told) = tokio::sync::oneshot::channel();
    let cut = tokio::sync::oneshot::channel::<()>();
    let early = Box::new(move |outcomes| tell.send(outcomes).expect("heard"));
    let waits = Box::pin(async move { cut.1.await.unwrap_or_default() });
    let sending = provider.send_until(batch(&tokens, &clock), early, waits);
    let (outcomes, ()) = within(30, async {
        tokio::join!(sending, async {
            let known: Vec<Option<Outcome>> = told.await.expect("told");
            assert_eq!(
                known[..3],
                [Some(Outcome::Accepted), Some(Outcome::Accepted), Some(Outcome::Accepted)]
            );
            assert_eq!(known[3], None);
            cut.0.send(()).expect("still sending");
        })
    })
    .await;
    assert_eq!(outcomes[3], Outcome::Unknown);
}

/// A push service that checks and opens messages, over TLS and HTTP/2.
async fn emulated(limit_per_minute: Option<u64>, clock: &Arc<StillClock>) -> (RunningWebPush, WebPush) {
    let vendor = WebPushOptions { limit_per_minute, decrypt_every: 1, ..WebPushOptions::default() };
    let emulator = WebPushEmulator::start(WebPushConfig { vendor, ..WebPushConfig::default() }).await;
    let emulator = emulator.expect("an emulator");
    let provider = provider(&json!({"ca_pem": emulator.running.ca_pem().expect("TLS")}), clock);
    (emulator, provider)
}

fn synthetic(emulator: &RunningWebPush, count: u64) -> (SyntheticSubscriptions, Vec<String>) {
    let origin = format!("https://{}", emulator.running.addr());
    let all = SyntheticSubscriptions::new(&origin, 1).expect("keys");
    let tokens = (0..count).map(|n| all.token(n)).collect();
    (all, tokens)
}

#[tokio::test]
async fn over_http2_a_thousand_subscriptions_are_each_reached_once_with_what_they_can_open() {
    let clock = StillClock::new();
    let (emulator, provider) = emulated(None, &clock).await;
    let (all, tokens) = synthetic(&emulator, 1_000);
    let outcomes = within(60, provider.send(batch(&tokens, &clock))).await;
    assert_eq!(outcomes, vec![Outcome::Accepted; 1_000]);
    for n in 0..1_000 {
        assert_eq!(emulator.running.counts(&all.path_token(n)).accepted, 1, "{n}");
    }
    let content = emulator.running.sums().content;
    assert_eq!((content.decrypted, content.undecryptable), (1_000, 0));
    assert!(provider.stats().connections >= 1, "HTTP/2 carried them");
}

#[tokio::test]
async fn over_http2_a_sender_with_little_engagement_gets_its_messages_a_minute_and_a_limit_is_learned() {
    let clock = StillClock::new();
    let (emulator, provider) = emulated(Some(100), &clock).await;
    let (_, tokens) = synthetic(&emulator, 500);
    let outcomes = within(60, provider.send(batch(&tokens, &clock))).await;
    let accepted = outcomes.iter().filter(|outcome| **outcome == Outcome::Accepted).count();
    assert_eq!(accepted, 100);
    let others = outcomes.iter().filter(|outcome| **outcome != Outcome::Accepted);
    assert!(others.map(deferred_for).all(|(reason, _)| reason == Reason::Throttled));
    assert_eq!(provider.services()[0].per_minute, Some(100));
}
