//! A browser's WebSocket: settled messages come at once, and an overflow makes the browser subscribe again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Sink, Stream};
use serde_json::{Value, json};
use stentor_core::app::Credential;
use stentor_core::delivery::DeliveryState;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{AttemptFilter, Change};
use stentor_gateway::autopush::{
    AutopushClose, AutopushFrame, AutopushServing, AutopushState, AutopushStep, AutopushTimeouts, OpenApps,
    serve,
};
use stentor_gateway::web_push::{PushCapability, PushRate, PushRates};
use stentor_gateway::{DeviceIdentity, limits};
use stentor_storage::conformance::scene::at;
use stentor_wire::web_push::VapidKey;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::room::{Room, to};

/// The server's end of a WebSocket in memory.
struct ServerEnd(UnboundedReceiver<AutopushFrame>, UnboundedSender<AutopushFrame>);

impl Stream for ServerEnd {
    type Item = Result<AutopushFrame, ()>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

impl Sink<AutopushFrame> for ServerEnd {
    type Error = ();

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, frame: AutopushFrame) -> Result<(), ()> {
        self.1.send(frame).map_err(|_| ())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
        Poll::Ready(Ok(()))
    }
}

/// A connected browser.
struct Tab {
    to_server: UnboundedSender<AutopushFrame>,
    from_server: UnboundedReceiver<AutopushFrame>,
    stopping: CancellationToken,
    admitted: CancellationToken,
}

impl Tab {
    fn open(room: &Room, timeouts: AutopushTimeouts) -> Self {
        let ((to_server, in_server), (out_server, from_server)) = (unbounded_channel(), unbounded_channel());
        let serving = AutopushServing {
            gateway: room.gateway.clone(),
            apps: Arc::new(OpenApps::new(room.store.clone())),
            registrations: Arc::new(PushRates::new(PushRate::DEFAULT)),
            endpoint_base: "https://push.example/".to_owned(),
            app: Some(room.app),
            timeouts,
        };
        let stopping = CancellationToken::new();
        let admitted = CancellationToken::new();
        let socket = ServerEnd(in_server, out_server);
        tokio::spawn(serve(serving, socket, stopping.clone(), admitted.clone()));
        Self { to_server, from_server, stopping, admitted }
    }

    fn say(&self, message: Value) {
        self.to_server.send(AutopushFrame::Text(message.to_string())).expect("it is there");
    }

    async fn frame(&mut self) -> AutopushFrame {
        let next = tokio::time::timeout(Duration::from_secs(10), self.from_server.recv());
        next.await.expect("in time").expect("a frame")
    }

    async fn hear(&mut self) -> Value {
        match self.frame().await {
            AutopushFrame::Text(text) => serde_json::from_str(&text).expect("JSON"),
            other => panic!("no text: {other:?}"),
        }
    }

    async fn greet(&mut self, agent: Option<&str>) -> String {
        self.say(json!({"messageType": "hello", "uaid": agent}));
        self.hear().await["uaid"].as_str().expect("a name").to_owned()
    }

    /// Acknowledges a notification with a code, and waits until it is processed.
    async fn acknowledge(&mut self, room: &Room, notification: &Value, code: u64) {
        let update = json!({"channelID": "c", "version": notification["version"], "code": code});
        self.say(json!({"messageType": "ack", "updates": [update]}));
        self.say(json!({"messageType": "unregister", "channelID": "other"}));
        assert_eq!(self.hear().await["status"], 200, "what came before is done");
        room.gateway.flush().await;
    }

    /// Subscribes; returns the device of the subscription.
    async fn subscribe(&mut self, room: &Room) -> DeviceIdentity {
        self.say(json!({"messageType": "register", "channelID": "c"}));
        let heard = self.hear().await;
        let url = heard["pushEndpoint"].as_str().expect("a URL");
        let name = url.strip_prefix("https://push.example/").expect("our URL");
        match PushCapability::read(name, room.gateway.key()) {
            Some(PushCapability::Subscription(identity, None)) => identity,
            other => panic!("another capability: {other:?}"),
        }
    }
}

