//! Foreign XMPP clients, with which app servers were built, against the CCS emulator.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use stentor_emulators::policy::{AfterGoAway, GoAway, Policy, ServiceError};
use stentor_emulators::{CcsConfig, CcsEmulator, CcsOptions, InjectedMessage, RunningCcs};

use crate::client::{Client, Report};
use crate::policy::{always, scripted};
use crate::room::{Room, judge};

const SENDER: &str = "4711";
const KEY: &str = "AIza-judged";

/// Starts an emulator that knows one sender, with two messages of a device waiting for it.
async fn start() -> anyhow::Result<RunningCcs> {
    // The first connection is drained after its fourth message and stays open.
    let goaway =
        GoAway { after_requests: 4, then: AfterGoAway::Linger, connections: Some(1), ..GoAway::default() };
    let scripts = scripted(vec![always("gone", ServiceError::new("DEVICE_UNREGISTERED"))]);
    let senders = BTreeMap::from([(SENDER.to_owned(), vec![KEY.to_owned()])]);
    let config = CcsConfig {
        policy: Policy { goaway: Some(goaway), ..scripts },
        vendor: CcsOptions { senders, ..CcsOptions::default() },
        ..CcsConfig::default()
    };
    let ccs = CcsEmulator::start(config).await?;
    for id in ["up-1", "up-2"] {
        ccs.upstream(InjectedMessage {
            sender_id: SENDER.to_owned(),
            from: Some("phone".to_owned()),
            data: json!({"text": "a <b> & 'ü'"}).as_object().cloned().unwrap_or_default(),
            message_id: Some(id.to_owned()),
            ..InjectedMessage::default()
        })?;
    }
    Ok(ccs)
}

/// Has a client go through its scenario, and checks its report and the emulator's counts.
async fn judged(room: &Room, client: Client, script: &str) -> anyhow::Result<Report> {
    let ccs = start().await?;
    let authority = room.file("authority.pem", ccs.running.ca_pem().context("TLS")?)?;
    if client != Client::Slixmpp {
        crate::trust_store::make(&authority)?;
    }
    let mut command = client.command(script, &authority);
    command.arg(ccs.running.addr().port().to_string()).arg(SENDER).arg(KEY);
    let report = Report::of(command).await?;
    check(&report)?;
    for token in ["xmpp-one", "xmpp-two", "xmpp-three", "xmpp-after"] {
        let counts = ccs.running.counts(token);
        ensure!(counts.accepted == 1 && counts.attempts == 1, "{token} is not counted once: {counts:?}");
    }
    ensure!(ccs.running.counts("gone").rejected == 1, "{:?}", ccs.running.counts("gone"));
    ensure!(ccs.running.counts("xmpp-four").attempts == 0, "{:?}", ccs.running.counts("xmpp-four"));
    let totals = ccs.upstream_totals();
    ensure!((totals.acked, totals.resent, totals.waiting, totals.unacked) == (3, 1, 0, 0), "{totals:?}");
    Ok(report)
}

fn check(report: &Report) -> anyhow::Result<()> {
    for step in ["login", "ping", "roster"] {
        report.is(step, &json!(true))?;
    }
    let upstream = |id: &str| {
        json!({"from": "phone", "category": "org.example.emulated", "message_id": id,
            "data": {"text": "a <b> & 'ü'"}})
    };
    report.is("upstream", &upstream("up-1"))?;
    report.is("resent", &upstream("up-2"))?;
    let ack = |to: &str, id: &str| json!({"from": to, "message_id": id, "message_type": "ack"});
    report.is("ack", &ack("xmpp-one", "m-1"))?;
    report.is("after", &ack("xmpp-after", "m-after"))?;
    let refused = |step: &str, from: &str, code: &str| -> anyhow::Result<()> {
        let nack = report.value(step)?;
        let fields = [&nack["message_type"], &nack["from"], &nack["error"]];
        ensure!(fields == [&json!("nack"), &json!(from), &json!(code)], "{step}: {nack}");
        Ok(())
    };
    refused("nack", "gone", "DEVICE_UNREGISTERED")?;
    refused("bad ack", "phone", "BAD_ACK")?;
    refused("draining", "xmpp-four", "CONNECTION_DRAINING")?;
    let data = json!({"message_status": "MESSAGE_SENT_TO_DEVICE", "original_message_id": "m-3",
        "device_registration_id": "xmpp-two"});
    let receipt: &Value = report.value("receipt")?;
    ensure!(receipt["message_type"] == "receipt" && receipt["data"] == data, "{receipt}");
    report.is("control", &json!({"message_type": "control", "control_type": "CONNECTION_DRAINING"}))
}

#[test]
fn smack_gets_along_with_the_ccs_emulator() {
    judge("ccs::smack_gets_along_with_the_ccs_emulator", Client::Smack, async |room| {
        let report = judged(&room, Client::Smack, "Judge.java").await?;
        report.is("stanza error", &json!("error bad-request"))?;
        report.failed("wrong key", "SASLErrorException")
    });
}

#[test]
fn smack_of_2017_gets_along_with_the_ccs_emulator() {
    judge("ccs::smack_of_2017_gets_along_with_the_ccs_emulator", Client::SmackOf2017, async |room| {
        let report = judged(&room, Client::SmackOf2017, "../smack/Judge.java").await?;
        report.is("stanza error", &json!("error bad-request"))?;
        report.failed("wrong key", "SASLErrorException")
    });
}

#[test]
fn slixmpp_gets_along_with_the_ccs_emulator() {
    judge("ccs::slixmpp_gets_along_with_the_ccs_emulator", Client::Slixmpp, async |room| {
        let report = judged(&room, Client::Slixmpp, "judge.py").await?;
        report.is("stanza error", &json!("error bad-request"))?;
        report.is("wrong key", &json!("refused"))
    });
}
