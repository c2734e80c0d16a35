//! Foreign APNs clients against the APNs emulator.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use rcgen::KeyPair;
use serde_json::{Value, json};
use stentor_emulators::apns::{ApnsConfig, ApnsKey, ApnsOptions};
use stentor_emulators::device::{DeviceMessage, TokenRegistration};
use stentor_emulators::policy::{GoAway, Policy, ServiceError, StreamLimitPolicy};
use stentor_emulators::{ApnsEmulator, RunningApns, TlsConfig};
use tokio::process::Command;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::client::{Client, Report};
use crate::policy::{always, scripted};
use crate::room::{Room, judge};

/// The number of pushes that a client sends in one go.
const PUSHES: u32 = 1000;
/// Apple's port for the management of channels.
const MANAGEMENT_PORT: u16 = 2196;
/// The reported time of death of the dead token, in milliseconds since 1970.
const DEAD_SINCE_MS: u64 = 1_750_000_000_000;

/// A running emulator that knows one signing key.
struct Apns {
    emulator: RunningApns,
    authority: PathBuf,
    signing_key: PathBuf,
}

impl Apns {
    async fn start(room: &Room, policy: Policy) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let known = ApnsKey {
            team_id: "TEAMID1234".to_owned(),
            key_id: "KEYID12345".to_owned(),
            public_key_pem: Some(key.public_key_pem()),
        };
        let config = ApnsConfig {
            listen: ([127, 0, 0, 1], 443).into(),
            tls: TlsConfig::Authority { directory: Some(room.folder().to_owned()) },
            policy,
            control: Some(([127, 0, 0, 1], 0).into()),
            vendor: ApnsOptions {
                keys: vec![known],
                management: Some(([127, 0, 0, 1], MANAGEMENT_PORT).into()),
                topics: vec!["org.example.app".to_owned()],
                ..ApnsOptions::default()
            },
            ..ApnsConfig::default()
        };
        let emulator = ApnsEmulator::start(config).await?;
        let ca = emulator.ca_pem().context("the emulator has TLS")?.to_owned();
        Ok(Self {
            emulator,
            authority: room.file("authority.pem", &ca)?,
            signing_key: room.file("AuthKey.p8", &key.serialize_pem())?,
        })
    }

    /// Sends JSON to the control port and returns its answer.
    async fn control(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let address = self.emulator.control_addr().context("a control port")?;
        let request = reqwest::Client::new().post(format!("http://{address}{path}")).json(body);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }

    /// Demands that each of these tokens was accepted exactly once.
    fn accepted_once(&self, tokens: impl Iterator<Item = String>) -> anyhow::Result<()> {
        for token in tokens {
            let counts = self.emulator.counts(&token);
            ensure!(counts.accepted == 1 && counts.attempts == 1, "{token} is not counted once: {counts:?}");
        }
        Ok(())
    }
}

/// A channel of the app, and a device that is subscribed to it and listens.
struct Subscription {
    channel: String,
    messages: UnboundedReceiver<DeviceMessage>,
}

impl Subscription {
    async fn make(apns: &Apns) -> anyhow::Result<Self> {
        let created = apns.control("/channels", &json!({"bundle": "org.example.app", "policy": 0})).await?;
        let channel = created["channel"].as_str().context("a channel")?.to_owned();
        let devices = apns.emulator.devices();
        let device = devices.register(TokenRegistration::default());
        apns.control(&format!("/device/{device}/subscribe"), &json!({"channel": channel})).await?;
        let messages = devices.listen(&device).context("a device")?;
        Ok(Self { channel, messages })
    }

    /// Returns the event of the next broadcast.
    async fn event(&mut self) -> anyhow::Result<Value> {
        let message = self.messages.recv().await.context("a message")?;
        ensure!(message.topic.as_ref() == Some(&self.channel), "from another channel: {message:?}");
        Ok(message.payload["aps"]["event"].clone())
    }
}

