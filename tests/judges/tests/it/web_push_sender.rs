//! Foreign receivers of Web Push judge the server as a sender: browsers, and a push service for tests of senders.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::browsers::Browsing;
use crate::client::Client;
use crate::room::{Room, browse, judge};
use crate::web_push::server::PushServer;

/// The time limit of the receiver's start.
const START_MAX: Duration = Duration::from_secs(60);
/// The receiver's port, in a network of its own.
const PORT: &str = "8090";

/// Sends a notification to a device.
async fn send(server: &PushServer, device: &Value) -> anyhow::Result<()> {
    let notification = json!({"title": "Hello", "body": "from a server"});
    let message = json!({"target": {"device": device}, "notification": notification, "data": {"order": "7"}});
    server.ask("POST", "/v1/messages", message).await?;
    server.settled().await
}

/// The text that a device opens.
fn opened() -> Value {
    let notification = json!({"title": "Hello", "body": "from a server", "navigate": "https://app.example/"});
    json!({"web_push": 8030, "notification": notification, "data": {"order": "7"}})
}

/// Subscribes a page for the server's own key, and demands that its service worker gets what the server sends.
async fn reaches(mut here: Browsing, ca_pem: Option<String>) -> anyhow::Result<()> {
    let key = here.server.make_vapid_key(ca_pem).await?;
    if here.server.url.starts_with("https") {
        // Chromium registers for the key, which assigns the page to an app.
        here.server.name_sender(&key).await?;
    }
    here.joins().await?;
    here.subscribes_for(&key).await?;
    if here.server.url.starts_with("https") {
        here.leads_here()?;
    }
    here.gathers().await?;
    let device = here.server.register(&here.sender.subscription).await?;
    send(&here.server, &device).await?;
    // The page of the other example shows a message without a title of its own as a text.
    let pushed = here.browser.run("return await window.pushed;").await?;
    let text: Value = serde_json::from_str(pushed["body"].as_str().unwrap_or_default())?;
    ensure!(text == opened(), "{text}");
    ensure!(here.server.last_attempt(&device).await?["state"] == "accepted");
    here.browser.ends().await
}

#[test]
fn firefox_gets_what_the_server_sends_by_web_push() {
    let name = "web_push_sender::firefox_gets_what_the_server_sends_by_web_push";
    browse(name, "firefox-esr", &[Client::Browsers, Client::Pywebpush], async |room| {
        reaches(Browsing::firefox(&room).await?, None).await
    });
}

#[test]
fn chromium_gets_what_the_server_sends_by_web_push() {
    let name = "web_push_sender::chromium_gets_what_the_server_sends_by_web_push";
    browse(name, "chromium", &[Client::Browsers, Client::Pywebpush], async |room| {
        let here = Browsing::chromium(&room).await?;
        let authority = std::fs::read_to_string(room.folder().join("room-authority.pem"))?;
        reaches(here, Some(authority)).await
    });
}

/// Asks the receiver.
async fn ask(path: &str, body: Value) -> anyhow::Result<Value> {
    let url = format!("http://localhost:{PORT}{path}");
    let http = reqwest::Client::builder().no_proxy().build()?;
    let answer = http.post(url).json(&body).send().await?;
    let (status, text) = (answer.status(), answer.text().await?);
    ensure!(status.is_success(), "{path}: {status} {text}");
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

async fn story(room: Room) -> anyhow::Result<()> {
    let mut command = Client::WebPushTesting.command("judge.js", room.folder());
    command.arg(Client::WebPushTesting.home()).arg(PORT).stdout(Stdio::piped()).kill_on_drop(true);
    let mut receiver = command.spawn().context("the receiver cannot be started")?;
    let mut lines = BufReader::new(receiver.stdout.take().context("piped")?).lines();
    tokio::time::timeout(START_MAX, lines.next_line()).await.context("it does not start")??;
    let server = PushServer::start(&room, None).await?;
    let key = server.make_vapid_key(None).await?;
    // It takes the text of a boolean only.
    let options = json!({"userVisibleOnly": "true", "applicationServerKey": key});
    let subscription = ask("/subscribe", options).await?["data"].take();
    let device = server.register(&subscription).await?;
    send(&server, &device).await?;
    let name = json!({"clientHash": subscription["clientHash"]});
    let received = ask("/get-notifications", name).await?;
    let text = received["data"]["messages"][0].as_str().with_context(|| received.to_string())?;
    let text: Value = serde_json::from_str(text)?;
    ensure!(text == opened(), "{text}");
    ask(
        &format!("/expire-subscription/{}", subscription["clientHash"].as_str().context("a name")?),
        json!({}),
    )
    .await?;
    send(&server, &device).await?;
    let last = server.last_attempt(&device).await?;
    ensure!((&last["state"], &last["reason"]) == (&json!("rejected"), &json!("unregistered")), "{last}");
    Ok(())
}

#[test]
fn a_push_service_for_tests_of_senders_opens_what_the_server_sends() {
    let name = "web_push_sender::a_push_service_for_tests_of_senders_opens_what_the_server_sends";
    judge(name, Client::WebPushTesting, story);
}
