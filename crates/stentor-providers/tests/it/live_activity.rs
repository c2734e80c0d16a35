//! Live Activities: the fields of a message, the requests, and the adapter against the emulator of APNs.

use std::sync::Arc;

use rcgen::KeyPair;
use serde_json::{Map, Value, json};
use stentor_core::channel::ChannelStorage;
use stentor_core::device::ProviderKind;
use stentor_core::message::{Content, Message, MessageSpec, Notification, Priority};
use stentor_core::name::ChannelId;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::{Batch, ChannelRefusal, Provider};
use stentor_emulators::apns::ApnsKey;
use stentor_emulators::policy::{Policy, ServiceError};
use stentor_emulators::{ApnsConfig, ApnsEmulator, ApnsOptions, RunningApns};
use stentor_providers::{RequestPreview, descriptor, open};

use crate::support::{StillClock, always, batch, rejected, setup, within};

const BUNDLE_ID: &str = "com.example.app";

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn update() -> Map<String, Value> {
    fields(json!({"event": "update", "activity": "game-7", "content_state": {"home": 1}}))
}

fn start() -> Map<String, Value> {
    fields(json!({"event": "start", "content_state": {}, "attributes_type": "Game", "attributes": {"id": 7}}))
}

fn alert() -> Option<Notification> {
    Some(Notification { title: Some("Goal".into()), ..Notification::default() })
}

fn content(fields: Map<String, Value>) -> Content {
    let notification = if fields.get("event") == Some(&json!("start")) { alert() } else { None };
    Content { notification, overrides: [(ProviderKind::LiveActivity, fields)].into(), ..Content::default() }
}

fn spec(content: Content) -> MessageSpec {
    let some = batch(&["a".to_owned()], &StillClock::new());
    MessageSpec { content, ..some.message.spec.clone() }
}

/// Returns the field at fault and the problem.
fn refused(provider: ProviderKind, content: Content) -> Option<(String, String)> {
    let checked = (descriptor(provider).check)(&spec(content));
    checked.err().map(|invalid| (invalid.field.clone(), invalid.problem.clone()))
}

fn with(mut fields: Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    match value {
        Value::Null => fields.remove(name),
        value => fields.insert(name.to_owned(), value),
    };
    fields
}

#[test]
fn each_field_of_an_update_and_of_a_start_has_its_form_and_the_error_names_it() {
    for good in [
        update(),
        start(),
        with(update(), "stale_date", json!(1_900_000_000)),
        with(with(update(), "event", json!("end")), "content_state", Value::Null),
        with(with(update(), "event", json!("end")), "dismissal_date", json!(1)),
        with(start(), "input_push_channel", json!("dHN0LXNyY2gtY2hubA==")),
    ] {
        assert_eq!(refused(ProviderKind::LiveActivity, content(good.clone())), None, "{good:?}");
    }
    let cases = [
        (update(), "event", json!("stop")),
        (update(), "event", Value::Null),
        (update(), "activity", Value::Null),
        (update(), "activity", json!("a".repeat(49))),
        (update(), "activity", json!(" a")),
        (update(), "content_state", Value::Null),
        (update(), "content_state", json!("text")),
        (update(), "attributes", json!({})),
        (update(), "dismissal_date", json!(1_900_000_000)),
        (update(), "stale_date", json!("tomorrow")),
        (update(), "sound", json!("a.aiff")),
        (update(), "colour", json!("red")),
        (start(), "activity", json!("game-7")),
        (start(), "attributes_type", Value::Null),
        (start(), "attributes", Value::Null),
        (with(start(), "input_push_token", json!(true)), "input_push_channel", json!("a")),
    ];
    for (good, name, value) in cases {
        let found = refused(ProviderKind::LiveActivity, content(with(good, name, value.clone())));
        assert_eq!(found.expect("refused").0, format!("live_activity.{name}"), "{value}");
    }
}

#[test]
fn the_other_parts_of_a_message_are_checked_too() {
    let found = |content| refused(ProviderKind::LiveActivity, content).expect("refused").0;
    assert_eq!(found(Content { notification: None, ..content(start()) }), "notification");
    assert_eq!(found(Content { data: [("a".into(), "b".into())].into(), ..content(update()) }), "data");
    let mut both = content(update());
    both.overrides.insert(ProviderKind::Fcm, Map::new());
    assert_eq!(found(both), "live_activity");
    let picture = Notification { image: Some("https://a.example/b.png".into()), ..Notification::default() };
    assert_eq!(found(Content { notification: Some(picture), ..content(update()) }), "notification.image");
}

