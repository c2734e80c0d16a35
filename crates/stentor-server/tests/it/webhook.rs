//! The webhook of an app: upstream messages are posted to it, signed, and retried until they are taken over.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{Read, Reading};
use crate::upstream::Devices;

const PATIENCE: Duration = Duration::from_secs(30);

/// One received request.
#[derive(Debug, Clone)]
struct Posted {
    headers: HeaderMap,
    body: String,
}

/// A receiver with scripted responses; the last one is repeated.
#[derive(Clone)]
struct Receiver {
    url: String,
    came: Arc<Mutex<Vec<Posted>>>,
    answers: Arc<Mutex<Vec<(u16, &'static str)>>>,
}

impl Receiver {
    async fn open(mut answers: Vec<(u16, &'static str)>) -> Self {
        answers.reverse();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook?x=1", listener.local_addr().expect("an address"));
        let receiver = Self { url, came: Arc::default(), answers: Arc::new(Mutex::new(answers)) };
        let router = Router::new().route("/hook", post(Self::receive)).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    async fn receive(State(own): State<Self>, headers: HeaderMap, body: Bytes) -> Response {
        let body = String::from_utf8(body.to_vec()).expect("UTF-8");
        own.came.lock().expect("whole").push(Posted { headers, body });
        let mut answers = own.answers.lock().expect("whole");
        let (status, elsewhere) = if answers.len() > 1 { answers.pop().expect("one") } else { answers[0] };
        let status = StatusCode::from_u16(status).expect("a status");
        (status, [("location", elsewhere), ("retry-after", "0")], "x".repeat(100_000)).into_response()
    }

    /// Waits until this number of requests has arrived.
    async fn posted(&self, count: usize) -> Vec<Posted> {
        let patience = Instant::now() + PATIENCE;
        loop {
            let came = self.came.lock().expect("whole").clone();
            if came.len() >= count {
                return came;
            }
            assert!(Instant::now() < patience, "{} of {count} have come", came.len());
            tokio::task::yield_now().await;
        }
    }
}

impl Posted {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("text")
    }

    fn said(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// Returns true if it is signed with a secret.
    fn is_signed(&self, secret: &str) -> bool {
        self.is_signed_with(&[secret])
    }

    /// Returns true if it is signed with exactly these secrets, in this order.
    fn is_signed_with(&self, secrets: &[&str]) -> bool {
        let signatures: Vec<String> = secrets.iter().map(|secret| self.signature(secret)).collect();
        self.header("webhook-signature") == signatures.join(" ")
    }

    fn signature(&self, secret: &str) -> String {
        let bytes = STANDARD.decode(secret.strip_prefix("whsec_").expect("a mark")).expect("base64");
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &bytes);
        let (id, second) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let tag = aws_lc_rs::hmac::sign(&key, format!("{id}.{second}.{}", self.body).as_bytes());
        format!("v1,{}", STANDARD.encode(tag))
    }
}

async fn put(devices: &Devices, body: Value) -> Read {
    let path = format!("/v1/apps/{}/upstream-webhook", devices.tenant.id);
    devices.server.send(&devices.tenant, Method::PUT, &path).json(&body).read().await
}

/// Waits until no message is waiting.
async fn nothing_waits(devices: &Devices) {
    let empty = |found: &Value| found["messages"].as_array().is_some_and(Vec::is_empty);
    crate::upstream::eventually(devices, "/v1/upstream/messages", empty).await;
}

#[tokio::test]
async fn a_message_is_posted_signed_and_again_until_it_is_taken_over() {
    let receiver = Receiver::open(vec![(500, "/"), (429, "/"), (302, "http://192.0.2.1/"), (204, "/")]).await;
    let devices = Devices::with(|config| config.upstream.retry_base_ms = 5).await;
    let secret = put(&devices, json!({"url": receiver.url})).await.text("secret");
    let id = devices.says(1).await.to_string();
    nothing_waits(&devices).await;
    let came = receiver.posted(4).await;
    assert_eq!(came.len(), 4, "a redirect is not followed, and what was taken over comes no more");
    for (posted, attempt) in came.iter().zip(1..) {
        assert!(posted.is_signed(&secret), "{posted:?}");
        assert_eq!(posted.header("webhook-id"), id);
        assert_eq!(posted.header("content-type"), "application/json");
        let said = posted.said();
        assert_eq!((&said["id"], &said["data"]), (&json!(id), &json!({"n": "1"})));
        assert_eq!((&said["attempt"], &said["again"]), (&json!(attempt), &json!(attempt > 1)));
    }
    let dead = devices.server.get(&devices.tenant, "/v1/upstream/dead-letters").await;
    assert_eq!(dead["dead_letters"], json!([]));
}

#[tokio::test]
async fn what_a_webhook_refuses_too_often_is_a_dead_letter_and_another_webhook_gets_it_when_retried() {
    let receiver = Receiver::open(vec![(503, "/")]).await;
    let devices = Devices::with(|config| {
        (config.upstream.retry_base_ms, config.upstream.attempts_max_count) = (1, 3);
        // The webhook takes its place.
        config.upstream.command = vec!["/bin/true".to_owned()];
    })
    .await;
    let made = put(&devices, json!({"url": receiver.url})).await.text("secret");
    let id = devices.says(1).await.to_string();
    let one = |found: &Value| found["dead_letters"].as_array().is_some_and(|all| all.len() == 1);
    let dead = crate::upstream::eventually(&devices, "/v1/upstream/dead-letters", one).await;
    assert_eq!(dead["dead_letters"][0]["reason"], "the webhook answered 503");
    assert_eq!((&dead["dead_letters"][0]["attempts"], receiver.posted(3).await.len()), (&json!(3), 3));
    let other = Receiver::open(vec![(200, "/")]).await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let replaced = put(&devices, json!({"url": other.url, "secret": secret})).await;
    assert_eq!((replaced.status, &replaced.body["secret"]), (200, &Value::Null), "it was given");
    devices.server.post(&devices.tenant, "/v1/upstream/dead-letters/retry", json!({"ids": [id]})).await;
    let came = other.posted(1).await;
    assert!(came[0].is_signed_with(&[secret, &made]) && came[0].said()["again"] == true, "{came:?}");
    nothing_waits(&devices).await;
}

/// Lets the device send messages until one is posted with these signatures: a new webhook is in use a moment later.
async fn until_signed(devices: &Devices, receiver: &Receiver, secrets: &[&str]) {
    let patience = Instant::now() + PATIENCE;
    for number in receiver.posted(0).await.len() as u64 + 1.. {
        devices.says(number).await;
        nothing_waits(devices).await;
        let came = receiver.posted(number as usize).await;
        if came.last().is_some_and(|posted| posted.is_signed_with(secrets)) {
            return;
        }
        assert!(Instant::now() < patience, "{came:?}");
    }
}

#[tokio::test]
async fn the_former_secret_holds_beside_a_new_one_until_the_webhook_is_deleted() {
    let receiver = Receiver::open(vec![(200, "/")]).await;
    let devices = Devices::new().await;
    let first = put(&devices, json!({"url": receiver.url})).await.text("secret");
    until_signed(&devices, &receiver, &[&first]).await;
    let second = put(&devices, json!({"url": receiver.url})).await.text("secret");
    until_signed(&devices, &receiver, &[&second, &first]).await;
    // Another put with the same secret does not end the former one.
    put(&devices, json!({"url": format!("{}&again=1", receiver.url), "secret": second})).await;
    until_signed(&devices, &receiver, &[&second, &first]).await;
    let path = format!("/v1/apps/{}/upstream-webhook", devices.tenant.id);
    let deleted = devices.server.send(&devices.tenant, Method::DELETE, &path).read().await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    let third = put(&devices, json!({"url": receiver.url})).await.text("secret");
    until_signed(&devices, &receiver, &[&third]).await;
}

#[tokio::test]
async fn a_webhook_is_shown_without_its_secret_and_ends_with_its_removal() {
    let receiver = Receiver::open(vec![(200, "/")]).await;
    let devices = Devices::new().await;
    let path = format!("/v1/apps/{}/upstream-webhook", devices.tenant.id);
    put(&devices, json!({"url": receiver.url})).await.text("secret");
    let shown = devices.server.get(&devices.tenant, &path).await;
    assert_eq!((&shown["url"], shown.get("secret")), (&json!(receiver.url), None));
    assert!(shown["updated_at"].is_string(), "{shown}");
    devices.says(1).await;
    receiver.posted(1).await;
    let gone = devices.server.send(&devices.tenant, Method::DELETE, &path).read().await;
    assert_eq!(gone.status, 204, "{gone:?}");
    let missing = devices.server.send(&devices.tenant, Method::GET, &path).read().await;
    assert_eq!(missing.refusal().1, "not_found");
    let key = devices.server.key(&devices.tenant.id, &["send", "register"]).await;
    let refused = devices.server.with_key(&key, Method::PUT, &path).json(&json!({"url": receiver.url}));
    assert_eq!(refused.read().await.refusal().1, "forbidden");
}

#[tokio::test]
async fn an_address_that_cannot_be_posted_to_is_refused_and_the_operator_may_forbid_private_networks() {
    let devices = Devices::with(|config| {
        (config.upstream.webhook_networks, config.outbound.allowed_networks) = (Vec::new(), Vec::new());
    })
    .await;
    for url in ["ftp://a.example/", "https://me:pw@a.example/", "nothing", "https://a.example/#x"] {
        let refused = put(&devices, json!({"url": url})).await.refusal();
        assert_eq!((refused.1.as_str(), refused.2.as_deref()), ("invalid_field", Some("url")), "{url}");
    }
    for url in ["http://localhost/", "http://127.0.0.1:1/", "http://10.1.2.3/", "http://169.254.169.254/"] {
        let refused = put(&devices, json!({"url": url})).await.refusal();
        assert_eq!((refused.1.as_str(), refused.2.as_deref()), ("address_refused", Some("url")), "{url}");
    }
    let short = put(&devices, json!({"url": "https://a.example/", "secret": "whsec_YWJj"})).await.refusal();
    assert_eq!((short.1.as_str(), short.2.as_deref()), ("invalid_field", Some("secret")));
    let usual = Devices::new().await;
    let metadata = put(&usual, json!({"url": "http://169.254.169.254/latest"})).await.refusal();
    assert_eq!(metadata.1, "address_refused", "a cloud's secrets are nobody's webhook");
    assert_eq!(put(&usual, json!({"url": "http://10.1.2.3/hook"})).await.status, 200);
}

/// Opens a receiver that refuses the messages of these devices, and counts the messages that it takes over.
async fn refusing(refused: Vec<String>) -> (String, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let taken = Arc::<Mutex<usize>>::default();
    let counts = Arc::clone(&taken);
    let receive = move |body: Bytes| {
        let said: Value = serde_json::from_slice(&body).expect("JSON");
        let is_refused = refused.iter().any(|device| said["device"] == json!(device));
        if !is_refused {
            *counts.lock().expect("whole") += 1;
        }
        std::future::ready(if is_refused {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            StatusCode::NO_CONTENT
        })
    };
    let router = Router::new().route("/hook", post(receive));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, taken)
}

#[tokio::test]
async fn devices_whose_messages_a_webhook_refuses_delay_no_other_device() {
    // They are not tried again while this test runs.
    let devices = Devices::with(|config| config.upstream.retry_base_ms = 600_000).await;
    // Two devices fill a whole window.
    for number in 0..180 {
        devices.says(number).await;
    }
    let refused = [1, 2].map(|device| stentor_core::id::DeviceId::from_raw(device).to_string());
    let (url, taken) = refusing(refused.to_vec()).await;
    put(&devices, json!({"url": url})).await;
    devices.says(180).await;
    let patience = Instant::now() + PATIENCE;
    while *taken.lock().expect("whole") == 0 {
        assert!(Instant::now() < patience, "the third device's message is behind those of others");
        tokio::task::yield_now().await;
    }
}
