//! Foreign FCM clients against the FCM emulator.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use rcgen::{KeyPair, PKCS_RSA_SHA256};
use serde_json::json;
use stentor_emulators::fcm::{FcmAuth, FcmConfig, FcmOptions, ServiceAccount};
use stentor_emulators::policy::{Policy, ServiceError};
use stentor_emulators::{FcmEmulator, RunningFcm, TlsConfig};

use crate::client::{Client, Report};
use crate::policy::{always, first, scripted};
use crate::room::{Room, judge};

const PROJECT: &str = "judged-project";
const CLIENT_EMAIL: &str = "judge@judged-project.iam.gserviceaccount.com";

/// Installation ids that the judges send to.
pub(crate) const FIDS: [&str; 3] =
    ["cJ4vGd1wRk2aB-3_xYz09Q", "dQ90zYx_3-Ba2kRw1dGv4J", "eAbCdEfGhIjKlMnOpQrStU"];
/// One that FCM does not know.
const GONE_FID: &str = "fGone0123456789abcdefg";

/// A running emulator that knows one service account.
struct Fcm {
    emulator: RunningFcm,
    authority: PathBuf,
    service_account: PathBuf,
}

impl Fcm {
    async fn start(room: &Room) -> anyhow::Result<Self> {
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256)?;
        let account =
            ServiceAccount { client_email: CLIENT_EMAIL.to_owned(), public_key_pem: key.public_key_pem() };
        let config = FcmConfig {
            listen: ([127, 0, 0, 1], 443).into(),
            tls: TlsConfig::Authority { directory: Some(room.folder().to_owned()) },
            policy: policy(),
            vendor: FcmOptions {
                projects: vec![PROJECT.to_owned()],
                auth: FcmAuth { accounts: vec![account], ..FcmAuth::default() },
                ..FcmOptions::default()
            },
            ..FcmConfig::default()
        };
        let emulator = FcmEmulator::start(config).await?;
        let ca = emulator.ca_pem().context("the emulator has TLS")?.to_owned();
        Ok(Self {
            emulator,
            authority: room.file("authority.pem", &ca)?,
            service_account: room.file("service-account.json", &service_account(&key))?,
        })
    }

    fn accepted_once<'a>(&self, tokens: impl IntoIterator<Item = &'a str>) -> anyhow::Result<()> {
        for token in tokens {
            let counts = self.emulator.counts(token);
            ensure!(counts.accepted == 1 && counts.attempts == 1, "{token} is not counted once: {counts:?}");
        }
        Ok(())
    }

    fn attempted(&self, token: &str, times: u32) -> anyhow::Result<()> {
        let attempts = self.emulator.counts(token).attempts;
        ensure!(attempts == times, "{token} was attempted {attempts} times instead of {times}");
        Ok(())
    }
}

fn policy() -> Policy {
    let wait = |code: &str| ServiceError::new(code).retry_after_s(1);
    scripted(vec![
        always("gone", ServiceError::new("UNREGISTERED")),
        always("gone-many", ServiceError::new("UNREGISTERED")),
        always(GONE_FID, ServiceError::new("UNREGISTERED")),
        always("invalid", ServiceError::new("INVALID_ARGUMENT")),
        always("foreign", ServiceError::new("SENDER_ID_MISMATCH")),
        always("quota", ServiceError::new("QUOTA_EXCEEDED")),
        always("third-party", ServiceError::new("THIRD_PARTY_AUTH_ERROR")),
        first(2, "busy", wait("UNAVAILABLE")),
        first(2, "quota-wait", wait("QUOTA_EXCEEDED")),
    ])
}

/// Writes a service account's file in Google's form.
fn service_account(key: &KeyPair) -> String {
    json!({
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "0123456789abcdef",
        "private_key": key.serialize_pem(),
        "client_email": CLIENT_EMAIL,
        "client_id": "100000000000000000001",
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": "https://oauth2.googleapis.com/token",
        "universe_domain": "googleapis.com",
    })
    .to_string()
}