async fn open_room() -> Room {
    let room = Room::new().await;
    let secret = json!({"open_registration": true}).to_string();
    let credential = Credential { app: room.app, provider: ProviderKind::Gateway, secret, updated_at: at(0) };
    room.store.change(Change::PutCredential(credential), None).await.expect("put");
    room
}

#[tokio::test]
async fn what_is_settled_comes_at_once_and_its_acknowledgement_is_a_receipt() {
    let room = open_room().await;
    let mut tab = Tab::open(&room, AutopushTimeouts::default());
    tab.greet(None).await;
    let identity = tab.subscribe(&room).await;
    tab.say(json!({}));
    assert_eq!(tab.hear().await, json!({}));
    let message = room.send(to(&[identity.device])).await;
    let heard = tab.hear().await;
    assert_eq!((&heard["version"], &heard["channelID"]), (&json!(message.to_string()), &json!("c")));
    assert_eq!(heard["headers"], json!({"encoding": "json"}), "nobody has sealed it");
    tab.acknowledge(&room, &heard, 100).await;
    assert_eq!(room.delivered(message).await, 1);
}

#[tokio::test]
async fn what_the_device_has_dropped_is_not_delivered_and_does_not_come_again() {
    let room = open_room().await;
    let mut tab = Tab::open(&room, AutopushTimeouts::default());
    let agent = tab.greet(None).await;
    let identity = tab.subscribe(&room).await;
    for (code, reason) in [(101, Reason::InvalidPayload), (102, Reason::Unavailable)] {
        let message = room.send(to(&[identity.device])).await;
        let heard = tab.hear().await;
        tab.acknowledge(&room, &heard, code).await;
        tab.acknowledge(&room, &heard, 100).await;
        assert_eq!(room.delivered(message).await, 0, "{code}");
        let attempts = room
            .store
            .attempts(room.app, identity.device, AttemptFilter::Message(message))
            .await
            .expect("a delivery");
        let record = attempts.last().expect("an attempt").record;
        assert_eq!((record.state(), record.reason()), (DeliveryState::Accepted, reason), "{code}");
    }
    let mut tab = Tab::open(&room, AutopushTimeouts::default());
    assert_eq!(tab.greet(Some(&agent)).await, agent);
    let message = room.send(to(&[identity.device])).await;
    assert_eq!(tab.hear().await["version"], json!(message.to_string()), "nothing comes before it");
}

#[tokio::test]
async fn a_message_without_a_ttl_comes_to_a_browser_that_is_there_and_to_none_that_returns() {
    let room = open_room().await;
    room.set_seconds(0);
    let mut tab = Tab::open(&room, AutopushTimeouts::default());
    let agent = tab.greet(None).await;
    let identity = tab.subscribe(&room).await;
    let message = room.send(to(&[identity.device]).ttl(0)).await;
    let heard = tab.hear().await;
    assert_eq!(heard["version"], json!(message.to_string()), "it is there");
    tab.acknowledge(&room, &heard, 100).await;
    drop(tab);
    room.send(to(&[identity.device]).ttl(0)).await;
    room.set_seconds(10);
    let mut tab = Tab::open(&room, AutopushTimeouts::default());
    assert_eq!(tab.greet(Some(&agent)).await, agent);
    let message = room.send(to(&[identity.device])).await;
    assert_eq!(tab.hear().await["version"], json!(message.to_string()), "nothing comes before it");
}

#[tokio::test]
async fn what_a_page_fails_with_later_is_counted_by_its_code() {
    let room = open_room().await;
    let mut tab = Tab::open(&room, AutopushTimeouts::default());
    tab.greet(None).await;
    for code in [301, 303, 303, 7] {
        tab.say(json!({"messageType": "nack", "version": "v", "code": code}));
    }
    tab.say(json!({}));
    assert_eq!(tab.hear().await, json!({}));
    let counted = room.gateway.stats().autopush_failures;
    assert_eq!(counted, [("301", 1), ("302", 0), ("303", 2), ("other", 1)]);
}

