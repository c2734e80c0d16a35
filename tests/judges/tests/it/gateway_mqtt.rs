//! Unmodified clients of MQTT against the server's own port, each as a device that has registered: Eclipse Paho for Python, and mosquitto's
//! programs.

mod process;

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::client::Client;
use crate::gateway_server::{GatewayDevice, GatewayServer};
use crate::room::{Room, here};
use process::{JudgeProcess, Mosquitto, missing_mosquitto};

/// The maximum time until a device's message is stored.
const KEPT_MAX: Duration = Duration::from_secs(60);
const TTL_SECONDS: u64 = 1_000;

/// Starts a server; returns it with its port for MQTT.
async fn server(room: &Room) -> anyhow::Result<(GatewayServer, u16)> {
    let server = GatewayServer::start(room, reqwest::Client::builder(), |config| {
        config.gateway.mqtt_listen = Some(([127, 0, 0, 1], 0).into());
    })
    .await?;
    let address = std::fs::read_to_string(room.folder().join("data/mqtt.addr"))?;
    let port = address.trim().rsplit_once(':').context("a port")?.1.parse()?;
    Ok((server, port))
}

fn to(target: &Value) -> Value {
    json!({"target": target, "data": {"k": "v"}, "ttl_seconds": TTL_SECONDS})
}

fn alone(device: &GatewayDevice) -> Value {
    json!({"device": device.id})
}

