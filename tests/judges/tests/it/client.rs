//! The foreign clients: their installation, their command lines, their reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use tokio::process::Command;

use crate::trust_store;

/// The time limit of a client for its whole scenario.
const CLIENT_SECONDS_MAX: u64 = 150;

/// One installed family of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    Python,
    Node,
    /// @parse/node-apn and hapns.
    NodeApns,
    NodeGcm,
    NodePushnotifications,
    Go,
    Pushy,
    JavaFirebase,
    GcmServer,
    Pyfcm,
    PythonGcm,
    /// Huawei's own SDK, and pyhcm.
    Hms,
    Smack,
    SmackOf2017,
    Slixmpp,
    Pywebpush,
    WebPush,
    WebPushTesting,
    WebpushGo,
    StandardWebhooks,
    /// django-push-notifications.
    DjangoPush,
    FirebaseMessaging,
    PushReceiver,
    /// Eclipse Paho.
    Mqtt,
    /// The driver of browsers.
    Browsers,
    /// axe-core and html-validate, which examine pages.
    Console,
    OidcProvider,
}

impl Client {
    /// Names the missing requirement of this client, if any.
    pub(crate) fn missing(self) -> Option<String> {
        let (name, pins) = self.names();
        let installed = std::fs::read(self.home().join("pins")).ok();
        let wanted = std::fs::read(clients().join(name).join(pins)).ok();
        let current = installed.is_some() && installed == wanted;
        (!current).then(|| format!("the {name} client: run tests/judges/install --full"))
    }

    /// Returns the command that starts a script of this client, trusting the given authority.
    pub(crate) fn command(self, script: &str, authority: &Path) -> Command {
        let script = clients().join(self.names().0).join(script);
        let home = self.home();
        let mut command = match self {
            Self::Python
            | Self::Pyfcm
            | Self::PythonGcm
            | Self::Hms
            | Self::Slixmpp
            | Self::Pywebpush
            | Self::StandardWebhooks
            | Self::DjangoPush
            | Self::FirebaseMessaging
            | Self::Mqtt
            | Self::Browsers => Command::new(home.join("bin/python")),
            Self::Node
            | Self::NodeApns
            | Self::NodeGcm
            | Self::NodePushnotifications
            | Self::WebPush
            | Self::WebPushTesting
            | Self::PushReceiver
            | Self::Console
            | Self::OidcProvider => Command::new("node"),
            Self::Go | Self::WebpushGo => Command::new(home.join("judge")),
            Self::Pushy | Self::GcmServer => {
                let mut java = Command::new("java");
                java.arg("-cp").arg(home.join("lib/*"));
                java
            }
            Self::JavaFirebase | Self::Smack | Self::SmackOf2017 => {
                let mut java = Command::new("java");
                java.arg("-cp").arg(home.join("lib/*")).args(trust_store::options(authority));
                java
            }
        };
        for variable in ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
            command.env(variable, authority);
        }
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(proxy);
        }
        // A compiled client takes no script.
        if !matches!(self, Self::Go | Self::WebpushGo) {
            command.arg(script);
        }
        command
    }

    /// Returns the folder into which `tests/judges/install` puts the client.
    pub(crate) fn home(self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges").join(self.names().0)
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Python => ("python", "requirements.txt"),
            Self::Node => ("node", "package-lock.json"),
            Self::NodeApns => ("node-apns", "package-lock.json"),
            Self::NodeGcm => ("node-gcm", "package-lock.json"),
            Self::NodePushnotifications => ("node-pushnotifications", "package-lock.json"),
            Self::Go => ("go", "main.go"),
            Self::Pushy => ("pushy", "pom.xml"),
            Self::JavaFirebase => ("java-firebase", "pom.xml"),
            Self::GcmServer => ("gcm-server", "pom.xml"),
            Self::Pyfcm => ("pyfcm", "requirements.txt"),
            Self::PythonGcm => ("python-gcm", "requirements.txt"),
            Self::Hms => ("hms", "requirements.txt"),
            Self::Smack => ("smack", "pom.xml"),
            Self::SmackOf2017 => ("smack-4.2", "pom.xml"),
            Self::Slixmpp => ("slixmpp", "requirements.txt"),
            Self::Pywebpush => ("pywebpush", "requirements.txt"),
            Self::Browsers => ("browsers", "requirements.txt"),
            Self::Console => ("console", "package-lock.json"),
            Self::OidcProvider => ("oidc-provider", "package-lock.json"),
            Self::FirebaseMessaging => ("firebase-messaging", "requirements.txt"),
            Self::PushReceiver => ("push-receiver", "package-lock.json"),
            Self::Mqtt => ("mqtt", "requirements.txt"),
            Self::WebPush => ("web-push", "package-lock.json"),
            Self::WebPushTesting => ("web-push-testing", "package-lock.json"),
            Self::WebpushGo => ("webpush-go", "main.go"),
            Self::StandardWebhooks => ("standardwebhooks", "requirements.txt"),
            Self::DjangoPush => ("django-push-notifications", "requirements.txt"),
        }
    }
}

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// The report of a client, step by step.
pub(crate) struct Report(BTreeMap<String, Value>);

impl Report {
    /// Runs a client to its end and reads the JSON lines it prints.
    pub(crate) async fn of(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(Duration::from_secs(CLIENT_SECONDS_MAX), command.output());
        let output =
            output.await.context("the client takes too long")?.context("the client cannot be started")?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "the client ended with {}\n{stdout}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Self::parse(&stdout)
    }

    fn parse(lines: &str) -> anyhow::Result<Self> {
        let mut steps = BTreeMap::new();
        for line in lines.lines().filter(|line| line.starts_with('{')) {
            let value: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            let step = value["step"].as_str().with_context(|| line.to_owned())?.to_owned();
            steps.insert(step, value);
        }
        Ok(Self(steps))
    }

    /// Returns everything that was reported about a step.
    pub(crate) fn step(&self, step: &str) -> anyhow::Result<&Value> {
        self.0.get(step).with_context(|| format!("the client reported no step {step:?}"))
    }

    /// Demands that a step succeeded and returns its value.
    pub(crate) fn value(&self, step: &str) -> anyhow::Result<&Value> {
        let report = self.step(step)?;
        if report["ok"] != true {
            bail!("{step} should have succeeded: {report}");
        }
        Ok(&report["value"])
    }

    /// Demands that a step succeeded with exactly this value.
    pub(crate) fn is(&self, step: &str, expected: &Value) -> anyhow::Result<()> {
        let value = self.value(step)?;
        ensure!(value == expected, "{step}: {value} instead of {expected}");
        Ok(())
    }

    /// Demands that a step failed with this error of the client's own.
    pub(crate) fn failed(&self, step: &str, error: &str) -> anyhow::Result<()> {
        let report = self.step(step)?;
        ensure!(
            report["ok"] == false && report["error"] == error,
            "{step} should have failed with {error}: {report}"
        );
        Ok(())
    }

    /// Demands that APNs answered a step with this status and reason.
    pub(crate) fn refused(&self, step: &str, status: u16, reason: &str) -> anyhow::Result<()> {
        let report = self.step(step)?;
        let same = report["status"].to_string().trim_matches('"') == status.to_string()
            && report["reason"] == reason;
        ensure!(
            report["ok"] == false && same,
            "{step} should have been refused with {status} {reason}: {report}"
        );
        Ok(())
    }
}
