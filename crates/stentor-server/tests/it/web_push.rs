//! Web Push from end to end: a browser's WebSocket on one side, its sites' senders on the other.

mod faults;

use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use stentor_server::config::Engine as StoreEngine;

use crate::harness::{Reading, Server, Tenant, server, server_on, server_with};

const CHANNEL: &str = "d9b74644-4f97-46aa-b8fa-9393985cd6cd";

/// A device's side of the WebSocket (RFC 6455), as small as it can be.
struct Browser(TcpStream);

impl Browser {
    async fn connect(server: &Server, app: &str) -> Self {
        let host = server.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).await.expect("connected");
        let request = format!(
            "GET /gateway/v1/autopush/{app} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: push-notification\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("an answer"));
        }
        let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert!(head.contains("sec-websocket-protocol: push-notification"), "{head}");
        Self(stream)
    }

    /// Writes a text with a mask of zeros.
    async fn say(&mut self, message: Value) {
        let text = message.to_string();
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend_from_slice(&u16::try_from(text.len()).expect("a short text").to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.0.write_all(&frame).await.expect("written");
    }

    /// Reads a frame; returns its opcode and payload.
    async fn frame(&mut self) -> (u8, Vec<u8>) {
        let read = async {
            let (first, second) = (self.0.read_u8().await?, self.0.read_u8().await?);
            let length = match second {
                126 => usize::from(self.0.read_u16().await?),
                length => usize::from(length),
            };
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload).await?;
            Ok::<_, std::io::Error>((first & 0x0f, payload))
        };
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("in time").expect("a frame")
    }

    async fn hear(&mut self) -> Value {
        let (opcode, payload) = self.frame().await;
        assert_eq!(opcode, 1, "a text: {payload:?}");
        serde_json::from_slice(&payload).expect("JSON")
    }

    /// Sends hello; returns the agent id of the reply.
    async fn greet(&mut self, agent: Option<&str>) -> String {
        self.say(json!({"messageType": "hello", "use_webpush": true, "broadcasts": {}, "uaid": agent})).await;
        let heard = self.hear().await;
        assert_eq!((&heard["messageType"], &heard["status"]), (&json!("hello"), &json!(200)), "{heard}");
        heard["uaid"].as_str().expect("a name").to_owned()
    }

    /// Subscribes; returns the URL for senders.
    async fn subscribe(&mut self, key: Option<&str>) -> String {
        self.say(json!({"messageType": "register", "channelID": CHANNEL, "key": key})).await;
        let heard = self.hear().await;
        assert_eq!((&heard["status"], &heard["channelID"]), (&json!(200), &json!(CHANNEL)), "{heard}");
        let url = heard["pushEndpoint"].as_str().expect("a URL").to_owned();
        assert!(url.len() <= 1_000);
        url
    }

    /// Acknowledges a notification.
    async fn confirm(&mut self, notification: &Value, code: u64) {
        let update = json!({"channelID": CHANNEL, "version": notification["version"], "code": code});
        self.say(json!({"messageType": "ack", "updates": [update]})).await;
    }
}

/// Creates an app with open registration.
async fn open_app(server: &Server) -> Tenant {
    let tenant = server.tenant().await;
    let path = format!("/v1/apps/{}/credentials/gateway", tenant.id);
    let put = server.send(&tenant, Method::PUT, &path).json(&json!({"open_registration": true}));
    assert_eq!(put.read().await.status, 204);
    tenant
}

/// A body that looks as if it were sealed.
fn sealed() -> Vec<u8> {
    [&[7; 16][..], &4_096_u32.to_be_bytes(), &[65, 4], &[9; 64 + 30]].concat()
}

fn push(server: &Server, url: &str) -> RequestBuilder {
    let request = server.client.post(url).header("TTL", "600").header("Content-Encoding", "aes128gcm");
    request.body(sealed())
}