#[tokio::test]
async fn an_agent_for_which_too_much_waited_is_to_subscribe_anew() {
    let room = open_room().await;
    let mut tab = Tab::open(&room, AutopushTimeouts::default());
    let agent = tab.greet(None).await;
    let identity = tab.subscribe(&room).await;
    drop(tab);
    for _ in 0..=limits::PENDING_MAX_COUNT {
        room.send_quietly(to(&[identity.device])).await;
    }
    let mut tab = Tab::open(&room, AutopushTimeouts::default());
    assert_eq!(tab.greet(Some(&agent)).await, agent);
    assert_eq!(tab.frame().await, AutopushFrame::Close(1_000));
    let mut tab = Tab::open(&room, AutopushTimeouts::default());
    assert_ne!(tab.greet(Some(&agent)).await, agent);
}

#[tokio::test]
async fn whoever_says_nothing_or_is_gone_is_closed_and_a_stop_is_told() {
    let room = open_room().await;
    let short = Duration::from_millis(20);
    let mut silent = Tab::open(&room, AutopushTimeouts { hello: short, ..AutopushTimeouts::default() });
    assert_eq!(silent.frame().await, AutopushFrame::Close(1_000));
    let timeouts = AutopushTimeouts { ping_interval: short, pong: short, ..AutopushTimeouts::default() };
    let mut gone = Tab::open(&room, timeouts);
    gone.greet(None).await;
    assert_eq!(gone.frame().await, AutopushFrame::Ping);
    assert_eq!(gone.frame().await, AutopushFrame::Close(1_000));
    let mut stopped = Tab::open(&room, AutopushTimeouts::default());
    stopped.greet(None).await;
    stopped.stopping.cancel();
    assert_eq!(stopped.frame().await, AutopushFrame::Close(1_001));
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_admitted_with_its_first_channel_and_without_one_it_is_closed_however_it_pongs() {
    let room = open_room().await;
    let subscription = Duration::from_secs(5);
    let timeouts = AutopushTimeouts {
        ping_interval: Duration::from_secs(1),
        subscription,
        ..AutopushTimeouts::default()
    };
    let mut lonely = Tab::open(&room, timeouts);
    lonely.greet(None).await;
    let mut frame = lonely.frame().await;
    while frame == AutopushFrame::Ping {
        let _closed_at_the_same_moment = lonely.to_server.send(AutopushFrame::Pong);
        frame = lonely.frame().await;
    }
    assert_eq!((frame, lonely.admitted.is_cancelled()), (AutopushFrame::Close(1_000), false));
    let mut subscribed = Tab::open(&room, AutopushTimeouts { subscription, ..AutopushTimeouts::default() });
    subscribed.greet(None).await;
    subscribed.subscribe(&room).await;
    assert!(subscribed.admitted.is_cancelled());
    let longer = tokio::time::timeout(3 * subscription, subscribed.from_server.recv()).await;
    assert!(longer.is_err(), "it waits for messages: {longer:?}");
    subscribed.say(json!({"messageType": "unregister", "channelID": "c"}));
    assert_eq!(subscribed.hear().await["status"], 200);
    assert_eq!(subscribed.frame().await, AutopushFrame::Close(1_000), "now it waits for nothing");
}

#[tokio::test]
async fn a_clock_that_goes_back_hides_no_key_of_an_app() {
    let room = Room::new().await;
    let apps = OpenApps::new(room.store.clone());
    let text = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    let key = VapidKey::read(text).expect("a key");
    assert_eq!(apps.app_of(&key, at(3_600)).await, Ok(None));
    let secret = json!({"vapid_key": text}).to_string();
    let credential = Credential { app: room.app, provider: ProviderKind::Gateway, secret, updated_at: at(0) };
    room.store.change(Change::PutCredential(credential), None).await.expect("put");
    assert_eq!(apps.app_of(&key, at(3_601)).await, Ok(None), "read a second ago");
    assert_eq!(apps.app_of(&key, at(60)).await, Ok(Some(room.app)));
}

#[test]
fn a_ping_is_not_too_soon_because_the_clock_went_back() {
    let mut state = AutopushState::default();
    state.take(r#"{"messageType": "hello"}"#, at(3_600));
    let pong = [AutopushStep::Write("{}".to_owned())];
    assert_eq!(state.take("{}", at(3_600)), pong);
    assert_eq!(state.take("{}", at(60)), pong);
    assert_eq!(state.take("{}", at(61)), [AutopushStep::Close(AutopushClose::Policy)]);
}