/// Checks the steps that every client must pass.
fn check_common(fcm: &Fcm, report: &Report) -> anyhow::Result<()> {
    for step in ["send", "rich", "dry run", "topic", "condition", "busy"] {
        let name = report.value(step)?.as_str().context("a message name")?;
        ensure!(name.starts_with(&format!("projects/{PROJECT}/messages/")), "{step}: {name}");
    }
    let both = json!({"success": 2, "failure": 0});
    report.is("subscribe", &both)?;
    report.is("unsubscribe", &both)?;
    report.is("multicast", &json!({"success": 2, "failure": 0, "errors": []}))?;
    fcm.accepted_once(["good", "rich", "multi-1", "multi-2", "/topics/news"])?;
    fcm.attempted("busy", 3)?;
    let dry = fcm.emulator.counts("dry");
    ensure!(dry.validate_only == 1 && dry.accepted == 0, "a dry run is not a message: {dry:?}");
    Ok(())
}

/// Checks the steps of clients that know installation ids.
fn check_installations(fcm: &Fcm, report: &Report, unknown: &str) -> anyhow::Result<()> {
    report.value("fid")?.as_str().context("a message name")?;
    report.is("fids", &json!({"success": 2, "failure": 0, "errors": []}))?;
    report.failed("gone fid", unknown)?;
    fcm.accepted_once(FIDS)
}

#[test]
fn firebase_admin_for_python_gets_along_with_the_fcm_emulator() {
    judge("fcm::firebase_admin_for_python_gets_along_with_the_fcm_emulator", Client::Python, async |room| {
        let fcm = Fcm::start(&room).await?;
        let mut command = Client::Python.command("firebase_judge.py", &fcm.authority);
        command.arg(&fcm.service_account);
        let report = Report::of(command).await?;
        check_common(&fcm, &report)?;
        let one_gone = json!({"success": 19, "failure": 1, "errors": ["UnregisteredError"]});
        for (step, prefix) in [("send each", "each"), ("send each async", "async")] {
            report.is(step, &one_gone)?;
            let tokens: Vec<String> = (0..19).map(|number| format!("{prefix}-{number}")).collect();
            fcm.accepted_once(tokens.iter().map(String::as_str))?;
        }
        check_installations(&fcm, &report, "UnregisteredError")?;
        report.failed("gone", "UnregisteredError")?;
        report.failed("invalid", "InvalidArgumentError")?;
        report.failed("foreign", "SenderIdMismatchError")?;
        report.failed("quota", "QuotaExceededError")?;
        report.failed("third-party", "ThirdPartyAuthError")?;
        report.failed("too big", "InvalidArgumentError")?;
        report.value("quota-wait")?;
        fcm.attempted("quota-wait", 3)
    });
}

#[test]
fn firebase_admin_for_node_gets_along_with_the_fcm_emulator() {
    judge("fcm::firebase_admin_for_node_gets_along_with_the_fcm_emulator", Client::Node, async |room| {
        let fcm = Fcm::start(&room).await?;
        let mut command = Client::Node.command("judge.js", &fcm.authority);
        command.arg(&fcm.service_account).arg(Client::Node.home());
        let report = Report::of(command).await?;
        check_common(&fcm, &report)?;
        let gone = "messaging/registration-token-not-registered";
        report.is("send each", &json!({"success": 199, "failure": 1, "errors": [gone]}))?;
        let tokens: Vec<String> = (0..199).map(|number| format!("each-{number}")).collect();
        fcm.accepted_once(tokens.iter().map(String::as_str))?;
        check_installations(&fcm, &report, "messaging/installation-id-not-registered")?;
        report.failed("gone", gone)?;
        report.failed("invalid", "messaging/invalid-argument")?;
        report.failed("foreign", "messaging/mismatched-credential")?;
        report.failed("quota", "messaging/message-rate-exceeded")?;
        report.failed("third-party", "messaging/third-party-auth-error")?;
        report.failed("too big", "messaging/invalid-argument")
    });
}