fn header(response: &Response, name: &str) -> String {
    response.headers()[name].to_str().expect("text").to_owned()
}

/// Reconnects as the same agent. Messages pushed in its absence are found in the ledger.
async fn returned(server: &Server, app: &str, agent: &str) -> Browser {
    let mut browser = Browser::connect(server, app).await;
    assert_eq!(browser.greet(Some(agent)).await, agent);
    browser
}

#[tokio::test]
async fn a_push_waits_for_its_browser_and_comes_as_it_was_sealed_until_it_is_acknowledged() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let mut browser = Browser::connect(&server, &app).await;
    let agent = browser.greet(None).await;
    let url = browser.subscribe(None).await;
    drop(browser);
    let pushed = push(&server, &url).send().await.expect("an answer");
    assert_eq!((pushed.status().as_u16(), header(&pushed, "ttl")), (201, "600".to_owned()));
    assert!(header(&pushed, "location").starts_with(&server.url));
    let mut browser = returned(&server, &app, &agent).await;
    let heard = settled_notification(&server, &app, &agent, &mut browser).await;
    assert_eq!((&heard["messageType"], &heard["channelID"]), (&json!("notification"), &json!(CHANNEL)));
    assert_eq!(heard["data"], URL_SAFE_NO_PAD.encode(sealed()));
    assert_eq!(heard["headers"], json!({"encoding": "aes128gcm"}));
    let mut again = returned(&server, &app, &agent).await;
    assert_eq!(again.hear().await["version"], heard["version"], "what was not acknowledged comes again");
    let (opcode, code) = browser.frame().await;
    assert_eq!((opcode, code), (8, 1_000_u16.to_be_bytes().to_vec()), "the later connection has the place");
    again.confirm(&heard, 100).await;
    again.say(json!({})).await;
    assert_eq!(again.hear().await, json!({}));
}

/// Waits for the notification; reconnects while the push is still in the pipeline.
async fn settled_notification(server: &Server, app: &str, agent: &str, browser: &mut Browser) -> Value {
    for _ in 0..200 {
        let next = tokio::time::timeout(Duration::from_millis(100), browser.hear()).await;
        if let Ok(heard) = next {
            return heard;
        }
        *browser = returned(server, app, agent).await;
    }
    panic!("nothing is heard");
}

#[tokio::test]
async fn a_receipt_says_when_the_browser_has_the_message_and_when_it_has_dropped_it() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let mut browser = Browser::connect(&server, &app).await;
    let agent = browser.greet(None).await;
    let url = browser.subscribe(None).await;
    for (code, status) in [(100, 204), (101, 410), (102, 410)] {
        let pushed = push(&server, &url).header("Prefer", "respond-async").send().await.expect("an answer");
        assert_eq!(pushed.status(), 202);
        let link = header(&pushed, "link");
        let (receipt, relation) = link.split_once("; ").expect("a link");
        assert_eq!(relation, "rel=\"urn:ietf:params:push:receipt\"");
        let receipt = receipt.trim_matches(['<', '>']);
        let pending = server.client.get(receipt).send().await.expect("an answer");
        assert_eq!(pending.status(), 202, "it waits");
        let heard = settled_notification(&server, &app, &agent, &mut browser).await;
        browser.confirm(&heard, code).await;
        let response =
            server.client.get(receipt).header("Prefer", "wait=15").send().await.expect("an answer");
        assert_eq!(response.status(), status, "{code}");
    }
}