#[test]
fn a_broadcast_may_be_larger_than_a_push_to_a_token() {
    let large = content(with(update(), "content_state", json!({"text": "a".repeat(4_500)})));
    let (field, problem) = refused(ProviderKind::LiveActivity, large.clone()).expect("too large");
    assert_eq!(field, "live_activity");
    assert!(problem.contains("at most 4096"), "{problem}");
    assert_eq!(refused(ProviderKind::LiveActivityChannel, large), None);
}

fn preview(provider: ProviderKind, content: Content) -> (RequestPreview, Value) {
    let key = KeyPair::generate().expect("a key");
    let secret = json!({
        "key_p8": key.serialize_pem(), "key_id": "KEY0123456", "team_id": "TEAM012345", "bundle_id": BUNDLE_ID,
    });
    let message = Message { spec: spec(content), ..(*batch(&[], &StillClock::new()).message).clone() };
    let preview = descriptor(provider).preview.expect("a preview");
    let shown = preview(&secret.to_string(), &message).expect("a credential");
    let body = serde_json::from_str(&shown.body).expect("JSON");
    (shown, body)
}

fn header<'a>(shown: &'a RequestPreview, name: &str) -> Option<&'a str> {
    shown.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[test]
fn an_update_an_end_and_a_start_are_written_as_activitykit_wants_them() {
    let timed = with(with(update(), "timestamp", json!(1_764_400_000)), "stale_date", json!(1_764_400_900));
    let (shown, body) = preview(ProviderKind::LiveActivity, content(timed));
    assert_eq!(shown.url, "https://api.push.apple.com/3/device/{token}");
    assert_eq!(header(&shown, "apns-topic"), Some("com.example.app.push-type.liveactivity"));
    assert_eq!(header(&shown, "apns-push-type"), Some("liveactivity"));
    assert_eq!(header(&shown, "apns-priority"), Some("10"));
    let aps = json!({
        "timestamp": 1_764_400_000, "event": "update", "content-state": {"home": 1}, "stale-date": 1_764_400_900,
    });
    assert_eq!(body, json!({ "aps": aps }));

    let end = with(with(update(), "event", json!("end")), "dismissal_date", json!(12));
    let (_, body) = preview(ProviderKind::LiveActivity, content(end));
    assert_eq!((&body["aps"]["event"], &body["aps"]["dismissal-date"]), (&json!("end"), &json!(12)));

    let (_, body) =
        preview(ProviderKind::LiveActivityStart, content(with(start(), "input_push_token", json!(true))));
    assert_eq!(body["aps"]["attributes-type"], "Game");
    assert_eq!(body["aps"]["input-push-token"], 1);
    assert_eq!(body["aps"]["alert"], json!({"title": "Goal"}));
    assert!(body["aps"]["timestamp"].as_i64().is_some_and(|seconds| seconds > 1_700_000_000));
}

#[test]
fn a_broadcast_is_stored_only_if_the_message_says_so() {
    let (shown, _) = preview(ProviderKind::LiveActivityChannel, content(update()));
    assert_eq!(shown.url, "https://api.push.apple.com/4/broadcasts/apps/com.example.app");
    assert_eq!((header(&shown, "apns-expiration"), header(&shown, "apns-topic")), (Some("0"), None));
    let (shown, _) =
        preview(ProviderKind::LiveActivityChannel, content(with(update(), "stored", json!(true))));
    assert_ne!(header(&shown, "apns-expiration"), Some("0"));
}

struct Scene {
    emulator: RunningApns,
    provider: Arc<dyn Provider>,
    clock: Arc<StillClock>,
}

impl Scene {
    async fn start(kind: ProviderKind, policy: Policy) -> Self {
        let key = KeyPair::generate().expect("a key");
        let known = ApnsKey {
            team_id: "TEAM012345".into(),
            key_id: "KEY0123456".into(),
            public_key_pem: Some(key.public_key_pem()),
        };
        let management = Some(([127, 0, 0, 1], 0).into());
        let vendor = ApnsOptions { keys: vec![known], management, ..ApnsOptions::default() };
        let config = ApnsConfig { policy, vendor, ..ApnsConfig::default() };
        let emulator = ApnsEmulator::start(config).await.expect("an emulator");
        let clock = StillClock::new();
        let secret = json!({
            "key_p8": key.serialize_pem(),
            "key_id": "KEY0123456",
            "team_id": "TEAM012345",
            "bundle_id": BUNDLE_ID,
            "endpoint": format!("https://{}", emulator.addr()),
            "management_endpoint": format!("https://{}", emulator.management_addr().expect("a second port")),
            "server_name": "api.push.apple.com",
            "ca_pem": emulator.ca_pem().expect("TLS"),
        });
        let provider = open(kind, &secret.to_string(), &setup(&clock)).expect("a credential");
        Self { emulator, provider, clock }
    }

