//! The reference library of Standard Webhooks judges the requests posted to the webhook of an app.

use anyhow::ensure;
use serde_json::json;

use crate::client::{Client, Report};
use crate::gateway_server::{GatewayServer, text};
use crate::room::{Room, judge};

/// The room has a network of its own, in which no other process listens.
const PORT: u16 = 8_080;

async fn story(room: Room) -> anyhow::Result<()> {
    let server = GatewayServer::start(&room, reqwest::Client::builder(), |config| {
        config.upstream.retry_base_ms = 50;
    })
    .await?;
    let path = format!("/v1/apps/{}/upstream-webhook", server.app);
    let put = server.ask("PUT", &path, json!({"url": format!("http://localhost:{PORT}/hook")})).await?;
    server.join().await?.says("m-1", json!({"text": "a <b> & 'ü'"})).await?;
    let mut receiver = Client::StandardWebhooks.command("judge.py", room.folder());
    receiver.arg(PORT.to_string()).arg(text(&put, "secret")?);
    let report = Report::of(receiver).await?;
    let (first, again) = (report.value("first")?, report.value("again")?);
    ensure!(first["data"] == json!({"text": "a <b> & 'ü'"}) && first["key"] == "m-1", "{first}");
    ensure!(again["again"] == true && again["id"] == first["id"], "{again}");
    ensure!(report.step("first")?["id"] == first["id"], "{first}");
    report.failed("other secret", "WebhookVerificationError")?;
    report.failed("changed body", "WebhookVerificationError")
}

#[test]
fn standardwebhooks_verifies_what_is_posted_to_a_webhook() {
    let name = "webhook::standardwebhooks_verifies_what_is_posted_to_a_webhook";
    judge(name, Client::StandardWebhooks, story);
}