#[tokio::test]
async fn a_withdrawn_message_is_heard_by_nobody_and_its_receipt_is_over() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let mut browser = Browser::connect(&server, &app).await;
    let agent = browser.greet(None).await;
    let url = browser.subscribe(None).await;
    drop(browser);
    let first = push(&server, &url).header("Prefer", "respond-async").send().await.expect("an answer");
    let link = header(&first, "link");
    let receipt = link.split_once('>').expect("a link").0.trim_start_matches('<').to_owned();
    let gone = server.client.delete(header(&first, "location")).send().await.expect("an answer");
    assert_eq!(gone.status(), 204);
    let response = server.client.get(receipt).header("Prefer", "wait=15").send().await.expect("an answer");
    assert_eq!(response.status(), 410);
    let second = push(&server, &url).header("Topic", "second").send().await.expect("an answer");
    assert_eq!(second.status(), 201);
    let mut browser = returned(&server, &app, &agent).await;
    let heard = settled_notification(&server, &app, &agent, &mut browser).await;
    browser.confirm(&heard, 100).await;
    browser.say(json!({})).await;
    assert_eq!(browser.hear().await, json!({}), "the second was the only one");
}

#[tokio::test]
async fn a_subscription_ends_with_the_wish_of_its_device_and_its_agent_is_forgotten() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let mut browser = Browser::connect(&server, &app).await;
    let agent = browser.greet(None).await;
    let url = browser.subscribe(None).await;
    assert_eq!(browser.subscribe(None).await, url, "the same subscription has the same URL");
    browser.say(json!({"messageType": "unregister", "channelID": CHANNEL, "code": 200})).await;
    let heard = browser.hear().await;
    assert_eq!(heard, json!({"messageType": "unregister", "channelID": CHANNEL, "status": 200}));
    let refused = push(&server, &url).read().await;
    assert_eq!((refused.status, refused.body["errno"].as_u64()), (410, Some(106)));
    drop(browser);
    let mut browser = Browser::connect(&server, &app).await;
    assert_ne!(browser.greet(Some(&agent)).await, agent, "its subscriptions are gone, and it is told so");
}

#[tokio::test]
async fn behind_a_proxy_addresses_are_those_that_the_operator_names() {
    let server =
        server_with(|config| config.gateway.public_url = "https://push.example.org/".to_owned()).await;
    let app = open_app(&server).await.id;
    let mut browser = Browser::connect(&server, &app).await;
    browser.greet(None).await;
    let sender = Sender::new();
    let url = browser.subscribe(Some(&sender.key())).await;
    let path = url.strip_prefix("https://push.example.org/gateway/v1/push/").expect("the proxy's address");
    let inside = format!("{}/gateway/v1/push/{path}", server.url);
    for (audience, status) in [("https://push.example.org", 202), (server.url.as_str(), 401)] {
        let token = sender.header(audience, 3_600);
        let request = push(&server, &inside).header("Authorization", token).header("Prefer", "respond-async");
        let pushed = request.send().await.expect("an answer");
        assert_eq!(pushed.status(), status, "{audience}");
        if status == 202 {
            assert!(
                header(&pushed, "location").starts_with("https://push.example.org/gateway/v1/push/messages/")
            );
            assert!(
                header(&pushed, "link").starts_with("<https://push.example.org/gateway/v1/push/receipts/")
            );
        }
    }
}

#[tokio::test]
async fn agents_without_a_channel_make_room_and_those_with_one_keep_their_places() {
    let server = server_with(|config| config.api.connections_max_count = 4).await;
    let app = open_app(&server).await.id;
    let mut subscribed = Browser::connect(&server, &app).await;
    subscribed.greet(None).await;
    subscribed.subscribe(None).await;
    let mut lonely = Vec::new();
    for number in 0..8 {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let request = client.get(format!("{}/healthz", server.url)).send();
        let answer = tokio::time::timeout(Duration::from_secs(20), request).await;
        let answer = answer.unwrap_or_else(|_| panic!("no room beside {number} agents"));
        assert_eq!(answer.expect("an answer").status(), 200);
        let mut browser = Browser::connect(&server, &app).await;
        browser.greet(None).await;
        lonely.push(browser);
    }
    subscribed.say(json!({})).await;
    assert_eq!(subscribed.hear().await, json!({}));
}