/// Has a client manage channels, broadcast to one, and send the events of a Live Activity to a device.
async fn check_live_activities(room: &Room, script: &str) -> anyhow::Result<Report> {
    let apns = Apns::start(room, refusals()).await?;
    let mut subscription = Subscription::make(&apns).await?;
    let mut command = Client::NodeApns.command(script, &apns.authority);
    command.arg(Client::NodeApns.home()).arg(&apns.signing_key);
    command.args([&subscription.channel, &token('a'), &token('d')]);
    let report = Report::of(command).await?;
    report.is("list", &json!([2, true]))?;
    report.is("read", &json!([1, "LiveActivity"]))?;
    for broadcast in ["update channel", "end channel"] {
        report.is(broadcast, &json!([36, 36]))?;
    }
    report.refused("expiring", 400, "BadExpirationDate")?;
    for step in ["start", "update", "end", "delete"] {
        report.value(step)?;
    }
    report.refused("dead", 410, "Unregistered")?;
    report.refused("read deleted", 400, "ChannelNotRegistered")?;
    report.refused("update deleted", 400, "ChannelNotRegistered")?;
    let counts = apns.emulator.counts(&subscription.channel);
    ensure!((counts.accepted, counts.rejected) == (2, 1), "the channel: {counts:?}");
    ensure!(apns.emulator.counts(&token('a')).accepted == 3, "the events of one Live Activity");
    for event in ["update", "end"] {
        ensure!(subscription.event().await? == event, "the device misses the {event}");
    }
    Ok(report)
}

/// Refuses one token for each reason that the steps need, and accepts all others.
fn refusals() -> Policy {
    let dead = ServiceError { timestamp_ms: Some(DEAD_SINCE_MS), ..ServiceError::new("Unregistered") };
    scripted(vec![
        always(&token('b'), ServiceError::new("BadDeviceToken")),
        always(&token('d'), dead),
        always(&token('e'), ServiceError::new("TooManyRequests")),
        always(&token('f'), ServiceError::new("ServiceUnavailable")),
    ])
}

/// One stream at a time until a push is accepted, as for a sender with a provider token.
fn one_stream_at_first() -> Policy {
    Policy {
        streams: Some(StreamLimitPolicy { initial: Some(1), ..StreamLimitPolicy::default() }),
        ..Policy::default()
    }
}

/// A GOAWAY after every 300 requests of a connection.
fn goaways() -> Policy {
    Policy { goaway: Some(GoAway { after_requests: 300, ..GoAway::default() }), ..Policy::default() }
}

fn token(digit: char) -> String {
    digit.to_string().repeat(64)
}

