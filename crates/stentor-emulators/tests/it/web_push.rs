//! Web Push: every documented response, the identity of senders, and messages that are decrypted for their devices.

mod sender;

use crate::rig::{self, Client};
use sender::{AppServer, Headers, divide, in_seconds, post, seal, subscribe, web_push};
use serde_json::{Value, json};
use stentor_emulators::device::DeviceMessage;
use stentor_emulators::web_push::{SubscriptionRequest, SyntheticSubscriptions};
use stentor_emulators::{RunningWebPush, TlsConfig, WebPushConfig, WebPushEmulator, WebPushOptions};
use tokio::sync::mpsc::UnboundedReceiver;

/// Every reason with its status.
const REASONS: &[(u16, &str)] = &[
    (400, "BadTtl"),
    (400, "BadUrgency"),
    (400, "BadTopic"),
    (400, "BadEncoding"),
    (400, "BadContent"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (403, "BadJwt"),
    (403, "BadSignature"),
    (403, "BadAudience"),
    (403, "BadExpiration"),
    (403, "BadSubject"),
    (403, "WrongKey"),
    (404, "NotFound"),
    (405, "MethodNotAllowed"),
    (406, "NotAcceptable"),
    (410, "Gone"),
    (413, "TooLarge"),
    (429, "Throttled"),
    (500, "InternalError"),
    (503, "Unavailable"),
];

/// An emulator, a client with a connection to it, and an app server.
struct Story {
    emulator: RunningWebPush,
    client: Client,
    server: AppServer,
    origin: String,
}

impl Story {
    async fn begin(vendor: WebPushOptions) -> Self {
        Self::of(WebPushConfig { vendor, ..WebPushConfig::default() }).await
    }

    async fn of(config: WebPushConfig) -> Self {
        let emulator = web_push(config).await;
        let client = Client::connect(emulator.running.addr()).await;
        let origin = format!("http://{}", emulator.running.addr());
        Self { emulator, client, server: AppServer::new(), origin }
    }

    /// Sends any content to a path token; returns the status and the reason.
    async fn push(&mut self, token: &str, headers: &Headers<'_>) -> (u16, String) {
        let body = seal_for_nobody();
        let reply = post(&mut self.client, &format!("/push/{token}"), headers, &body).await;
        let reason = if reply.body.is_empty() { String::new() } else { reply.reason() };
        (reply.status.as_u16(), reason)
    }

    async fn push_as(&mut self, identity: &str) -> (u16, String) {
        let mut headers = self.server.headers(&self.origin);
        headers[2].1 = identity.to_owned();
        self.push("a", &headers).await
    }

    async fn push_with_claims(&mut self, claims: &Value) -> (u16, String) {
        let identity = format!("vapid t={}, k={}", self.server.token(claims), self.server.key());
        self.push_as(&identity).await
    }
}

/// Returns a message that is in order as far as a push service can tell.
fn seal_for_nobody() -> Vec<u8> {
    let public = [&[0; 16][..], &4096_u32.to_be_bytes(), &[65, 4], &[9; 64]].concat();
    [&public[..], &[1; 40]].concat()
}

fn listen(emulator: &RunningWebPush, token: &str) -> UnboundedReceiver<DeviceMessage> {
    emulator.running.devices().listen(token).unwrap()
}

fn created() -> (u16, String) {
    (201, String::new())
}

fn refused(status: u16, reason: &str) -> (u16, String) {
    (status, reason.to_owned())
}

#[tokio::test]
async fn a_message_arrives_at_its_device_in_clear_text() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let subscription = subscribe(&story.emulator);
    let mut messages = listen(&story.emulator, &subscription.token);
    let reply = story.server.send(&mut story.client, &subscription, "hello, wörld").await;
    assert_eq!((reply.status.as_u16(), reply.body.len()), (201, 0));
    assert!(reply.headers["location"].to_str().unwrap().starts_with(&format!("{}/message/", story.origin)));
    assert_eq!(reply.headers["ttl"], "600");
    let message = messages.recv().await.unwrap();
    assert_eq!((message.payload, message.high_priority), (json!({"text": "hello, wörld"}), false));
    assert_eq!(story.emulator.running.counts(&subscription.token).accepted, 1);
    assert_eq!(story.emulator.running.sums().content.decrypted, 1);
}

