//! Unmodified clients of MQTT over TCP: Eclipse Paho for Python, and mosquitto's programs.

mod listener;
mod process;

use serde_json::{Value, json};
use stentor_core::name::TopicName;
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, at, first};

use crate::room::{Room, to};
use listener::MqttListener;
use process::{JudgeProcess, Mosquitto, may_run};

fn news() -> Draft {
    Draft::to(Target::Topic(TopicName::new("news").expect("a name"))).ttl(1_000)
}

async fn said(room: &Room) -> Vec<String> {
    let waiting = room.store.waiting_upstream(room.app, first(100), at(11)).await.expect("listed");
    waiting.into_iter().map(|one| one.body).collect()
}

async fn paho(version: &str, is_new_code: bool) {
    let room = Room::new().await;
    let (identity, credentials) = room.device().await;
    let mut listener = MqttListener::start(&room).await;
    let mut device = JudgeProcess::paho(&listener, &credentials, version);
    // Paho writes the codes of 3.1.1 as those of 5.
    assert_eq!(device.step("refused").await, json!([false, 0x86]));
    assert_eq!(device.step("connected").await, json!([false, 0]));
    assert_eq!(device.step("subscribed").await, json!([1, 1]));
    let one = room.send(to(&[identity.device])).await;
    let other = room.send(news()).await;
    for (step, topic, message) in
        [("to the device", "messages/device", one), ("to the topic", "topics/news", other)]
    {
        let given = device.step(step).await;
        assert_eq!((&given["topic"], &given["qos"]), (&json!(topic), &json!(1)));
        assert_eq!(given["payload"]["id"], message.to_string());
        if is_new_code {
            assert_eq!(
                (&given["expiry"], &given["properties"]["message_id"]),
                (&json!(990), &json!(message.to_string()))
            );
        }
    }
    device.step("published").await;
    assert_eq!(said(&room).await, [r#"{"open":true,"topic":"door"}"#]);
    device.step("left").await;
    listener.ended(2).await;
    room.gateway.flush().await;
    assert_eq!((room.delivered(one).await, room.delivered(other).await), (1, 1));
    let away = room.send(to(&[identity.device])).await;
    device.go_on().await;
    assert_eq!(device.step("again").await, json!([true, 0]), "the session is there");
    assert_eq!(device.step("while away").await["payload"]["id"], away.to_string());
    device.step("unsubscribed").await;
    assert!(room.store.topics_of(room.app, identity.device).await.expect("listed").is_empty());
    assert_eq!(device.step("dying").await, json!([false, 0]));
    device.ends().await;
    listener.ended(4).await;
    room.gateway.flush().await;
    assert_eq!(room.delivered(away).await, 1);
    let gone = Value::from(r#"{"topic":"gone"}"#);
    assert_eq!(said(&room).await.last().map(String::as_str), gone.as_str(), "its will");
}

#[tokio::test]
async fn paho_gets_along_with_us_in_3_1_1() {
    if may_run("paho_gets_along_with_us_in_3_1_1", process::missing_paho()) {
        paho("3.1.1", false).await;
    }
}

#[tokio::test]
async fn paho_gets_along_with_us_in_5() {
    if may_run("paho_gets_along_with_us_in_5", process::missing_paho()) {
        paho("5", true).await;
    }
}

async fn mosquitto(version: &str) {
    let room = Room::new().await;
    let (identity, credentials) = room.device().await;
    let mut listener = MqttListener::start(&room).await;
    let programs = Mosquitto { listener: listener.address(), credentials: &credentials, version };
    let format = ["-q", "1", "-C", "2", "-W", "60", "-d", "-F", "given %t %p"];
    let filters = ["-t", "messages/#", "-t", "topics/news"];
    let mut device = programs.subscribe(&[&format[..], &filters].concat());
    device.line("Subscribed").await;
    let one = room.send(to(&[identity.device])).await;
    let other = room.send(news()).await;
    for (topic, message) in [("messages/device", one), ("topics/news", other)] {
        let line = device.line("given").await;
        let (came, payload) = line["given ".len()..].split_once(' ').expect("a topic and a payload");
        let record: Value = serde_json::from_str(payload).expect("JSON");
        assert_eq!((came, &record["id"]), (topic, &json!(message.to_string())));
    }
    device.ends().await;
    listener.ended(1).await;
    room.gateway.flush().await;
    assert_eq!((room.delivered(one).await, room.delivered(other).await), (1, 1));
    let message = ["-t", "upstream/door", "-m", r#"{"open":true}"#, "-q", "1"];
    programs.publish(&message).await.expect("kept");
    assert_eq!(said(&room).await, [r#"{"open":true,"topic":"door"}"#]);
    let named = ["-D", "publish", "user-property", "message_id", "m-1"];
    let extra = if version == "mqttv5" { &named[..] } else { &[] };
    programs.publish(&[&message[..], extra].concat()).await.expect("kept");
    programs.publish(&[&message[..], extra].concat()).await.expect("kept, or known");
    assert_eq!(said(&room).await.len(), if version == "mqttv5" { 2 } else { 3 });
    let stranger = room.gateway.key().issue(room.app);
    let programs = Mosquitto { credentials: &stranger, ..programs };
    programs.publish(&message).await.expect_err("nobody knows it");
}

#[tokio::test]
async fn mosquitto_gets_along_with_us_in_3_1_1() {
    if may_run("mosquitto_gets_along_with_us_in_3_1_1", process::missing_mosquitto()) {
        mosquitto("mqttv311").await;
    }
}

#[tokio::test]
async fn mosquitto_gets_along_with_us_in_5() {
    if may_run("mosquitto_gets_along_with_us_in_5", process::missing_mosquitto()) {
        mosquitto("mqttv5").await;
    }
}