/// Waits until `count` messages of devices wait for the app, and returns their data.
async fn said(server: &GatewayServer, count: usize) -> anyhow::Result<Vec<Value>> {
    let looks = async {
        loop {
            let waiting = server.waiting().await?;
            let waiting = waiting.as_array().context("a list")?;
            if waiting.len() == count {
                return anyhow::Ok(waiting.iter().map(|one| one["data"].clone()).collect());
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(KEPT_MAX, looks).await.with_context(|| format!("{count} messages do not wait"))?
}

/// Checks a message that the device got with QoS 1.
fn check(given: &Value, topic: &str, message: &str) -> anyhow::Result<()> {
    let same = given["topic"] == topic && given["qos"] == 1 && given["retain"] == false;
    ensure!(same && given["payload"]["id"] == message, "{given} instead of {message}");
    // As MQTT 5 has them.
    if let Some(expiry) = given.get("expiry") {
        let expiry = expiry.as_u64().context("seconds")?;
        ensure!((TTL_SECONDS / 2..=TTL_SECONDS).contains(&expiry), "{given}");
        ensure!(given["properties"]["message_id"] == message, "{given}");
    }
    Ok(())
}

async fn paho(room: Room, version: &str) -> anyhow::Result<()> {
    let (server, port) = server(&room).await?;
    server.join_as(json!({"topics": ["door"]})).await?;
    let mut shut = to(&json!({"topic": "door"}));
    shut["gateway"] = json!({"retain": true});
    let shut = server.send(shut).await?;
    let phone = server.join().await?;
    let mut judge = JudgeProcess::paho("device.py", port, &phone, version)?;
    // Paho writes the codes of 3.1.1 as those of 5.
    judge.is("refused", json!([false, 0x86])).await?;
    judge.is("connected", json!([false, 0])).await?;
    judge.is("subscribed", json!([1, 1])).await?;
    for (step, topic, target) in [
        ("to the device", "messages/device", alone(&phone)),
        ("to the topic", "topics/news", json!({"topic": "news"})),
    ] {
        let message = server.send(to(&target)).await?;
        check(&judge.step(step).await?, topic, &message)?;
        server.is_delivered(&message).await?;
    }
    judge.is("last topics", json!([1])).await?;
    let state = judge.step("last state").await?;
    let is_state = state["topic"] == "topics/door" && state["retain"] == true && state["qos"] == 0;
    ensure!(is_state && state["payload"]["id"] == *shut, "{state}");
    judge.step("published").await?;
    ensure!(said(&server, 1).await? == [json!({"open": "true", "topic": "door"})]);
    judge.step("left").await?;
    let away = server.send(to(&alone(&phone))).await?;
    judge.go_on().await?;
    judge.is("again", json!([true, 0])).await?;
    check(&judge.step("while away").await?, "messages/device", &away)?;
    server.is_delivered(&away).await?;
    judge.step("unsubscribed").await?;
    ensure!(phone.topics().await? == json!(["door"]));
    // In MQTT 5 the session has expired with the connection, as the client wanted.
    judge.is("dying", json!([false, 0])).await?;
    judge.ends().await?;
    ensure!(said(&server, 2).await?[1] == json!({"topic": "gone"}), "its will");
    server.stop();
    Ok(())
}

#[test]
fn paho_is_a_device_of_the_server_in_3_1_1() {
    here("paho_is_a_device_of_the_server_in_3_1_1", (Client::Mqtt.missing(), "judges"), async |room| {
        paho(room, "3.1.1").await
    });
}

#[test]
fn paho_is_a_device_of_the_server_in_5() {
    here("paho_is_a_device_of_the_server_in_5", (Client::Mqtt.missing(), "judges"), async |room| {
        paho(room, "5").await
    });
}

async fn paho_last_states(room: Room, version: &str) -> anyhow::Result<()> {
    let (server, port) = server(&room).await?;
    let keeper = server.join_as(json!({"topics": ["door"]})).await?;
    let mut shut = to(&json!({"topic": "door"}));
    shut["gateway"] = json!({"retain": true});
    let state = server.send(shut.clone()).await?;
    ensure!(keeper.hears().await?["id"] == *state, "its audience is fixed");
    // Subscribed before it ever connects, as by the app.
    let phone = server.join_as(json!({"topics": ["door"]})).await?;
    let mut judge = JudgeProcess::paho("last_states.py", port, &phone, version)?;
    let (comes, nothing) = (json!([["topics/door", state, true]]), json!([]));
    judge.is("first", comes.clone()).await?;
    judge.is("again", comes.clone()).await?;
    let is_5 = version == "5";
    if is_5 {
        judge.is("was there", nothing.clone()).await?;
        judge.is("never", nothing.clone()).await?;
    }
    for filter in ["topics/door", "topics/+", "topics/#", "#"] {
        judge.is(&format!("new session, {filter}"), comes.clone()).await?;
        if is_5 {
            judge.is(&format!("when new, {filter}"), comes.clone()).await?;
            judge.is(&format!("never, {filter}"), nothing.clone()).await?;
        }
    }
    judge.is("as published", if is_5 { nothing } else { comes }).await?;
    let later = server.send(shut).await?;
    judge.go_on().await?;
    judge.is("sent later", json!(["topics/door", later, is_5])).await?;
    judge.ends().await?;
    server.stop();
    Ok(())
}

#[test]
fn paho_gets_last_states_as_the_standards_say() {
    for version in ["3.1.1", "5"] {
        let name = "paho_gets_last_states_as_the_standards_say";
        here(name, (Client::Mqtt.missing(), "judges"), async |room| paho_last_states(room, version).await);
    }
}

async fn mosquitto(room: Room, version: &str) -> anyhow::Result<()> {
    let (server, port) = server(&room).await?;
    let phone = server.join().await?;
    let programs = Mosquitto { port, token: &phone.token, secret: &phone.secret, version };
    let format = ["-q", "1", "-C", "2", "-W", "60", "-d", "-F", "given %t %p"];
    let mut judge =
        programs.subscribe(&[&format[..], &["-t", "messages/#", "-t", "topics/news"]].concat())?;
    judge.line("Subscribed").await?;
    for (topic, target) in [("messages/device", alone(&phone)), ("topics/news", json!({"topic": "news"}))] {
        let message = server.send(to(&target)).await?;
        let line = judge.line("given").await?;
        let (came, payload) = line["given ".len()..].split_once(' ').context("a topic and a payload")?;
        let record: Value = serde_json::from_str(payload)?;
        ensure!(came == topic && record["id"] == *message, "{line}");
        server.is_delivered(&message).await?;
    }
    judge.ends().await?;
    let message = ["-t", "upstream/door", "-m", r#"{"open":"true"}"#, "-q", "1"];
    ensure!(programs.publish(&message).await?);
    ensure!(said(&server, 1).await? == [json!({"open": "true", "topic": "door"})]);
    let named = ["-D", "publish", "user-property", "message_id", "m-1"];
    let is_named = version == "mqttv5";
    let again = [&message[..], if is_named { &named } else { &[] }].concat();
    ensure!(programs.publish(&again).await? && programs.publish(&again).await?);
    said(&server, if is_named { 2 } else { 3 }).await?;
    let stranger = Mosquitto { secret: "wrong", ..programs };
    ensure!(!stranger.publish(&message).await?, "a wrong secret opens nothing");
    server.stop();
    Ok(())
}

#[test]
fn mosquitto_is_a_device_of_the_server_in_3_1_1() {
    let name = "mosquitto_is_a_device_of_the_server_in_3_1_1";
    here(name, (missing_mosquitto(), "judges"), async |room| mosquitto(room, "mqttv311").await);
}

#[test]
fn mosquitto_is_a_device_of_the_server_in_5() {
    let name = "mosquitto_is_a_device_of_the_server_in_5";
    here(name, (missing_mosquitto(), "judges"), async |room| mosquitto(room, "mqttv5").await);
}