#[tokio::test]
async fn a_message_arrives_over_tls_in_both_protocols() {
    let emulator = WebPushEmulator::start(WebPushConfig::default()).await.unwrap();
    let authority = reqwest::Certificate::from_pem(emulator.running.ca_pem().unwrap().as_bytes()).unwrap();
    let subscription = subscribe(&emulator);
    let (origin, _) = divide(&subscription.endpoint);
    assert!(origin.starts_with("https://127.0.0.1:"));
    let server = AppServer::new();
    for is_old in [false, true] {
        let client = reqwest::Client::builder().tls_certs_only([authority.clone()]);
        let client = if is_old { client.http1_only() } else { client }.build().unwrap();
        let body = seal(&subscription.keys.p256dh, &subscription.keys.auth, b"hello");
        let request = client.post(&subscription.endpoint).body(body);
        let headers = server.headers(origin);
        let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let reply = request.send().await.unwrap();
        let version = if is_old { reqwest::Version::HTTP_11 } else { reqwest::Version::HTTP_2 };
        assert_eq!((reply.status().as_u16(), reply.version()), (201, version));
    }
    assert_eq!(emulator.running.sums().content.decrypted, 2);
}

#[tokio::test]
async fn a_message_that_its_device_cannot_read_is_delivered_and_counted() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let subscription = subscribe(&story.emulator);
    let mut messages = listen(&story.emulator, &subscription.token);
    let mut other = subscription.clone();
    other.keys.auth = subscribe(&story.emulator).keys.auth;
    assert_eq!(story.server.send(&mut story.client, &other, "hello").await.status, 201);
    let message = messages.recv().await.unwrap();
    assert_eq!(message.payload["undecryptable"], "the keys of the subscription do not decrypt it");
    let content = story.emulator.running.sums().content;
    assert_eq!((content.decrypted, content.undecryptable), (0, 1));
    assert_eq!(story.emulator.running.counts(&subscription.token).accepted, 1);
}

#[tokio::test]
async fn a_message_without_content_is_accepted() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let subscription = subscribe(&story.emulator);
    let headers = vec![("ttl", "0".to_owned()), ("authorization", story.server.identity(&story.origin))];
    let mut messages = listen(&story.emulator, &subscription.token);
    let reply = post(&mut story.client, divide(&subscription.endpoint).1, &headers, &[]).await;
    assert_eq!((reply.status.as_u16(), &reply.headers["ttl"]), (201, &"0".parse().unwrap()));
    assert_eq!(messages.recv().await.unwrap().payload, Value::Null);
}

#[tokio::test]
async fn for_a_device_that_is_away_the_newest_message_of_a_topic_waits() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let subscription = subscribe(&story.emulator);
    for (topic, ttl, text) in
        [("score", "60", "0:1"), ("", "0", "never"), ("score", "60", "1:1"), ("", "60", "end")]
    {
        let mut headers = story.server.headers(&story.origin);
        headers[0].1 = ttl.to_owned();
        if !topic.is_empty() {
            headers.extend([("topic", topic.to_owned()), ("urgency", "high".to_owned())]);
        }
        let body = seal(&subscription.keys.p256dh, &subscription.keys.auth, text.as_bytes());
        let reply = post(&mut story.client, divide(&subscription.endpoint).1, &headers, &body).await;
        assert_eq!(reply.status, 201);
    }
    let mut messages = listen(&story.emulator, &subscription.token);
    let first = messages.recv().await.unwrap();
    assert_eq!(
        (first.payload, first.collapse_key.as_deref(), first.high_priority),
        (json!({"text": "1:1"}), Some("score"), true)
    );
    assert_eq!(messages.recv().await.unwrap().payload, json!({"text": "end"}));
    assert!(messages.try_recv().is_err());
}

