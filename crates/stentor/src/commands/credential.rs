//! `stentor app credential`: the keys to the push services.

use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::output::{Output, cell, table};
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum CredentialCommand {
    /// Set the credential for one push service
    #[command(after_help = "\
Examples:
  stentor app credential set --provider fcm service-account.json
  stentor app credential set --provider apns AuthKey_ABC123DEFG.p8 --team-id DEF123GHIJ --bundle-id com.example.app")]
    Set(Box<CredentialSet>),
    /// List the credentials, without their secrets
    #[command(after_help = "Example:\n  stentor app credential list")]
    List,
    /// Delete the credential for one push service
    #[command(after_help = "Example:\n  stentor app credential delete --provider fcm")]
    Delete {
        /// The push service
        #[arg(long, value_enum, ignore_case = true)]
        provider: CredentialProvider,
    },
}

/// The push services that take a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CredentialProvider {
    /// Firebase Cloud Messaging
    Fcm,
    /// Apple Push Notification service
    Apns,
    /// Accepts everything and sends nothing
    Null,
}

impl CredentialProvider {
    fn word(self) -> &'static str {
        match self {
            Self::Fcm => "fcm",
            Self::Apns => "apns",
            Self::Null => "null",
        }
    }
}

/// The parts of a credential.
#[derive(Debug, Args)]
pub(super) struct CredentialSet {
    /// The push service
    #[arg(long, value_enum, ignore_case = true)]
    provider: CredentialProvider,
    /// The service account (JSON, FCM) or the signing key (.p8, APNs) as the vendor issued it
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The id of the signing key; read from the name AuthKey_….p8 when not given (APNs)
    #[arg(long)]
    key_id: Option<String>,
    /// The team that owns the key (APNs)
    #[arg(long)]
    team_id: Option<String>,
    /// The app's bundle id (APNs)
    #[arg(long)]
    bundle_id: Option<String>,
    /// Which of Apple's environments the tokens belong to (APNs)
    #[arg(long, value_parser = ["production", "sandbox"])]
    environment: Option<String>,
    /// Another address of the push service, such as an emulator's
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Another address of the token endpoint (FCM)
    #[arg(long, value_name = "URL")]
    token_endpoint: Option<String>,
    /// A further certificate authority to trust, such as an emulator's ca.pem
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// How many messages a minute may be sent, or `none` for as many as the push service takes (FCM: 600000 when not given)
    #[arg(long, value_parser = quota)]
    quota: Option<Value>,
    /// The most connections to open
    #[arg(long, value_name = "N")]
    max_connections: Option<u32>,
}

impl CredentialCommand {
    pub(super) async fn run(self, client: &Client, app: &str, output: Output) -> anyhow::Result<()> {
        let path = format!("/v1/apps/{}/credentials", segment(app));
        match self {
            Self::Set(set) => {
                let provider = set.provider.word();
                client.put(&format!("{path}/{provider}"), &set.body()?).await?;
                output.result(&json!({"app": app, "provider": provider}), || {
                    format!("{provider} is set for {app}; `stentor doctor` says whether it works")
                })
            }
            Self::List => {
                let list = client.get(&path).await?;
                output.result(&list, || describe(&list["credentials"]))
            }
            Self::Delete { provider } => {
                let provider = provider.word();
                client.delete(&format!("{path}/{provider}")).await?;
                output.result(&json!({"deleted": provider}), || format!("deleted {provider}"))
            }
        }
    }
}

impl CredentialSet {
    fn body(&self) -> anyhow::Result<Value> {
        let mut body = match self.provider {
            CredentialProvider::Fcm => self.fcm()?,
            CredentialProvider::Apns => self.apns()?,
            CredentialProvider::Null => return Ok(json!({})),
        };
        put(&mut body, "endpoint", self.endpoint.as_deref().map(Value::from));
        let ca = self.ca.as_deref().map(read).transpose()?;
        put(&mut body, "ca_pem", ca.map(Value::from));
        put(&mut body, "quota", self.quota.clone());
        put(&mut body, "max_connections", self.max_connections.map(Value::from));
        Ok(body)
    }

    fn fcm(&self) -> anyhow::Result<Value> {
        let path = self.file()?;
        let account: Value = serde_json::from_str(&read(path)?).map_err(|error| {
            let path = path.display();
            Failure::usage(format!(
                "{path} is not a service account: {error}; download it again from the Firebase console"
            ))
        })?;
        let mut body = json!({ "service_account": account });
        put(&mut body, "token_endpoint", self.token_endpoint.as_deref().map(Value::from));
        Ok(body)
    }

    fn apns(&self) -> anyhow::Result<Value> {
        let path = self.file()?;
        let need = |value: &Option<String>, option: &str| {
            value.clone().ok_or_else(|| Failure::usage(format!("{option} is needed for APNs")))
        };
        let key_id = self.key_id.clone().or_else(|| key_id_of(path));
        let mut body = json!({
            "key_p8": read(path)?,
            "key_id": need(&key_id, "--key-id")?,
            "team_id": need(&self.team_id, "--team-id")?,
            "bundle_id": need(&self.bundle_id, "--bundle-id")?,
        });
        put(&mut body, "environment", self.environment.as_deref().map(Value::from));
        Ok(body)
    }

    fn file(&self) -> anyhow::Result<&Path> {
        self.file.as_deref().ok_or_else(|| Failure::usage("name the credential's file").into())
    }
}

/// Reads the key id out of the name under which Apple offers the key.
fn key_id_of(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    stem.strip_prefix("AuthKey_").map(str::to_owned)
}

fn quota(text: &str) -> Result<Value, String> {
    if text == "none" {
        return Ok(text.into());
    }
    text.parse::<u32>()
        .map(Value::from)
        .map_err(|_| "must be a number of messages per minute, or none".to_owned())
}

fn put(body: &mut Value, field: &str, value: Option<Value>) {
    if let Some(value) = value {
        body[field] = value;
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

fn describe(credentials: &Value) -> String {
    let rows = credentials.as_array().into_iter().flatten().map(|credential| {
        let summary = credential["summary"].as_object();
        let summary = summary.into_iter().flatten().filter(|(_, value)| !value.is_null());
        let summary: Vec<String> = summary.map(|(name, value)| format!("{name} {}", cell(value))).collect();
        let state = [cell(&credential["state"]), cell(&credential["detail"])].join(" ");
        [
            cell(&credential["provider"]),
            state.trim().to_owned(),
            summary.join(", "),
            cell(&credential["updated_at"]),
        ]
    });
    table(["provider", "state", "summary", "updated_at"], rows)
}