#[tokio::test]
async fn nobody_registers_by_itself_at_an_app_that_does_not_say_so() {
    let server = server().await;
    let app = server.sender().await.id;
    let mut browser = Browser::connect(&server, &app).await;
    browser.greet(None).await;
    browser.say(json!({"messageType": "register", "channelID": CHANNEL})).await;
    let heard = browser.hear().await;
    assert_eq!((&heard["status"], &heard["channelID"]), (&json!(403), &json!(CHANNEL)));
}

#[tokio::test]
async fn what_a_sender_does_wrong_is_said_in_autopushs_words() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let mut browser = Browser::connect(&server, &app).await;
    browser.greet(None).await;
    let url = browser.subscribe(None).await;
    let bare = || server.client.post(&url).body(sealed());
    for (request, status, number) in [
        (bare(), 400, 111),
        (bare().header("TTL", "soon"), 400, 112),
        (bare().header("TTL", "1").header("Topic", "a b"), 400, 113),
        (bare().header("TTL", "1").header("Content-Encoding", "aesgcm"), 400, 101),
        (bare().header("TTL", "1").header("Content-Encoding", "gzip"), 400, 110),
        (push(&server, &url).body(vec![1; 4_097]), 413, 104),
        (push(&server, &url).header("Authorization", "vapid t=a.b.c, k=abc"), 401, 109),
        (push(&server, &url[..url.len() - 2]), 404, 102),
    ] {
        let read = request.read().await;
        assert_eq!(
            (read.status, &read.body["code"], &read.body["errno"]),
            (status, &json!(status), &json!(number)),
            "{read:?}"
        );
        assert!(read.body["error"].is_string() && read.body["message"].is_string(), "{read:?}");
    }
}