#[tokio::test]
async fn every_reason_comes_with_its_status() {
    let answers: Vec<Value> = REASONS
        .iter()
        .map(|(_, reason)| json!({"answer": {"error": {"code": reason, "retry_after_s": 9}}}))
        .collect();
    let policy = rig::read(json!({"scripts": [{"prefix": "", "answers": answers}]}));
    let mut story = Story::of(WebPushConfig { policy, ..WebPushConfig::default() }).await;
    let headers = story.server.headers(&story.origin);
    for (status, reason) in REASONS {
        let reply = post(&mut story.client, "/push/a", &headers, &seal_for_nobody()).await;
        assert_eq!((reply.status.as_u16(), reply.reason().as_str()), (*status, *reason));
        assert_eq!(reply.headers["retry-after"], "9");
        assert_eq!(reply.headers.contains_key("www-authenticate"), *status == 401);
        assert_eq!(reply.headers.contains_key("allow"), *status == 405);
    }
    assert_eq!(story.push("a", &headers).await, created(), "the script has ended");
    assert_eq!(story.emulator.running.counts("a").rejected as usize, REASONS.len());
}

#[tokio::test]
async fn bad_paths_and_methods_are_refused() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let headers = story.server.headers(&story.origin);
    for token in ["", "a/b", "a%20b", &"x".repeat(513)] {
        assert_eq!(story.push(token, &headers).await, refused(404, "NotFound"), "{token}");
    }
    let reply = post(&mut story.client, "/", &headers, &[]).await;
    assert_eq!(reply.status, 404);
    let mut request = story.client.request("/push/a").body(()).unwrap();
    *request.method_mut() = http::Method::PUT;
    let reply = story.client.send(request, b"x").await.unwrap();
    assert_eq!((reply.status.as_u16(), &reply.headers["allow"]), (405, &"POST".parse().unwrap()));
    assert_eq!(story.emulator.running.sums().tokens.attempts, 0);
}

#[tokio::test]
async fn bad_headers_are_refused_with_their_reason() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let good = story.server.headers(&story.origin);
    let long = "x".repeat(33);
    let table: &[(&str, &[&str], &str)] = &[
        ("ttl", &[], "BadTtl"),
        ("ttl", &[""], "BadTtl"),
        ("ttl", &["-1"], "BadTtl"),
        ("ttl", &["1.5"], "BadTtl"),
        ("ttl", &["1", "1"], "BadTtl"),
        ("urgency", &["urgent"], "BadUrgency"),
        ("urgency", &["high", "low"], "BadUrgency"),
        ("urgency", &["high, low"], "BadUrgency"),
        ("topic", &[""], "BadTopic"),
        ("topic", &["a.b"], "BadTopic"),
        ("topic", &["a", "a"], "BadTopic"),
        ("topic", &[&long], "BadTopic"),
        ("content-encoding", &[], "BadEncoding"),
        ("content-encoding", &["aesgcm"], "BadEncoding"),
        ("content-encoding", &["gzip", "aes128gcm"], "BadEncoding"),
    ];
    for (name, values, reason) in table {
        let mut headers: Headers<'_> = good.iter().filter(|(other, _)| other != name).cloned().collect();
        headers.extend(values.iter().map(|value| (*name, (*value).to_owned())));
        assert_eq!(story.push("a", &headers).await, refused(400, reason), "{name}: {values:?}");
    }
    assert_eq!(story.emulator.running.counts("a").rejected as usize, table.len());
    for (name, value) in [("ttl", "99999999999999999999"), ("urgency", "very-low"), ("topic", &long[1..])] {
        let mut headers: Headers<'_> = good.iter().filter(|(other, _)| *other != name).cloned().collect();
        headers.push((name, value.to_owned()));
        assert_eq!(story.push("a", &headers).await, created(), "{name}: {value}");
    }
}

