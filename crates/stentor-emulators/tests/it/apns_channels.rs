//! APNs: broadcast channels, the port that manages them, and Live Activities.

use crate::rig::{self, Client, Reply, hex, post};
use futures_util::StreamExt;
use http::{Request, Response};
use serde_json::{Value, json};
use std::net::SocketAddr;
use stentor_emulators::fuzzing::InProcessEmulator;
use stentor_emulators::{ApnsConfig, ApnsOptions, RunningApns};

const BUNDLE: &str = "com.example.app";
/// The headers of a request.
type Headers<'a> = &'a [(&'a str, &'a str)];

const UPDATE: &[u8] = br#"{"aps":{"timestamp":1,"event":"update","content-state":{"score":1}}}"#;
const NOTHING_STORED: &[u8] = br#"{"message-storage-policy":0,"push-type":"LiveActivity"}"#;
const NEWEST_STORED: &[u8] = br#"{"message-storage-policy":1,"push-type":"LiveActivity"}"#;

fn options() -> ApnsOptions {
    ApnsOptions {
        require_token: false,
        management: Some(rig::CONTROL.parse().unwrap()),
        ..ApnsOptions::default()
    }
}

async fn with(vendor: ApnsOptions) -> RunningApns {
    rig::apns_with(ApnsConfig { vendor, ..ApnsConfig::default() }).await
}

/// An emulator with a connection to each of its two ports.
struct ChannelStory {
    apns: RunningApns,
    push: Client,
    management: Client,
}

impl ChannelStory {
    async fn begin(vendor: ApnsOptions) -> Self {
        let apns = with(vendor).await;
        let push = Client::connect(apns.addr()).await;
        let management = Client::connect(apns.management_addr().unwrap()).await;
        Self { apns, push, management }
    }

    fn control(&self) -> SocketAddr {
        self.apns.control_addr().unwrap()
    }

    /// Sends a request about the channels of the app.
    async fn manage(&mut self, method: &str, channel: Option<&str>, body: &[u8]) -> Reply {
        let path = format!("/1/apps/{BUNDLE}/channels");
        let headers: Vec<_> = channel.map(|channel| ("apns-channel-id", channel)).into_iter().collect();
        call(&mut self.management, (method, &path), &headers, body).await
    }

    async fn list(&mut self) -> Value {
        let path = format!("/1/apps/{BUNDLE}/all-channels");
        call(&mut self.management, ("GET", &path), &[], &[]).await.json()
    }

    async fn create(&mut self, body: &[u8]) -> String {
        let reply = self.manage("POST", None, body).await;
        assert_eq!(reply.status, 201);
        reply.headers["apns-channel-id"].to_str().unwrap().to_owned()
    }

    async fn broadcast(&mut self, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let path = format!("/4/broadcasts/apps/{BUNDLE}");
        call(&mut self.push, ("POST", &path), headers, body).await
    }

    /// Broadcasts a payload with the given expiration.
    async fn update(&mut self, channel: &str, expiration: &str, body: &[u8]) -> Reply {
        self.broadcast(&headers(channel, expiration), body).await
    }
}

async fn call(
    client: &mut Client,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let mut request = client.request(path).method(method);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.send(request.body(()).unwrap(), body).await.unwrap()
}

/// The headers that Apple requires of a broadcast.
fn headers<'a>(channel: &'a str, expiration: &'a str) -> [(&'static str, &'a str); 4] {
    [
        ("apns-channel-id", channel),
        ("apns-push-type", "liveactivity"),
        ("apns-priority", "10"),
        ("apns-expiration", expiration),
    ]
}

fn refusal(reply: &Reply) -> (u16, String) {
    (reply.status.as_u16(), reply.reason())
}

