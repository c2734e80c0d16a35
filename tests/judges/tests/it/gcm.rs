//! Foreign clients of the legacy API against the GCM emulator.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::json;
use stentor_emulators::device::TokenRegistration;
use stentor_emulators::policy::ServiceError;
use stentor_emulators::{GcmConfig, GcmEmulator, GcmOptions, RunningGcm, TlsConfig};
use tokio::process::Command;

use crate::client::{Client, Report};
use crate::policy::{always, first, scripted};
use crate::room::{Room, judge};

const KEY: &str = "AIza-judged";

/// A running emulator that knows one key.
struct Gcm {
    emulator: RunningGcm,
    authority: PathBuf,
}

impl Gcm {
    /// Starts one where the clients' built-in names lead, with TLS.
    async fn start(room: &Room) -> anyhow::Result<Self> {
        let config = GcmConfig { listen: ([127, 0, 0, 1], 443).into(), ..GcmConfig::default() };
        let emulator = begin(config).await?;
        let authority = room.file("authority.pem", emulator.ca_pem().context("the emulator has TLS")?)?;
        Ok(Self { emulator, authority })
    }

    /// Starts one without TLS, for clients with a configurable address.
    async fn plaintext(room: &Room) -> anyhow::Result<Self> {
        let config = GcmConfig { tls: TlsConfig::Plaintext, ..GcmConfig::default() };
        Ok(Self { emulator: begin(config).await?, authority: room.folder().join("none.pem") })
    }

    /// Returns a client's command with the address and the key.
    fn command(&self, client: Client, script: &str) -> Command {
        let mut command = client.command(script, &self.authority);
        command.arg(format!("http://{}", self.emulator.addr())).arg(KEY);
        command
    }

    /// Demands that one message was taken over for each token.
    fn accepted_once<'a>(&self, tokens: impl IntoIterator<Item = &'a str>) -> anyhow::Result<()> {
        for token in tokens {
            let counts = self.emulator.counts(token);
            ensure!(counts.accepted == 1 && counts.attempts == 1, "{token} is not counted once: {counts:?}");
        }
        Ok(())
    }

    /// Checks that this number of messages was accepted and none twice.
    fn accepted_in_all(&self, messages: u64) -> anyhow::Result<()> {
        let totals = self.emulator.sums().tokens;
        ensure!(totals.accepted == messages && totals.tokens_accepted_twice == 0, "{totals:?}");
        Ok(())
    }
}

async fn begin(config: GcmConfig) -> anyhow::Result<RunningGcm> {
    let policy = scripted(vec![
        always("gone", ServiceError::new("NotRegistered")),
        first(2, "busy", ServiceError::new("Unavailable").retry_after_s(1)),
    ]);
    let vendor = GcmOptions { keys: vec![KEY.to_owned()], ..GcmOptions::default() };
    Ok(GcmEmulator::start(GcmConfig { policy, vendor, ..config }).await?)
}

#[test]
fn gcm_server_gets_along_with_the_gcm_emulator() {
    judge("gcm::gcm_server_gets_along_with_the_gcm_emulator", Client::GcmServer, async |room| {
        let gcm = Gcm::plaintext(&room).await?;
        let report = Report::of(gcm.command(Client::GcmServer, "Judge.java")).await?;
        report.is("single", &json!("sent"))?;
        report.is("retried", &json!("sent"))?;
        let many = json!({"success": 2, "failure": 1, "results": ["sent", "sent", "NotRegistered"]});
        report.is("many", &many)?;
        report.is("topic", &json!("sent"))?;
        report.is("dead", &json!("NotRegistered"))?;
        report.is("bad ttl", &json!("InvalidTtl"))?;
        report.failed("wrong key", "HTTP 401")?;
        gcm.accepted_once(["gcm-two", "gcm-1", "gcm-2", "/topics/news"])?;
        ensure!(gcm.emulator.counts("gcm-one").accepted == 1, "{:?}", gcm.emulator.counts("gcm-one"));
        gcm.accepted_in_all(5)
    });
}