#[tokio::test]
async fn a_time_to_live_is_at_most_four_weeks() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let mut headers = story.server.headers(&story.origin);
    headers[0].1 = "31536000".to_owned();
    let reply = post(&mut story.client, "/push/a", &headers, &seal_for_nobody()).await;
    assert_eq!(reply.headers["ttl"], "2419200");
}

#[tokio::test]
async fn content_has_a_limit_and_must_have_the_header_of_its_coding() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let headers = story.server.headers(&story.origin);
    let mut sized = seal_for_nobody();
    sized.resize(4096, 1);
    let mut other_key = seal_for_nobody();
    other_key[20] = 33;
    let mut compressed = seal_for_nobody();
    compressed[21] = 2;
    for (body, status, reason) in [
        (sized.clone(), 201, ""),
        ([sized, vec![1]].concat(), 413, "TooLarge"),
        (vec![1; 100_000], 413, "TooLarge"),
        (other_key, 400, "BadContent"),
        (compressed, 400, "BadContent"),
        (b"hello".to_vec(), 400, "BadContent"),
        (seal_for_nobody()[..102].to_vec(), 400, "BadContent"),
    ] {
        let reply = post(&mut story.client, "/push/a", &headers, &body).await;
        let found = if reply.body.is_empty() { String::new() } else { reply.reason() };
        assert_eq!((reply.status.as_u16(), found.as_str()), (status, reason), "{} bytes", body.len());
    }
}

#[tokio::test]
async fn a_sender_must_identify_itself() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let mut headers = story.server.headers(&story.origin);
    headers.pop();
    assert_eq!(story.push("a", &headers).await, refused(401, "Unauthorized"));
    for identity in ["Bearer x", "WebPush a.b.c", "vapid"] {
        assert_eq!(story.push_as(identity).await, refused(401, "Unauthorized"), "{identity}");
    }
    let mut open = Story::begin(WebPushOptions { require_vapid: false, ..WebPushOptions::default() }).await;
    assert_eq!(open.push("a", &headers).await, created());
    assert_eq!(
        open.push_as("vapid t=a.b.c, k=d").await,
        refused(403, "BadJwt"),
        "a wrong one is wrong here too"
    );
}

#[tokio::test]
async fn identities_are_checked_in_all_their_parts() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let (aud, sub) = (story.origin.clone(), "mailto:push@example.com");
    let (soon, day) = (in_seconds(60), 24 * 60 * 60);
    let port = story.emulator.running.addr().port();
    for (claims, reason) in [
        (json!({"exp": soon, "sub": sub}), "BadAudience"),
        (json!({"aud": format!("{aud}/"), "exp": soon, "sub": sub}), "BadAudience"),
        (json!({"aud": format!("{aud}/push/a"), "exp": soon, "sub": sub}), "BadAudience"),
        (json!({"aud": format!("https://127.0.0.1:{port}"), "exp": soon, "sub": sub}), "BadAudience"),
        (json!({"aud": format!("http://localhost:{port}"), "exp": soon, "sub": sub}), "BadAudience"),
        (json!({"aud": ["https://push.example"], "exp": soon, "sub": sub}), "BadAudience"),
        (json!({"aud": aud, "sub": sub}), "BadExpiration"),
        (json!({"aud": aud, "exp": "soon", "sub": sub}), "BadExpiration"),
        (json!({"aud": aud, "exp": in_seconds(0) - 1, "sub": sub}), "BadExpiration"),
        (json!({"aud": aud, "exp": in_seconds(day + 60), "sub": sub}), "BadExpiration"),
        (json!({"aud": aud, "exp": soon, "sub": "push@example.com"}), "BadSubject"),
        (json!({"aud": aud, "exp": soon, "sub": "mailto:"}), "BadSubject"),
        (json!({"aud": aud, "exp": soon, "sub": 1}), "BadSubject"),
    ] {
        assert_eq!(story.push_with_claims(&claims).await, refused(403, reason), "{claims}");
    }
    for claims in [
        json!({"aud": aud, "exp": soon}),
        json!({"aud": ["https://push.example", aud], "exp": in_seconds(day - 60), "sub": "https://example.com"}),
    ] {
        assert_eq!(story.push_with_claims(&claims).await, created(), "{claims}");
    }
}

