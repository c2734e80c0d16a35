//! Foreign XMPP clients against the server's own CCS, over TLS, with a device of its gateway behind it.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::authority::RoomAuthority;
use crate::client::{Client, Report};
use crate::gateway_server::{GatewayDevice, GatewayServer, app_number};
use crate::room::{Room, judge};

/// Plays the device until the app server's last message has arrived, and returns the messages received.
async fn device(device: GatewayDevice) -> anyhow::Result<Vec<Value>> {
    let mut heard = Vec::new();
    while heard.len() < 3 {
        heard.push(device.hears().await?);
    }
    Ok(heard)
}

/// Has a client go through its scenario, and checks its report, the device's messages, and the messages left over.
async fn judged(room: &Room, client: Client, script: &str) -> anyhow::Result<Report> {
    let files = RoomAuthority::make(room)?;
    let trusted = reqwest::Certificate::from_pem(&std::fs::read(&files.authority)?)?;
    let http = reqwest::Client::builder().tls_certs_only([trusted]);
    let server = GatewayServer::start(room, http, |config| {
        config.api.tls_cert_file.clone_from(&files.certificate);
        config.api.tls_key_file.clone_from(&files.key);
        config.gateway.ccs_listen = Some(([127, 0, 0, 1], 0).into());
    })
    .await?;
    let address = std::fs::read_to_string(room.folder().join("data/ccs.addr"))?;
    let port = address.trim().rsplit_once(':').context("a port")?.1.to_owned();
    let phone = server.join().await?;
    for id in ["up-1", "up-2"] {
        phone.says(id, json!({"text": "a <b> & 'ü'"})).await?;
    }
    if client != Client::Slixmpp {
        crate::trust_store::make(&files.authority)?;
    }
    let mut command = client.command(script, &files.authority);
    command.arg(port).arg(app_number(&server.app)?.to_string()).arg(&server.key).arg(&phone.token);
    let (app, token) = (server.app.clone(), phone.token.clone());
    let playing = tokio::spawn(async move {
        let heard = device(phone).await?;
        let left = server.waiting().await?;
        server.stop();
        anyhow::Ok((heard, left))
    });
    let report = Report::of(command).await?;
    let (heard, left) = playing.await??;
    let data: Vec<_> =
        heard.iter().map(|message| message["data"]["k"].as_str().unwrap_or_default()).collect();
    ensure!(data == ["v <&> ' ü"; 3], "{heard:?}");
    ensure!(heard.iter().all(|message| message.get("gateway").is_none()), "{heard:?}");
    ensure!(left == json!([]), "all that the device said was acknowledged: {left}");
    check(&report, &app, &token)?;
    Ok(report)
}

fn check(report: &Report, app: &str, token: &str) -> anyhow::Result<()> {
    for step in ["login", "ping", "roster"] {
        report.is(step, &json!(true))?;
    }
    let upstream =
        |id: &str| json!({"from": token, "category": app, "message_id": id, "data": {"text": "a <b> & 'ü'"}});
    report.is("upstream", &upstream("up-1"))?;
    let mut resent = upstream("up-2");
    resent["again"] = json!(true);
    report.is("resent", &resent)?;
    report.is("ack", &json!({"from": token, "message_id": "m-0", "message_type": "ack"}))?;
    for (step, from, code) in [
        ("nack", "no token", "BAD_REGISTRATION"),
        ("bad ack", "phone", "BAD_ACK"),
        ("draining", token, "CONNECTION_DRAINING"),
    ] {
        let nack = report.value(step)?;
        let fields = [&nack["message_type"], &nack["from"], &nack["error"]];
        ensure!(fields == [&json!("nack"), &json!(from), &json!(code)], "{step}: {nack}");
    }
    report.is("stanza error", &json!("error bad-request"))?;
    let data = json!({"message_status": "MESSAGE_SENT_TO_DEVICE", "original_message_id": "m-1",
        "device_registration_id": token});
    let receipt = report.value("receipt")?;
    ensure!(receipt["message_type"] == "receipt" && receipt["data"] == data, "{receipt}");
    report.is("control", &json!({"message_type": "control", "control_type": "CONNECTION_DRAINING"}))
}

#[test]
fn smack_is_an_app_server_of_the_gateway() {
    judge("gateway_ccs::smack_is_an_app_server_of_the_gateway", Client::Smack, async |room| {
        let report = judged(&room, Client::Smack, "Judge.java").await?;
        report.failed("wrong key", "SASLErrorException")
    });
}

#[test]
fn smack_of_2017_is_an_app_server_of_the_gateway() {
    judge("gateway_ccs::smack_of_2017_is_an_app_server_of_the_gateway", Client::SmackOf2017, async |room| {
        let report = judged(&room, Client::SmackOf2017, "../smack/Judge.java").await?;
        report.failed("wrong key", "SASLErrorException")
    });
}

#[test]
fn slixmpp_is_an_app_server_of_the_gateway() {
    judge("gateway_ccs::slixmpp_is_an_app_server_of_the_gateway", Client::Slixmpp, async |room| {
        let report = judged(&room, Client::Slixmpp, "judge.py").await?;
        report.is("wrong key", &json!("refused"))
    });
}
