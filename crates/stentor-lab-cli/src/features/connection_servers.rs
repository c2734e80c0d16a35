//! The first table of albertengo-2020: the features of the connection server over XMPP (CCS) and of the one over HTTP.

use anyhow::ensure;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};

use super::app_server::{FeatureMessage, FeatureTarget};
use super::scene::FeatureScene;
use super::trials::{FeatureTrial, app_server, connected};
use super::{PushServiceFront, TrialOutcome};

/// The table's rows, for each of both servers.
pub(super) const CONNECTION_SERVER_TRIALS: [(&str, FeatureTrial); 7] = [
    ("CCS: upstream and downstream", |scene, service| Box::pin(both_ways(scene, service))),
    ("HTTP: upstream", |scene, service| Box::pin(upstream_by_http(scene, service))),
    ("CCS: asynchronous", |scene, service| Box::pin(asynchronous(scene, service))),
    ("HTTP: synchronous", |scene, service| Box::pin(synchronous(scene, service))),
    ("HTTP: plain text", |scene, service| Box::pin(plain_text(scene, service))),
    ("CCS: JSON in XMPP", |scene, service| Box::pin(json_in_xmpp(scene, service))),
    ("CCS: multicast", |scene, service| Box::pin(multicast_by_ccs(scene, service))),
];

async fn both_ways(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, mut events) = connected(scene).await?;
    let mut ccs = app_server(scene, service).await?;
    device.says("table-1", json!({"way": "up"})).await?;
    let heard = ccs.hear().await?;
    ccs.say(&json!({"message_type": "ack", "to": heard["from"], "message_id": heard["message_id"]})).await?;
    ccs.say(&json!({"to": heard["from"], "message_id": "table-1", "data": {"mark": "down"}})).await?;
    let got = events.next().await?;
    let is_there = heard["data"]["way"] == "up" && got["data"]["mark"] == "down";
    let detail = format!("on one connection {} came up and {} went down", heard["data"], got["data"]);
    Ok(TrialOutcome::when(is_there, detail))
}

async fn upstream_by_http(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, mut events) = connected(scene).await?;
    device.says("table-1-http", json!({"way": "up-by-http"})).await?;
    let answer =
        scene.send(service, FeatureTarget::Token(&device.token), &FeatureMessage::marked("down")).await?;
    events.next().await?;
    let is_there = answer.to_string().contains("up-by-http");
    // Otherwise it would arrive on the next connection of CCS, where another trial does not expect it.
    let mut ccs = app_server(scene, service).await?;
    let heard = ccs.hear().await?;
    ccs.say(&json!({"message_type": "ack", "to": heard["from"], "message_id": heard["message_id"]})).await?;
    ccs.say(&json!({"to": device.token, "message_id": "taken", "data": {"mark": "taken"}})).await?;
    ccs.hear().await?;
    Ok(TrialOutcome::when(is_there, "the device's message came with no answer of the sending API"))
}

async fn asynchronous(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, _events) = connected(scene).await?;
    let mut ccs = app_server(scene, service).await?;
    let names = ["async-1", "async-2", "async-3"].map(|name| format!("{name}-{}", service.name()));
    for name in &names {
        ccs.say(&json!({"to": device.token, "message_id": name, "data": {"mark": name}})).await?;
    }
    let mut acks = Vec::new();
    for _ in &names {
        let ack = ccs.hear().await?;
        ensure!(ack["message_type"] == "ack", "CCS answered {ack}");
        acks.push(ack["message_id"].as_str().unwrap_or_default().to_owned());
    }
    acks.sort_unstable();
    Ok(TrialOutcome::when(acks == names, "three were sent before the first was answered, each has its ack"))
}

async fn synchronous(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, mut events) = connected(scene).await?;
    let answer =
        scene.send(service, FeatureTarget::Token(&device.token), &FeatureMessage::marked("sync")).await?;
    events.next().await?;
    let name = match service {
        PushServiceFront::Gcm => &answer["results"][0]["message_id"],
        PushServiceFront::Fcm => &answer["name"],
    };
    Ok(TrialOutcome::when(name.is_string(), format!("the request is answered with {name}")))
}

/// Plain text is of the legacy API: fields of a form.
async fn plain_text(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, mut events) = connected(scene).await?;
    let (path, authorization) = match service {
        PushServiceFront::Gcm => ("/gcm/send".to_owned(), format!("key={}", scene.key)),
        PushServiceFront::Fcm => {
            (format!("/v1/projects/{}/messages:send", scene.app), format!("Bearer {}", scene.key))
        }
    };
    let request = scene.http.request(Method::POST, format!("{}{path}", scene.url));
    let request = request.header(AUTHORIZATION, authorization);
    let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded;charset=UTF-8");
    let answer = request.body(format!("registration_id={}&data.mark=plain", device.token)).send().await?;
    let (status, body) = (answer.status(), answer.text().await?);
    if !status.is_success() || !body.starts_with("id=") {
        let body: String = body.chars().take(80).collect();
        return Ok(TrialOutcome::no(format!("a form was answered with {status} {}", body.trim())));
    }
    let got = events.next().await?;
    Ok(TrialOutcome::when(
        got["data"]["mark"] == "plain",
        format!("a form was answered with {}", body.trim()),
    ))
}

async fn json_in_xmpp(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let (device, _events) = connected(scene).await?;
    let mut ccs = app_server(scene, service).await?;
    ccs.say(&json!({"to": device.token, "message_id": "format", "data": {"mark": "format"}})).await?;
    let ack = ccs.hear().await?;
    Ok(TrialOutcome::when(ack["message_type"] == "ack", format!("a stanza with JSON was answered by {ack}")))
}

async fn multicast_by_ccs(scene: &FeatureScene, service: PushServiceFront) -> anyhow::Result<TrialOutcome> {
    let ((one, _first), (two, _second)) = (connected(scene).await?, connected(scene).await?);
    let mut ccs = app_server(scene, service).await?;
    let tokens = Value::from(vec![one.token.clone(), two.token.clone()]);
    ccs.say(&json!({"registration_ids": tokens, "message_id": "many", "data": {"mark": "many"}})).await?;
    let answer = ccs.hear().await?;
    let detail =
        format!("one stanza for two tokens was answered with {} {}", answer["message_type"], answer["error"]);
    Ok(TrialOutcome::when(answer["message_type"] == "ack", detail))
}