#[tokio::test]
async fn a_signature_is_verified_with_the_key_that_is_named() {
    let mut story = Story::begin(WebPushOptions::default()).await;
    let (own, other) = (story.server.key(), AppServer::new().key());
    let token = story.server.token(&json!({"aud": story.origin, "exp": in_seconds(60)}));
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let later = story.server.token(&json!({"aud": story.origin, "exp": in_seconds(61)}));
    let foreign_signature = later.rsplit_once('.').unwrap().1;
    // The header `{"alg":"none"}` before the same claims.
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", signed.split_once('.').unwrap().1);
    for (identity, reason) in [
        (format!("vapid t={token}, k={other}"), "BadSignature"),
        (format!("vapid t={signed}.{foreign_signature}, k={own}"), "BadSignature"),
        (format!("vapid t={signed}.{}, k={own}", &signature[4..]), "BadSignature"),
        (format!("vapid t={unsigned}, k={own}"), "BadJwt"),
        (format!("vapid t={signed}, k={own}"), "BadJwt"),
        (format!("vapid t={token}"), "BadJwt"),
        (format!("vapid k={own}"), "BadJwt"),
        (format!("vapid t={token}, k={}", &own[..40]), "BadJwt"),
    ] {
        assert_eq!(story.push_as(&identity).await, refused(403, reason), "{identity}");
    }
    for identity in [
        format!("vapid t={token},k={own}"),
        format!("Vapid k=\"{own}\" , t=\"{token}\""),
        format!("vapid t={token}, k={own}"),
    ] {
        assert_eq!(story.push_as(&identity).await, created(), "{identity}");
    }
}

#[tokio::test]
async fn a_configured_origin_is_an_audience_too() {
    let origin = Some("https://push.example".to_owned());
    let mut story = Story::begin(WebPushOptions { origin, ..WebPushOptions::default() }).await;
    let subscription = subscribe(&story.emulator);
    assert!(subscription.endpoint.starts_with("https://push.example/push/"));
    assert_eq!(story.server.send(&mut story.client, &subscription, "hello").await.status, 201);
    let identity = story.server.identity(&story.origin);
    assert_eq!(story.push_as(&identity).await, created());
}

#[tokio::test]
async fn a_subscription_for_one_sender_takes_messages_of_no_other() {
    let mut story = Story::begin(WebPushOptions { require_vapid: false, ..WebPushOptions::default() }).await;
    let application_server_key = Some(story.server.key());
    let request = SubscriptionRequest { token: None, application_server_key };
    let token = story.emulator.subscribe(request).unwrap().token;
    let mut headers = story.server.headers(&story.origin);
    assert_eq!(story.push(&token, &headers).await, created());
    headers[2].1 = AppServer::new().identity(&story.origin);
    assert_eq!(story.push(&token, &headers).await, refused(403, "WrongKey"));
    headers.pop();
    assert_eq!(story.push(&token, &headers).await, refused(401, "Unauthorized"));
    let request = SubscriptionRequest { token: None, application_server_key: Some("short".to_owned()) };
    assert!(story.emulator.subscribe(request).is_err());
}