/// The steps that every client performs, with the token of each.
fn steps() -> [(&'static str, String); 5] {
    [
        ("accepted", token('a')),
        ("bad token", token('b')),
        ("dead", token('d')),
        ("too many", token('e')),
        ("unavailable", token('f')),
    ]
}

/// Returns the tokens that pushy sends to in one go.
fn many_tokens() -> impl Iterator<Item = String> {
    (0..PUSHES).map(|number| format!("{:064x}", 0xabc_0000 + number))
}

fn pushy(apns: &Apns) -> Command {
    let mut command = Client::Pushy.command("Judge.java", &apns.authority);
    command.arg(&apns.authority).arg(&apns.signing_key).arg(PUSHES.to_string());
    command
}

fn check_steps(report: &Report) -> anyhow::Result<()> {
    report.value("accepted")?;
    report.refused("bad token", 400, "BadDeviceToken")?;
    report.refused("dead", 410, "Unregistered")?;
    let timestamp = report.step("dead")?["timestamp"].to_string();
    let same = timestamp.trim_matches('"') == DEAD_SINCE_MS.to_string();
    ensure!(same, "dead since {timestamp} instead of {DEAD_SINCE_MS}");
    report.refused("too many", 429, "TooManyRequests")?;
    report.refused("unavailable", 503, "ServiceUnavailable")
}

#[test]
fn pushy_gets_along_with_the_apns_emulator() {
    judge("apns::pushy_gets_along_with_the_apns_emulator", Client::Pushy, async |room| {
        let apns = Apns::start(&room, refusals()).await?;
        let mut command = pushy(&apns);
        for (step, token) in steps() {
            command.args([step, &token]);
        }
        let report = Report::of(command).await?;
        check_steps(&report)?;
        report.is("many", &json!(PUSHES))?;
        apns.accepted_once(many_tokens())?;
        let totals = apns.emulator.sums().tokens;
        ensure!(totals.accepted == u64::from(PUSHES) + 1 && totals.tokens_accepted_twice == 0, "{totals:?}");
        Ok(())
    });
}

#[test]
fn pushy_lives_with_one_stream_at_first() {
    judge("apns::pushy_lives_with_one_stream_at_first", Client::Pushy, async |room| {
        let apns = Apns::start(&room, one_stream_at_first()).await?;
        let report = Report::of(pushy(&apns)).await?;
        report.is("many", &json!(PUSHES))?;
        report.is("resent", &json!(0))?;
        apns.accepted_once(many_tokens())
    });
}

/// Pushy may give up its requests in flight when a GOAWAY arrives, answered or not, so the scenario sends those again: nothing may be lost,
/// and nothing accepted more often than it was sent.
#[test]
fn pushy_loses_nothing_to_goaways() {
    judge("apns::pushy_loses_nothing_to_goaways", Client::Pushy, async |room| {
        let apns = Apns::start(&room, goaways()).await?;
        let report = Report::of(pushy(&apns)).await?;
        report.is("many", &json!(PUSHES))?;
        let resent = report.value("resent")?.as_u64().context("a count")?;
        let sums = apns.emulator.sums();
        let accepted = sums.tokens.accepted;
        let bounds = u64::from(PUSHES)..=u64::from(PUSHES) + resent;
        ensure!(bounds.contains(&accepted), "{accepted} accepted, {resent} sent again");
        ensure!(many_tokens().all(|token| apns.emulator.counts(&token).accepted > 0), "a token got nothing");
        ensure!(sums.wire.goaways >= 3, "too few connections were ended: {:?}", sums.wire);
        Ok(())
    });
}

#[test]
fn aioapns_gets_along_with_the_apns_emulator() {
    judge("apns::aioapns_gets_along_with_the_apns_emulator", Client::Python, async |room| {
        let apns = Apns::start(&room, refusals()).await?;
        let steps: serde_json::Map<_, _> =
            steps().into_iter().map(|(step, token)| (step.to_owned(), json!(token))).collect();
        let mut command = Client::Python.command("aioapns_judge.py", &apns.authority);
        command.arg(&apns.signing_key).arg(serde_json::Value::from(steps).to_string());
        let report = Report::of(command).await?;
        check_steps(&report)?;
        report.is("batch", &json!(200))?;
        apns.accepted_once((0..200).map(|number| format!("{}{number:04x}", "a".repeat(60))))
    });
}

#[test]
fn node_apn_gets_along_with_channels_and_live_activities() {
    judge("apns::node_apn_gets_along_with_channels_and_live_activities", Client::NodeApns, async |room| {
        let report = check_live_activities(&room, "node_apn.js").await?;
        report.is("create", &json!([true, "2288cf3f-70d8-46a6-97d7-dd5d00867127"]))?;
        report.refused("wrong policy", 400, "BadRequestParams")?;
        report.refused("plain topic", 400, "BadTopic")
    });
}

#[test]
fn hapns_gets_along_with_channels_and_live_activities() {
    judge("apns::hapns_gets_along_with_channels_and_live_activities", Client::NodeApns, async |room| {
        let report = check_live_activities(&room, "hapns.mjs").await?;
        report.is("create", &json!(true))?;
        report.is("delete", &json!("2288cf3f-70d8-46a6-97d7-dd5d00867127"))
    });
}
