//! Foreign APNs clients against the APNs emulator.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use rcgen::KeyPair;
use serde_json::json;
use stentor_emulators::apns::{ApnsConfig, ApnsKey, ApnsOptions};
use stentor_emulators::policy::{GoAway, Policy, ServiceError, StreamLimitPolicy};
use stentor_emulators::{ApnsEmulator, RunningApns, TlsConfig};
use tokio::process::Command;

use crate::client::{Client, Report};
use crate::policy::{always, scripted};
use crate::room::{Room, judge};

/// The number of pushes that a client sends in one go.
const PUSHES: u32 = 1000;
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
            vendor: ApnsOptions { keys: vec![known], ..ApnsOptions::default() },
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

    /// Demands that each of these tokens was accepted exactly once.
    fn accepted_once(&self, tokens: impl Iterator<Item = String>) -> anyhow::Result<()> {
        for token in tokens {
            let counts = self.emulator.counts(&token);
            ensure!(counts.accepted == 1 && counts.attempts == 1, "{token} is not counted once: {counts:?}");
        }
        Ok(())
    }
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