#[tokio::test]
async fn subscriptions_end_and_strict_emulators_know_only_their_own() {
    let mut story = Story::of(WebPushConfig { strict_tokens: true, ..WebPushConfig::default() }).await;
    let headers = story.server.headers(&story.origin);
    let token = subscribe(&story.emulator).token;
    let synthetic = SyntheticSubscriptions::new(&story.origin, 1).unwrap().path_token(5);
    assert_eq!(story.push("unknown", &headers).await, refused(404, "NotFound"));
    assert_eq!(story.push(&synthetic, &headers).await, created());
    assert_eq!(story.push(&token, &headers).await, created());
    story.emulator.running.devices().expire(&token, None);
    assert_eq!(story.push(&token, &headers).await, refused(410, "Gone"));
    let again = SubscriptionRequest { token: Some(token.clone()), application_server_key: None };
    story.emulator.subscribe(again).unwrap();
    assert_eq!(story.push(&token, &headers).await, created());
}

#[tokio::test]
async fn a_sender_above_its_limit_waits_for_the_end_of_the_minute() {
    let mut story =
        Story::begin(WebPushOptions { limit_per_minute: Some(3), ..WebPushOptions::default() }).await;
    let headers = story.server.headers(&story.origin);
    for token in ["a", "b", "c"] {
        assert_eq!(story.push(token, &headers).await, created());
    }
    let reply = post(&mut story.client, "/push/d", &headers, &seal_for_nobody()).await;
    assert_eq!((reply.status.as_u16(), reply.reason().as_str()), (429, "Throttled"));
    let rest_s: u64 = reply.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&rest_s));
    assert_eq!(story.emulator.running.counts("d").rejected, 1);
    let other = AppServer::new().identity(&story.origin);
    assert_eq!(story.push_as(&other).await, created(), "another sender has a limit of its own");
}

#[tokio::test]
async fn synthetic_subscriptions_are_decrypted_without_having_been_registered() {
    let mut story = Story::begin(WebPushOptions { decrypt_every: 2, ..WebPushOptions::default() }).await;
    let subscriptions = SyntheticSubscriptions::new(&story.origin, 1).unwrap();
    let headers = story.server.headers(&story.origin);
    for n in 0..6 {
        let token = subscriptions.token(n);
        let (endpoint, keys) = token.split_once("#p256dh=").unwrap();
        let (p256dh, auth) = keys.split_once("&auth=").unwrap();
        let reply =
            post(&mut story.client, divide(endpoint).1, &headers, &seal(p256dh, auth, b"hello")).await;
        assert_eq!(reply.status, 201);
        assert_eq!(story.emulator.running.counts(&subscriptions.path_token(n)).accepted, 1);
    }
    story.push(&subscriptions.path_token(2), &headers).await;
    story.push(&subscriptions.path_token(3), &headers).await;
    let content = story.emulator.running.sums().content;
    assert_eq!((content.decrypted, content.undecryptable), (3, 1));
}

#[tokio::test]
async fn a_device_registers_at_the_control_port_and_keeps_its_keys_after_a_restart() {
    let register = async |emulator: &RunningWebPush, body: Value| {
        rig::post(emulator.running.control_addr().unwrap(), "/device/register", &body).await
    };
    let first = Story::begin(WebPushOptions::default()).await.emulator;
    let (status, one) = register(&first, json!({})).await;
    assert_eq!(status, 200);
    let (endpoint, token) = (one["endpoint"].as_str().unwrap(), one["token"].as_str().unwrap());
    assert_eq!(endpoint, format!("http://{}/push/{token}", first.running.addr()));
    let (p256dh, auth) = (one["keys"]["p256dh"].as_str().unwrap(), one["keys"]["auth"].as_str().unwrap());
    assert_eq!(one["push_token"], format!("{endpoint}#p256dh={p256dh}&auth={auth}"));
    assert_eq!(register(&first, json!({"application_server_key": "short"})).await.0, 400);
    assert_eq!(register(&first, json!({"topic": "x"})).await.0, 400);
    first.running.stop().await;

    let second = web_push(WebPushConfig { tls: TlsConfig::Plaintext, ..WebPushConfig::default() }).await;
    let (_, again) = register(&second, json!({"token": token})).await;
    assert_eq!(again["keys"], one["keys"]);
}
