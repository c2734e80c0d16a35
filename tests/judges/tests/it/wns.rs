//! Unmodified clients of WNS against the emulator.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use stentor_emulators::policy::ServiceError;
use stentor_emulators::wns::{ChannelRequest, WnsClient};
use stentor_emulators::{RunningWns, TlsConfig, WnsConfig, WnsEmulator, WnsOptions};

use crate::client::{Client, Report};
use crate::policy::{always, scripted};
use crate::room::{Room, judge};

const CLIENT_ID: &str = "ms-app://s-1-15-2-judge";
const SECRET: &str = "secret+/ä";
const ACCESS_URL: &str = "https://localhost/accesstoken.srf";

async fn start() -> anyhow::Result<RunningWns> {
    let client =
        WnsClient { tenant: None, client_id: CLIENT_ID.to_owned(), client_secret: SECRET.to_owned() };
    let refused = |code: &str| always(code, ServiceError::new(code));
    let config = WnsConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 443)),
        policy: scripted(vec![refused("AppThrottled"), refused("Unavailable"), refused("NotFound")]),
        tls: TlsConfig::Authority { directory: None },
        vendor: WnsOptions {
            clients: vec![client],
            origin: Some("https://localhost".to_owned()),
            ..WnsOptions::default()
        },
        ..WnsConfig::default()
    };
    Ok(WnsEmulator::start(config).await?)
}

/// Opens a channel for each step and returns their addresses.
fn channels(wns: &RunningWns) -> Value {
    let open = |token: Option<&str>, client_id: &str| {
        let (token, client_id) = (token.map(str::to_owned), Some(client_id.to_owned()));
        wns.open_channel(ChannelRequest { token, client_id })
    };
    let (device, gone) = (open(Some("a/token+of="), CLIENT_ID), open(None, CLIENT_ID));
    wns.running.devices().expire(&gone.token, None);
    json!({
        "device": device.uri,
        "gone": gone.uri,
        "foreign": open(None, "another").uri,
        "unknown": open(Some("NotFound"), CLIENT_ID).uri,
        "throttled": open(Some("AppThrottled"), CLIENT_ID).uri,
        "unavailable": open(Some("Unavailable"), CLIENT_ID).uri,
    })
}

async fn report(room: &Room, wns: &RunningWns, secret: &str, channels: &Value) -> anyhow::Result<Report> {
    let authority = room.file("authority.pem", wns.running.ca_pem().context("the emulator has TLS")?)?;
    let mut command = Client::DjangoPush.command("judge.py", &authority);
    command.arg(ACCESS_URL).arg(secret).arg(channels.to_string());
    Report::of(command).await
}

async fn tell(room: Room) -> anyhow::Result<()> {
    let wns = start().await?;
    let channels = channels(&wns);
    let mut messages = wns.running.devices().listen("a/token+of=").context("registered")?;
    let report = report(&room, &wns, SECRET, &channels).await?;
    for (step, word) in [("toast", "hello, w"), ("tile", "a tile"), ("raw", "any")] {
        report.is(step, &json!(""))?;
        let message = messages.recv().await.context("the device is gone")?;
        ensure!(message.push_type == Some(format!("wns/{step}")), "{step}: {message:?}");
        let text = message.payload["text"].as_str().unwrap_or_default();
        ensure!(text.contains(word), "{step}: {text}");
    }
    for (step, sentence) in [
        ("large", "HTTP 413: The notification payload exceeds the 500 byte limit."),
        ("gone", "HTTP 410: The channel expired."),
        ("unknown", "HTTP 404: The channel URI is not valid or is not recognized by WNS."),
        ("foreign", "HTTP 403: The cloud service is not authorized to send a notification to this URI."),
        ("throttled", "HTTP 406: The cloud service exceeded its throttle limit"),
        ("unavailable", "HTTP 503: The server is currently unavailable."),
    ] {
        report.failed(step, &format!("WNSNotificationResponseError: {sentence}"))?;
    }
    let counts = wns.running.counts("a/token+of=");
    ensure!(counts.accepted == 3 && counts.rejected == 1, "{counts:?}");
    Ok(())
}

async fn tell_of_a_wrong_secret(room: Room) -> anyhow::Result<()> {
    let wns = start().await?;
    let report = report(&room, &wns, "wrong", &channels(&wns)).await?;
    report.failed("toast", "WNSAuthenticationError: Authentication failed, check your WNS settings.")
}

/// Sends as an app of Node does, to the token endpoint that is built into the library.
async fn tell_node(room: Room) -> anyhow::Result<()> {
    let wns = start().await?;
    let channels = channels(&wns);
    let mut heard = wns.running.devices().listen("a/token+of=").context("registered")?;
    let authority = room.file("authority.pem", wns.running.ca_pem().context("the emulator has TLS")?)?;
    let mut command = Client::NodePushnotifications.command("judge.js", &authority);
    command.arg(Client::NodePushnotifications.home()).arg(SECRET).arg(channels.to_string());
    let report = Report::of(command).await?;
    for (step, word) in [("toast", "hello, w"), ("tile", "a tile"), ("raw", "any")] {
        report.is(step, &json!(1))?;
        let message = heard.recv().await.context("the device is gone")?;
        ensure!(message.push_type == Some(format!("wns/{step}")), "{step}: {message:?}");
        ensure!(message.payload["text"].as_str().unwrap_or_default().contains(word), "{step}: {message:?}");
    }
    for (step, sentence) in [
        ("large", "The notification payload exceeds the 5000 byte size limit."),
        ("gone", "The channel expired."),
        ("unknown", "The channel URI is not valid or is not recognized by WNS."),
        ("throttled", "The cloud service exceeded its throttle limit."),
        ("unavailable", "The server is currently unavailable."),
    ] {
        report.failed(step, sentence)?;
    }
    Ok(())
}

#[test]
fn node_pushnotifications_gets_along_with_the_emulator_of_wns() {
    let name = "wns::node_pushnotifications_gets_along_with_the_emulator_of_wns";
    judge(name, Client::NodePushnotifications, tell_node);
}

#[test]
fn django_push_notifications_gets_along_with_the_emulator_of_wns() {
    let name = "wns::django_push_notifications_gets_along_with_the_emulator_of_wns";
    judge(name, Client::DjangoPush, tell);
}

#[test]
fn django_push_notifications_with_a_wrong_secret_is_refused_by_the_emulator_of_wns() {
    let name = "wns::django_push_notifications_with_a_wrong_secret_is_refused_by_the_emulator_of_wns";
    judge(name, Client::DjangoPush, tell_of_a_wrong_secret);
}