    async fn send(&self, tokens: &[String], content: Content) -> Vec<Outcome> {
        let Batch { message, .. } = batch(tokens, &self.clock);
        let spec = MessageSpec { content, priority: Priority::Normal, ..message.spec.clone() };
        let message = Arc::new(Message { spec, ..(*message).clone() });
        within(60, self.provider.send(Batch { message, ..batch(tokens, &self.clock) })).await
    }
}

fn tokens(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{n:0160x}")).collect()
}

#[tokio::test]
async fn the_tokens_of_activities_are_each_reached_once() {
    let scene = Scene::start(ProviderKind::LiveActivity, Policy::default()).await;
    let tokens = tokens(100);
    assert_eq!(scene.send(&tokens, content(update())).await, vec![Outcome::Accepted; 100]);
    for token in &tokens {
        assert_eq!(scene.emulator.counts(token).accepted, 1, "{token}");
    }
}

#[tokio::test]
async fn an_expired_token_ends_the_activity_alone() {
    let tokens = tokens(1);
    let scripts = vec![always(&tokens[0], ServiceError::new("ExpiredToken"))];
    let scene = Scene::start(ProviderKind::LiveActivity, Policy { scripts, ..Policy::default() }).await;
    let outcomes = scene.send(&tokens, content(update())).await;
    assert!(
        matches!(outcomes[..], [Outcome::Unregistered { reason: Reason::TokenExpired, .. }]),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn channels_are_created_listed_sent_to_and_deleted() {
    let scene = Scene::start(ProviderKind::LiveActivityChannel, Policy::default()).await;
    let channels = scene.provider.channels().expect("it has channels");
    assert_eq!(within(20, channels.list()).await, Ok(Vec::new()));
    let none = within(20, channels.create(ChannelStorage::None)).await.expect("a channel");
    let latest = within(20, channels.create(ChannelStorage::Latest)).await.expect("a channel");
    let mut listed = within(20, channels.list()).await.expect("a list");
    let mut both = vec![none.clone(), latest.clone()];
    listed.sort();
    both.sort();
    assert_eq!(listed, both);

    let name = |channel: &ChannelId| channel.as_str().to_owned();
    let sent = scene.send(&[name(&none), name(&latest)], content(update())).await;
    assert_eq!(sent, vec![Outcome::Accepted; 2]);
    for channel in [&none, &latest] {
        assert_eq!(scene.emulator.counts(channel.as_str()).accepted, 1, "one request");
    }
    let stored = content(with(update(), "stored", json!(true)));
    let sent = scene.send(&[name(&none), name(&latest)], stored).await;
    let refused = rejected(Reason::InvalidPayload, OutcomeScope::Payload);
    assert_eq!(sent, [refused, Outcome::Accepted], "only one of them stores anything");

    assert_eq!(within(20, channels.remove(&none)).await, Ok(()));
    assert_eq!(within(20, channels.remove(&none)).await, Err(ChannelRefusal::Unknown));
    let sent = scene.send(&[name(&none)], content(update())).await;
    assert!(matches!(sent[..], [Outcome::Unregistered { .. }]), "{sent:?}");
}

#[tokio::test]
async fn channels_are_not_managed_at_apple_while_messages_go_elsewhere() {
    let key = KeyPair::generate().expect("a key");
    let secret = json!({
        "key_p8": key.serialize_pem(), "key_id": "KEY0123456", "team_id": "TEAM012345", "bundle_id": BUNDLE_ID,
        "endpoint": "https://localhost:1",
    });
    let provider = open(ProviderKind::LiveActivityChannel, &secret.to_string(), &setup(&StillClock::new()));
    let provider = provider.expect("a credential");
    let refused = provider.channels().expect("it has channels").list().await;
    assert!(
        matches!(&refused, Err(ChannelRefusal::Refused(why)) if why.contains("management_endpoint")),
        "{refused:?}"
    );
}