#[tokio::test]
async fn a_device_that_gets_too_many_messages_gets_no_more_for_a_while() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let mut browser = Browser::connect(&server, &app).await;
    browser.greet(None).await;
    let url = browser.subscribe(None).await;
    for sent in 0..1_000 {
        let answer = push(&server, &url).send().await.expect("an answer");
        if answer.status() == 429 {
            assert!(sent >= 240, "{sent} were taken");
            assert!(header(&answer, "retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1));
            return;
        }
        assert_eq!(answer.status(), 201);
    }
    panic!("1,000 messages at once are too many");
}

/// A sender's key pair.
struct Sender(EcdsaKeyPair);

impl Sender {
    fn new() -> Self {
        Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key pair"))
    }

    fn key(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key())
    }

    fn header(&self, audience: &str, ahead_seconds: u64) -> String {
        format!("vapid t={}, k={}", self.token(audience, ahead_seconds), self.key())
    }

    fn token(&self, audience: &str, ahead_seconds: u64) -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let claims =
            json!({"aud": audience, "exp": now.as_secs() + ahead_seconds, "sub": "mailto:me@example"});
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(json!({"typ": "JWT", "alg": "ES256"})), part(claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

#[tokio::test]
async fn a_subscription_that_was_made_for_a_key_is_used_by_its_holder_only() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let (own, other) = (Sender::new(), Sender::new());
    let mut browser = Browser::connect(&server, &app).await;
    browser.greet(None).await;
    // Firefox writes padding.
    let url = browser.subscribe(Some(&format!("{}=", own.key()))).await;
    let with = |header: Option<String>| {
        let request = push(&server, &url);
        header.map_or(push(&server, &url), |header| request.header("Authorization", header))
    };
    for (header, status) in [
        (Some(own.header(&server.url, 3_600)), 201),
        (None, 401),
        (Some(other.header(&server.url, 3_600)), 401),
        (Some(own.header("https://elsewhere.example", 3_600)), 401),
        (Some(own.header(&server.url, 90_000)), 401),
    ] {
        assert_eq!(with(header).send().await.expect("an answer").status(), status);
    }
}

#[tokio::test]
async fn a_key_that_an_app_has_named_says_whose_a_device_is() {
    let server = server().await;
    let tenant = server.tenant().await;
    let sender = Sender::new();
    let path = format!("/v1/apps/{}/credentials/gateway", tenant.id);
    let credential = json!({"open_registration": true, "vapid_key": sender.key()});
    let put = server.send(&tenant, Method::PUT, &path).json(&credential);
    assert_eq!(put.read().await.status, 204);
    let mut browser = Browser::connect(&server, "").await;
    browser.greet(None).await;
    browser.subscribe(Some(&sender.key())).await;
    let listed = server.get(&tenant, "/v1/devices").await;
    assert_eq!(listed["devices"].as_array().map(Vec::len), Some(1), "{listed}");
    browser.say(json!({"messageType": "register", "channelID": "other", "key": Sender::new().key()})).await;
    assert_eq!(browser.hear().await["status"], 403);
}

async fn put_key(server: &Server, tenant: &Tenant, credential: Value) -> (u16, String) {
    let path = format!("/v1/apps/{}/credentials/gateway", tenant.id);
    let read = server.send(tenant, Method::PUT, &path).json(&credential).read().await;
    (read.status, read.body["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_key_of_senders_is_one_apps_and_its_holder_says_whose() {
    for engine in [StoreEngine::Memory, StoreEngine::Sqlite] {
        let server = server_on(engine, |_| {}).await;
        let (owner, thief, sender) = (server.tenant().await, server.tenant().await, Sender::new());
        let claim = json!({"open_registration": true, "vapid_key": sender.key()});
        let proven = |app: &Tenant| {
            let mut claim = claim.clone();
            claim["vapid_proof"] = json!(sender.token(&app.id, 3_600));
            claim
        };
        // The first app to claim the key holds it, also when it puts the key again.
        assert_eq!(put_key(&server, &thief, claim.clone()).await.0, 204);
        assert_eq!(put_key(&server, &thief, claim.clone()).await.0, 204);
        assert_eq!(put_key(&server, &owner, claim.clone()).await, (409, "conflict".to_owned()));
        // Until another app proves to hold it. The holder's signatures for its own app, or for a push service, are of no use to other apps.
        for stolen in
            [proven(&owner), json!({"vapid_key": sender.key(), "vapid_proof": sender.token(&server.url, 60)})]
        {
            assert_eq!(put_key(&server, &thief, stolen).await, (422, "invalid_field".to_owned()));
        }
        assert_eq!(put_key(&server, &owner, proven(&owner)).await.0, 204);
        assert_eq!(put_key(&server, &thief, claim.clone()).await, (409, "conflict".to_owned()));
        let mut browser = Browser::connect(&server, "").await;
        browser.greet(None).await;
        browser.subscribe(Some(&sender.key())).await;
        let count =
            async |app: &Tenant| server.get(app, "/v1/devices").await["devices"].as_array().map(Vec::len);
        assert_eq!((count(&owner).await, count(&thief).await), (Some(1), Some(0)));
    }
}

#[tokio::test]
async fn a_token_for_another_push_service_is_refused_whatever_host_its_request_names() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let mut browser = Browser::connect(&server, &app).await;
    browser.greet(None).await;
    let sender = Sender::new();
    let url = browser.subscribe(Some(&sender.key())).await;
    for (audience, host, status) in [
        (server.url.as_str(), None, 201),
        (server.url.as_str(), Some("evil.example"), 201),
        ("https://evil.example", None, 401),
        ("https://evil.example", Some("evil.example"), 401),
        ("http://evil.example", Some("evil.example"), 401),
    ] {
        let request = push(&server, &url).header("Authorization", sender.header(audience, 3_600));
        let request = host.into_iter().fold(request, |request, host| request.header("Host", host));
        let pushed = request.send().await.expect("an answer");
        assert_eq!(pushed.status(), status, "{audience} {host:?}");
    }
}