#[tokio::test]
async fn a_channel_is_created_read_listed_and_deleted() {
    let mut story = ChannelStory::begin(options()).await;
    let first = story.create(NOTHING_STORED).await;
    let second = story.create(NEWEST_STORED).await;
    let reply = story.manage("GET", Some(&second), &[]).await;
    assert_eq!((reply.status.as_u16(), reply.body.as_slice()), (200, NEWEST_STORED));
    let mut both = [first.as_str(), second.as_str()];
    both.sort_unstable();
    assert_eq!(story.list().await, json!({"channels": both}));
    let reply = story.manage("DELETE", Some(&first), &[]).await;
    assert_eq!((reply.status.as_u16(), reply.body.len()), (204, 0));
    assert_eq!(story.list().await, json!({"channels": [second]}));
    for method in ["GET", "DELETE"] {
        let reply = story.manage(method, Some(&first), &[]).await;
        assert_eq!(refusal(&reply), (400, "ChannelNotRegistered".to_owned()), "{method}");
    }
}

#[tokio::test]
async fn a_request_about_channels_that_apple_does_not_allow_is_refused() {
    let mut story = ChannelStory::begin(options()).await;
    let large = vec![b' '; 5_121];
    let bodies: &[(&[u8], u16, &str)] = &[
        (b"", 400, "BadRequestPayload"),
        (b"[]", 400, "BadRequestPayload"),
        (b"{\"push-type\":", 400, "BadRequestPayload"),
        (br#"{"message-storage-policy":0,"push-type":"LiveActivity","name":"x"}"#, 400, "BadRequestParams"),
        (br#"{"message-storage-policy":2,"push-type":"LiveActivity"}"#, 400, "BadRequestParams"),
        (br#"{"push-type":"LiveActivity"}"#, 400, "BadRequestParams"),
        (br#"{"message-storage-policy":0}"#, 400, "MissingPushType"),
        (br#"{"message-storage-policy":0,"push-type":"Alert"}"#, 400, "InvalidPushType"),
        (&large, 413, "PayloadTooLarge"),
    ];
    for (body, status, reason) in bodies {
        let reply = story.manage("POST", None, body).await;
        assert_eq!(refusal(&reply), (*status, (*reason).to_owned()));
    }
    for (method, channel, status, reason) in [
        ("GET", None, 400, "MissingChannelId"),
        ("DELETE", Some("no base64!"), 400, "BadChannelId"),
        ("GET", Some("dHN0LXNyY2gtY2hubA=="), 400, "ChannelNotRegistered"),
        ("PUT", None, 405, "MethodNotAllowed"),
    ] {
        let reply = story.manage(method, channel, &[]).await;
        assert_eq!(refusal(&reply), (status, reason.to_owned()), "{method} {channel:?}");
    }
    assert_eq!(story.list().await, json!({"channels": []}));
}

#[test]
fn an_app_has_at_most_ten_thousand_channels() {
    let config = ApnsConfig { vendor: options(), ..ApnsConfig::default() };
    let apns = InProcessEmulator::apns_management(config).unwrap();
    let call = |method, bundle: &str, channel: &str| {
        let request = Request::builder().method(method).uri(format!("/1/apps/{bundle}/channels"));
        let request = request.header("apns-channel-id", channel).body(NOTHING_STORED).unwrap();
        apns.answer(request).unwrap()
    };
    let id = |response: &Response<_>| response.headers()["apns-channel-id"].to_str().unwrap().to_owned();
    let first = id(&call("POST", BUNDLE, ""));
    for _ in 1..10_000 {
        assert_eq!(call("POST", BUNDLE, "").status(), 201);
    }
    let refused = call("POST", BUNDLE, "");
    assert_eq!(
        (refused.status().as_u16(), &refused.body()[..]),
        (400, &br#"{"reason":"CannotCreateChannelConfig"}"#[..])
    );
    assert_eq!(call("POST", "com.example.other", "").status(), 201, "the limit is that of one app");
    assert_eq!(call("DELETE", BUNDLE, &first).status(), 204);
    assert_ne!(id(&call("POST", BUNDLE, "")), first, "no id is given a second time");
}

#[tokio::test]
async fn channel_ids_follow_from_the_seed() {
    let mut ids = Vec::new();
    for seed in [1, 1, 2] {
        let apns = rig::apns_with(ApnsConfig { vendor: options(), seed, ..ApnsConfig::default() }).await;
        let (_, created) = post(apns.control_addr().unwrap(), "/channels", &json!({"bundle": BUNDLE})).await;
        ids.push(created["channel"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
}

#[tokio::test]
async fn senders_must_be_allowed_to_use_the_channels_of_an_app() {
    let topics = vec![BUNDLE.to_owned()];
    let mut story = ChannelStory::begin(ApnsOptions { topics, ..options() }).await;
    story.create(NOTHING_STORED).await;
    for (bundle, status, reason) in [
        ("com.example.other", 403, "TopicMismatch"),
        ("com.example.app.push-type.liveactivity", 400, "TopicDisallowed"),
    ] {
        let list = format!("/1/apps/{bundle}/all-channels");
        let reply = call(&mut story.management, ("GET", &list), &[], &[]).await;
        assert_eq!(refusal(&reply), (status, reason.to_owned()));
        let path = format!("/4/broadcasts/apps/{bundle}");
        let reply = call(&mut story.push, ("POST", &path), &[], UPDATE).await;
        assert_eq!(refusal(&reply), (status, reason.to_owned()));
    }
    let mut strict = ChannelStory::begin(ApnsOptions { require_token: true, ..options() }).await;
    let reply = strict.manage("POST", None, NOTHING_STORED).await;
    assert_eq!(refusal(&reply), (403, "MissingProviderToken".to_owned()));
    let reply = strict.broadcast(&[], UPDATE).await;
    assert_eq!(refusal(&reply), (403, "MissingProviderToken".to_owned()), "before the missing channel");
}

#[tokio::test]
async fn each_port_answers_bad_path_to_requests_for_the_other() {
    let mut story = ChannelStory::begin(options()).await;
    for path in ["/1/apps/com.example.app/channels", "/1/apps/com.example.app/all-channels"] {
        let reply = call(&mut story.push, ("POST", path), &[], NOTHING_STORED).await;
        assert_eq!(refusal(&reply), (404, "BadPath".to_owned()), "{path}");
    }
    let device = format!("/3/device/{}", hex(1));
    let others = ["/4/broadcasts/apps/com.example.app", &device, "/1/apps//channels", "/1/apps/a/more", "/"];
    for path in others {
        let reply = call(&mut story.management, ("POST", path), &[], UPDATE).await;
        assert_eq!(refusal(&reply), (404, "BadPath".to_owned()), "{path}");
    }
    assert_eq!(story.apns.sums().tokens.attempts, 0);
}

#[tokio::test]
async fn the_request_id_is_echoed_or_made() {
    let mut story = ChannelStory::begin(options()).await;
    let channel = story.create(NOTHING_STORED).await;
    let id = ("apns-request-id", "2288cf3f-70d8-46a6-97d7-dd5d00867127");
    let list = format!("/1/apps/{BUNDLE}/all-channels");
    let own = call(&mut story.management, ("GET", &list), &[id], &[]).await;
    let made = call(&mut story.management, ("GET", &list), &[], &[]).await;
    assert_eq!((&own.headers[id.0], made.headers[id.0].len()), (&id.1.parse().unwrap(), 36));
    let own = story.broadcast(&[&headers(&channel, "0")[..], &[id]].concat(), UPDATE).await;
    let made = story.update(&channel, "0", UPDATE).await;
    assert_eq!((&own.headers[id.0], made.headers[id.0].len()), (&id.1.parse().unwrap(), 36));
    assert_ne!(own.headers["apns-unique-id"], made.headers["apns-unique-id"]);
    assert!(!own.headers.contains_key("apns-id"));
    let wrong = call(&mut story.management, ("GET", &list), &[(id.0, "17")], &[]).await;
    assert_eq!(refusal(&wrong), (400, "BadMessageId".to_owned()));
    let refused = call(&mut story.management, ("PUT", &list), &[id], &[]).await;
    assert_eq!(&refused.headers[id.0], id.1);
}

#[tokio::test]
async fn a_broadcast_is_refused_for_its_channel_before_its_headers_and_its_payload() {
    let mut story = ChannelStory::begin(options()).await;
    let channel = story.create(NOTHING_STORED).await;
    let of_another = post(story.control(), "/channels", &json!({"bundle": "com.example.other"})).await;
    let of_another = of_another.1["channel"].as_str().unwrap().to_owned();
    let (kind, urgency, end) =
        (("apns-push-type", "LiveActivity"), ("apns-priority", "1"), ("apns-expiration", "0"));
    let to = ("apns-channel-id", channel.as_str());
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(5_113));
    let table: &[(Headers<'_>, &[u8], &str)] = &[
        (&[], b"", "MissingChannelId"),
        (&[("apns-channel-id", "!")], b"", "BadChannelId"),
        (&[("apns-channel-id", &of_another)], b"", "ChannelNotRegistered"),
        (&[to], b"", "MissingPushType"),
        (&[to, ("apns-push-type", "alert")], b"", "InvalidPushType"),
        (&[to, kind, end], b"", "BadPriority"),
        (&[to, kind, end, ("apns-priority", "7")], b"", "BadPriority"),
        (&[to, kind, urgency], b"", "BadExpirationDate"),
        (&[to, kind, urgency, ("apns-expiration", "soon")], b"", "BadExpirationDate"),
        (&[to, kind, urgency, ("apns-expiration", "1900000000")], b"", "BadExpirationDate"),
        (&[to, kind, urgency, end, ("apns-request-id", "1")], b"", "BadMessageId"),
        (&[to, kind, urgency, end], b"", "PayloadEmpty"),
        (&[to, kind, urgency, end], b"[]", "BadRequestPayload"),
        (&[to, kind, urgency, end], large.as_bytes(), "PayloadTooLarge"),
    ];
    for (headers, body, reason) in table {
        let reply = story.broadcast(headers, body).await;
        assert_eq!(reply.reason(), *reason);
    }
    assert_eq!(story.apns.counts(&channel).rejected, 11);
    assert_eq!(story.apns.counts(&of_another).rejected, 1);
    let reply = story.broadcast(&[to, kind, urgency, end], &large.as_bytes()[..1]).await;
    assert_eq!(reply.status, 400);
    let fits = format!(r#"{{"a":"{}"}}"#, "x".repeat(5_112));
    assert_eq!(story.broadcast(&[to, kind, urgency, end], fits.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn a_broadcast_is_counted_and_scripted_by_its_channel() {
    let mut story = ChannelStory::begin(options()).await;
    // Some ids have a slash, which divides the path of the control port.
    let mut channel = String::new();
    while !channel.contains('/') {
        channel = story.create(NOTHING_STORED).await;
    }
    let throttled = json!({"answer": {"error": {"code": "TooManyRequests", "retry_after_s": 3}}});
    let policy = json!({"scripts": [{"token": channel, "answers": [throttled]}]});
    story.apns.set_policy(rig::read(policy)).unwrap();
    let reply = story.update(&channel, "0", UPDATE).await;
    assert_eq!(
        (refusal(&reply), &reply.headers["retry-after"]),
        ((429, "TooManyRequests".to_owned()), &"3".parse().unwrap())
    );
    assert_eq!(story.update(&channel, "0", UPDATE).await.status, 200);
    let url = format!("http://{}/tokens/{channel}", story.control());
    let counts: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
    assert_eq!(counts, json!({"attempts": 2, "accepted": 1, "rejected": 1, "validate_only": 0}));
}

#[tokio::test]
async fn subscribed_devices_receive_broadcasts_and_only_one_policy_keeps_the_newest() {
    let mut story = ChannelStory::begin(options()).await;
    let silent = story.create(NOTHING_STORED).await;
    let storing = story.create(NEWEST_STORED).await;
    let token = story.apns.devices().register(Default::default());
    for channel in [&silent, &storing] {
        let path = format!("/device/{token}/subscribe");
        assert_eq!(post(story.control(), &path, &json!({"channel": channel})).await, (200, json!({})));
    }
    story.update(&silent, "0", UPDATE).await;
    story.update(&storing, "0", UPDATE).await;
    story.update(&storing, "1900000000", UPDATE).await;
    let kept = story.update(&storing, "1900000000", UPDATE).await;
    let url = format!("http://{}/device/{token}/messages", story.control());
    let mut lines = reqwest::get(url).await.unwrap().bytes_stream();
    let mut next =
        async || -> Value { serde_json::from_slice(&lines.next().await.unwrap().unwrap()).unwrap() };
    let waited = next().await;
    assert_eq!(waited["message_id"], kept.headers["apns-unique-id"].to_str().unwrap());
    assert_eq!((&waited["topic"], &waited["push_type"]), (&json!(storing), &json!("liveactivity")));
    story.update(&silent, "0", br#"{"aps":{"event":"end"}}"#).await;
    let live = next().await;
    assert_eq!((&live["topic"], &live["payload"]["aps"]["event"]), (&json!(silent), &json!("end")));
}

#[tokio::test]
async fn the_control_port_refuses_what_there_is_not() {
    let apns = with(options()).await;
    let control = apns.control_addr().unwrap();
    let token = apns.devices().register(Default::default());
    let created = post(control, "/channels", &json!({"bundle": BUNDLE, "policy": 1})).await.1;
    for (path, body, status) in [
        ("/channels".to_owned(), json!({"bundle": BUNDLE, "policy": 2}), 400),
        ("/channels".to_owned(), json!({}), 400),
        (format!("/device/{}/subscribe", hex(9)), created, 404),
        (format!("/device/{token}/subscribe"), json!({"channel": "dHN0"}), 404),
        (format!("/device/{token}/expire"), json!({"reason": "BadDeviceToken"}), 400),
    ] {
        assert_eq!(post(control, &path, &body).await.0, status, "{path}");
    }
}

#[tokio::test]
async fn a_token_may_end_as_expired() {
    let apns = with(options()).await;
    let control = apns.control_addr().unwrap();
    let token = apns.devices().register(Default::default());
    let mut client = Client::connect(apns.addr()).await;
    let path = format!("/device/{token}/expire");
    assert_eq!(post(control, &path, &json!({"since_ms": 5, "reason": "ExpiredToken"})).await.0, 200);
    let reply = client.push(&token).await.unwrap();
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (410, json!({"reason": "ExpiredToken", "timestamp": 5}))
    );
    assert_eq!(post(control, &path, &json!({"since_ms": 5})).await.0, 200);
    assert_eq!(client.push(&token).await.unwrap().reason(), "Unregistered");
}

#[tokio::test]
async fn a_live_activity_has_its_own_topic_and_priorities() {
    let apns = with(ApnsOptions { topics: vec![BUNDLE.to_owned()], ..options() }).await;
    let mut client = Client::connect(apns.addr()).await;
    let topic = format!("{BUNDLE}.push-type.liveactivity");
    for (topic, push_type, priority, reason) in [
        (topic.as_str(), "liveactivity", Some("10"), None),
        (&topic, "liveactivity", Some("5"), None),
        (&topic, "liveactivity", None, None),
        (&topic, "liveactivity", Some("1"), Some("BadPriority")),
        (BUNDLE, "liveactivity", Some("10"), Some("BadTopic")),
        (BUNDLE, "alert", Some("1"), None),
        ("com.other.push-type.liveactivity", "liveactivity", Some("10"), Some("TopicDisallowed")),
    ] {
        let mut headers = vec![("apns-topic", topic), ("apns-push-type", push_type)];
        headers.extend(priority.map(|priority| ("apns-priority", priority)));
        let path = format!("/3/device/{}", hex(1));
        let reply = call(&mut client, ("POST", &path), &headers, UPDATE).await;
        let found = (!reply.body.is_empty()).then(|| reply.reason());
        assert_eq!(found.as_deref(), reason, "{topic} {push_type} {priority:?}");
    }
}

#[tokio::test]
async fn a_broadcast_is_kept_under_its_channel_without_subscribers() {
    let mut story = ChannelStory::begin(ApnsOptions { keep_messages: 1, ..options() }).await;
    let channel = story.create(NOTHING_STORED).await;
    assert_eq!(story.update(&channel, "0", UPDATE).await.status, 200);
    let url = format!("http://{}/messages", story.control());
    let page: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
    assert_eq!((&page["messages"][0]["token"], &page["dropped"]), (&json!(channel), &json!(0)));
}
