//! `stentor app service-account`: accounts that get access tokens for what they sign, as app servers' libraries expect it.

use crate::client::{ApiClient, segment};
use crate::output::{Output, cell, listing};
use anyhow::Context;
use clap::{Subcommand, ValueEnum};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Make a service account; its file with the private key is shown only now
    #[command(
        after_help = "Example:\n  stentor app service-account create --url https://push.example.org --out account.json"
    )]
    Create {
        /// What it is for
        #[arg(long, default_value = "app server")]
        name: String,
        /// Where app servers reach this server; the server of this command when not given
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// What it may do (send, register); both when not given
        #[arg(long = "scope", value_enum, ignore_case = true)]
        scopes: Vec<ScopeName>,
        /// A new file to write it into, readable by its owner alone; standard output when not given
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List the service accounts
    #[command(after_help = "Example:\n  stentor app service-account list")]
    List,
    /// Delete a service account; its access tokens are refused at once
    #[command(after_help = "Example:\n  stentor app service-account delete key_…")]
    Delete {
        /// The account's id
        account: String,
    },
}

/// What a key may do.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScopeName {
    /// Send messages
    Send,
    /// Register devices
    Register,
    /// Look after the app itself
    Admin,
    /// Register devices of the gateway as themselves: a key that may stand in an app on devices
    Join,
}

impl ScopeName {
    /// Returns its word in the API.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Register => "register",
            Self::Admin => "admin",
            Self::Join => "join",
        }
    }
}

impl AccountCommand {
    /// Runs the command; `server` is where this command finds the server.
    pub(crate) async fn run(
        self,
        client: &ApiClient,
        app: &str,
        server: &str,
        output: Output,
    ) -> anyhow::Result<()> {
        let path = format!("/v1/apps/{}/service-accounts", segment(app));
        match self {
            Self::Create { name, url, scopes, out } => {
                let words: Vec<&str> = scopes.iter().map(|scope| scope.word()).collect();
                let url = url.unwrap_or_else(|| server.to_owned());
                let asked = json!({"name": name, "url": url, "scopes": words});
                let account = client.post(&path, &asked).await?;
                if let Some(out) = &out {
                    write(out, &cell(&account["file"]))?;
                }
                output.result(&account, || match out {
                    Some(out) => format!("made {}, its file is {}", cell(&account["id"]), out.display()),
                    None => cell(&account["file"]),
                })
            }
            Self::List => {
                let accounts = client.get(&path).await?;
                let fields = ["id", "name", "scopes", "token_uri", "created_at"];
                output.result(&accounts, || listing(&accounts["service_accounts"], fields))
            }
            Self::Delete { account } => {
                client.delete(&format!("{path}/{}", segment(&account))).await?;
                output.result(&json!({"deleted": account}), || format!("deleted {account}"))
            }
        }
    }
}

/// Writes a file that nobody else may read; what is there already is not touched.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{text}"));
    written.with_context(|| {
        format!("{} cannot be written; the account was made and can be deleted", path.display())
    })
}
