//! The trials: each is an exchange that shows one feature, or that it is missing.

use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::app_server::{FeatureMessage, FeatureTarget};
use super::event_device::{EventDevice, FeatureDevice};
use super::scene::FeatureScene;
use super::{PushServiceFront, TrialOutcome};
use stentor_stage::ccs_client::CcsAppServer;

/// A trial of one feature at one service.
pub(super) type FeatureTrial =
    for<'a> fn(&'a FeatureScene, PushServiceFront) -> BoxFuture<'a, anyhow::Result<TrialOutcome>>;

/// The message after which nothing more comes: messages reach a device in the order of their acceptance.
const LAST: &str = "last";
/// Longer than the life of a message that is to expire.
const LONGER_THAN_TTL: Duration = Duration::from_millis(1_500);
/// Number of messages that fills the queue of an unreachable push service.
const OFFERS_MAX_COUNT: usize = 64;

/// The features in the order of the table.
pub(super) const TRIALS: [(&str, FeatureTrial); 12] = [
    ("notification messages", |scene, service| Box::pin(notification(scene, service))),
    ("data messages", |scene, service| Box::pin(data(scene, service))),
    ("topics", |scene, service| Box::pin(topics(scene, service))),
    ("device groups", |scene, service| Box::pin(groups(scene, service))),
    ("multicast", |scene, service| Box::pin(multicast(scene, service))),
    ("collapsible messages", |scene, service| Box::pin(collapsible(scene, service))),
    ("non-collapsible messages", |scene, service| Box::pin(non_collapsible(scene, service))),
    ("time to live", |scene, service| Box::pin(ttl(scene, service))),
    ("priority", |scene, service| Box::pin(priority(scene, service))),
    ("delivery receipts", |scene, service| Box::pin(receipts(scene, service))),
    ("upstream messages", |scene, service| Box::pin(upstream(scene, service))),
    ("back-off (Retry-After)", |scene, service| Box::pin(back_off(scene, service))),
];

pub(super) async fn connected(scene: &FeatureScene) -> anyhow::Result<(FeatureDevice, EventDevice)> {
    let device = scene.device().await?;
    let events = device.connect().await?;
    Ok((device, events))
}

async fn notification(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, mut events) = connected(scene).await?;
    let message = FeatureMessage { title: Some("Hello"), ..FeatureMessage::default() };
    scene.send(service, FeatureTarget::Token(&device.token), &message).await?;
    let got = events.next().await?;
    let detail = format!("the device got notification {}", got["notification"]);
    Ok(TrialOutcome::when(got["notification"]["title"] == "Hello", detail))
}

async fn data(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, mut events) = connected(scene).await?;
    scene.send(service, FeatureTarget::Token(&device.token), &FeatureMessage::marked("a")).await?;
    let got = events.next().await?;
    let is_data = got["data"] == json!({"mark": "a"}) && got["notification"].is_null();
    Ok(TrialOutcome::when(is_data, format!("the device got data {} and no notification", got["data"])))
}

async fn topics(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let ((member, mut inside), (stranger, mut outside)) = (connected(scene).await?, connected(scene).await?);
    let topic = format!("news-{}", service.name());
    scene.subscribe(service, &member.token, &topic).await?;
    scene.send(service, FeatureTarget::Topic(&topic), &FeatureMessage::marked("to-topic")).await?;
    let got = inside.next().await?;
    scene.send(service, FeatureTarget::Token(&stranger.token), &FeatureMessage::marked(LAST)).await?;
    let strangers = outside.until(LAST).await?.len();
    let is_there = got["data"]["mark"] == "to-topic" && strangers == 0;
    Ok(TrialOutcome::when(
        is_there,
        format!("the subscribed device got it, the other one got {strangers} messages of the topic"),
    ))
}

async fn groups(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let ((one, mut first), (two, mut second)) = (connected(scene).await?, connected(scene).await?);
    let key = scene.group(service, &format!("group-{}", service.name()), &[&one.token, &two.token]).await?;
    scene.send(service, FeatureTarget::Token(&key), &FeatureMessage::marked("to-group")).await?;
    let both = (first.next().await?, second.next().await?);
    let is_there = both.0["data"]["mark"] == "to-group" && both.1["id"] == both.0["id"];
    Ok(TrialOutcome::when(is_there, "both members got the one message to the group's key"))
}

async fn multicast(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let ((one, mut first), (two, mut second)) = (connected(scene).await?, connected(scene).await?);
    let tokens = [&one.token, &two.token];
    let data = json!({"mark": "to-many"});
    let (path, body) = match service {
        PushServiceFront::Gcm => ("/gcm/send".to_owned(), json!({"registration_ids": tokens, "data": data})),
        PushServiceFront::Fcm => {
            let path = format!("/v1/projects/{}/messages:send", scene.app);
            (path, json!({"message": {"tokens": tokens, "data": data}}))
        }
    };
    let answer = scene.ask(service, &path, &body).await?;
    if !answer.status.is_success() {
        let said = &answer.body["error"]["message"];
        return Ok(TrialOutcome::no(format!(
            "one request for two tokens was answered with {}: {said}",
            answer.status
        )));
    }
    let both = (first.next().await?, second.next().await?);
    let is_there = both.0["data"] == data && both.1["data"] == data;
    Ok(TrialOutcome::when(
        is_there,
        format!("one request, {} sent, both devices got it", answer.body["success"]),
    ))
}