#[test]
fn node_gcm_gets_along_with_the_gcm_emulator() {
    judge("gcm::node_gcm_gets_along_with_the_gcm_emulator", Client::NodeGcm, async |room| {
        let gcm = Gcm::plaintext(&room).await?;
        let mut command = gcm.command(Client::NodeGcm, "judge.js");
        command.arg(Client::NodeGcm.home());
        let report = Report::of(command).await?;
        report.is("single", &json!({"success": 1, "failure": 0, "errors": [null]}))?;
        report.is("many", &json!({"success": 2, "failure": 1, "errors": [null, null, "NotRegistered"]}))?;
        report.is("topic", &json!("number"))?;
        report.failed("wrong key", "401")?;
        gcm.accepted_once(["node-one", "node-1", "node-2", "/topics/news"])?;
        gcm.accepted_in_all(4)
    });
}

#[test]
fn pyfcm_gets_along_with_the_gcm_emulator() {
    judge("gcm::pyfcm_gets_along_with_the_gcm_emulator", Client::Pyfcm, async |room| {
        let gcm = Gcm::plaintext(&room).await?;
        let report = Report::of(gcm.command(Client::Pyfcm, "judge.py")).await?;
        let one = json!({"success": 1, "failure": 0, "errors": [null]});
        report.is("single", &one)?;
        report.is("data only", &one)?;
        let many = report.value("many")?;
        ensure!((&many["success"], &many["failure"]) == (&json!(30), &json!(1)), "{many}");
        ensure!(many["errors"][30] == "InvalidRegistration", "{many}");
        report.is("topic", &json!(true))?;
        report.is("dead", &json!({"success": 0, "failure": 1, "errors": ["NotRegistered"]}))?;
        report.failed("wrong key", "AuthenticationError")?;
        report.failed("broken", "InvalidDataError")?;
        let tokens: Vec<String> = (0..30).map(|number| format!("py-{number}")).collect();
        gcm.accepted_once(tokens.iter().map(String::as_str))?;
        gcm.accepted_once(["py-one", "py-data", "/topics/news"])?;
        gcm.accepted_in_all(33)
    });
}

#[test]
fn python_gcm_with_its_own_address_gets_along_with_the_gcm_emulator() {
    let name = "gcm::python_gcm_with_its_own_address_gets_along_with_the_gcm_emulator";
    judge(name, Client::PythonGcm, async |room| {
        let gcm = Gcm::start(&room).await?;
        let registered =
            |token: &str| TokenRegistration { token: Some(token.to_owned()), ..TokenRegistration::default() };
        gcm.emulator.devices().register(registered("old"));
        gcm.emulator.devices().replace("old", registered("new")).context("a replaced device")?;
        let mut command = Client::PythonGcm.command("judge.py", &gcm.authority);
        command.arg(KEY).arg("old");
        let report = Report::of(command).await?;
        let many = json!({"success": 21, "errors": {"NotRegistered": ["gone"]}, "canonical": {"old": "new"}});
        report.is("many", &many)?;
        report.is("plain", &json!(null))?;
        report.is("plain replaced", &json!("new"))?;
        report.failed("plain gone", "GCMNotRegisteredException")?;
        report.failed("plain too big", "GCMMessageTooBigException")?;
        report.is("topic", &json!(true))?;
        report.is("retried", &json!(1))?;
        report.failed("wrong key", "GCMAuthenticationException")?;
        ensure!(gcm.emulator.counts("busy").attempts == 3, "{:?}", gcm.emulator.counts("busy"));
        let tokens: Vec<String> = (0..20).map(|number| format!("pg-{number}")).collect();
        gcm.accepted_once(tokens.iter().map(String::as_str))?;
        gcm.accepted_once(["pg-plain", "/topics/news"])
    });
}