/// Sends two messages to a disconnected device, and returns those that it receives after it has reconnected.
async fn two_while_away(
    scene: &FeatureScene,
    service: PushServiceFront,
    key: Option<&str>,
) -> anyhow::Result<Vec<Value>> {
    let device = scene.device().await?;
    for mark in ["older", "newer"] {
        let message = FeatureMessage { collapse_key: key, ..FeatureMessage::marked(mark) };
        scene.mail(service, &device.token, &message).await?;
    }
    scene.mail(service, &device.token, &FeatureMessage::marked(LAST)).await?;
    let got = device.connect().await?.until(LAST).await?;
    Ok(got.into_iter().map(|mut message| message["data"]["mark"].take()).collect())
}

async fn collapsible(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let got = two_while_away(scene, service, Some("score")).await?;
    let detail =
        format!("of two with one collapse key the device, back again, got {}", Value::from(got.clone()));
    Ok(TrialOutcome::when(got == ["newer"], detail))
}

async fn non_collapsible(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let got = two_while_away(scene, service, None).await?;
    let detail =
        format!("of two without a collapse key the device, back again, got {}", Value::from(got.clone()));
    Ok(TrialOutcome::when(got == ["older", "newer"], detail))
}

async fn ttl(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let device = scene.device().await?;
    for (mark, ttl) in [("a second", 1), ("an hour", 3_600)] {
        let message = FeatureMessage { ttl_seconds: Some(ttl), ..FeatureMessage::marked(mark) };
        scene.mail(service, &device.token, &message).await?;
    }
    tokio::time::sleep(LONGER_THAN_TTL).await;
    scene.mail(service, &device.token, &FeatureMessage::marked(LAST)).await?;
    let got = device.connect().await?.until(LAST).await?;
    let marks: Vec<_> = got.iter().map(|message| message["data"]["mark"].clone()).collect();
    let detail = format!(
        "after 1.5 s away the device got the messages with a time to live of {}",
        Value::from(marks.clone())
    );
    Ok(TrialOutcome::when(marks == ["an hour"], detail))
}

async fn priority(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, mut events) = connected(scene).await?;
    let mut got = Vec::new();
    for is_high in [true, false] {
        let message = FeatureMessage { is_high: Some(is_high), ..FeatureMessage::marked("p") };
        scene.send(service, FeatureTarget::Token(&device.token), &message).await?;
        got.push(events.next().await?["priority"].take());
    }
    let is_there = got == ["high", "normal"];
    Ok(TrialOutcome::when(
        is_there,
        format!("sent with high and normal, the device got {}", Value::from(got)),
    ))
}

pub(super) async fn app_server(
    scene: &FeatureScene,
    service: PushServiceFront,
) -> anyhow::Result<CcsAppServer<TcpStream>> {
    let stream = TcpStream::connect(&scene.ccs_address).await?;
    CcsAppServer::log_in(stream, service.ccs_domain(), &scene.app, &scene.key).await
}

async fn receipts(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, mut events) = connected(scene).await?;
    let mut ccs = app_server(scene, service).await?;
    let name = format!("receipt-{}", service.name());
    let payload = json!({"to": device.token, "message_id": name, "data": {"mark": "r"},
        "delivery_receipt_requested": true});
    ccs.say(&payload).await?;
    let ack = ccs.hear().await?;
    ensure!(ack["message_type"] == "ack", "CCS answered {ack}");
    events.next().await?;
    let receipt = ccs.hear().await?;
    ccs.say(&json!({"message_type": "ack", "to": receipt["from"], "message_id": receipt["message_id"]}))
        .await?;
    let is_there = receipt["message_type"] == "receipt" && receipt["data"]["original_message_id"] == *name;
    let detail = format!(
        "over CCS, once the device had it: {} {}",
        receipt["message_id"], receipt["data"]["message_status"]
    );
    Ok(TrialOutcome::when(is_there, detail))
}

async fn upstream(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let device = scene.device().await?;
    let mut ccs = app_server(scene, service).await?;
    device.says("up-1", json!({"temperature": "21"})).await?;
    let heard = ccs.hear().await?;
    ccs.say(&json!({"message_type": "ack", "to": heard["from"], "message_id": heard["message_id"]})).await?;
    let is_there = heard["from"] == *device.token && heard["data"] == json!({"temperature": "21"});
    Ok(TrialOutcome::when(is_there, format!("over CCS the app server got {} from the device", heard["data"])))
}

async fn back_off(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    for number in 0..OFFERS_MAX_COUNT {
        let token = format!("stuck-{}-{number}", service.name());
        let message = FeatureMessage::marked("stuck");
        let (app, key, target) = (&scene.stuck_app, &scene.stuck_key, FeatureTarget::Token(&token));
        let answer = scene.offer(service, app, key, target, &message).await?;
        if answer.status.is_success() {
            continue;
        }
        let after = answer.headers.get("retry-after").map(|value| value.to_str().map(str::to_owned));
        let after = after.transpose().context("a Retry-After that is no text")?;
        return Ok(match after {
            Some(seconds) => TrialOutcome::yes(format!(
                "with its queue full it answered {} and Retry-After: {seconds}",
                answer.status
            )),
            None => TrialOutcome::no(format!(
                "with its queue full it answered {} without Retry-After",
                answer.status
            )),
        });
    }
    Ok(TrialOutcome::no(format!(
        "{OFFERS_MAX_COUNT} messages to a push service that is away were all accepted"
    )))
}
