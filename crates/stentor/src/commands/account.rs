//! `stentor app service-account`: accounts that exchange signed assertions for access tokens, as libraries of app servers expect it.

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
    /// Create a service account; its file with the private key is shown only now
    #[command(
        after_help = "Example:\n  stentor app service-account create --url https://push.example.org --out account.json"
    )]
    Create {
        /// The name of the account, for example its purpose
        #[arg(long, default_value = "app server")]
        name: String,
        /// The URL of this server for app servers; by default the server of this command
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// A scope of the account (send, register); both by default
        #[arg(long = "scope", value_enum, ignore_case = true)]
        scopes: Vec<ScopeName>,
        /// A new file for it, readable by its owner only; standard output by default
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

/// A scope of a key.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScopeName {
    /// Send messages
    Send,
    /// Register devices
    Register,
    /// Manage the app itself
    Admin,
    /// Register devices of the gateway as themselves: a key with this scope may be shipped inside an app
    Join,
}

impl ScopeName {
    /// Returns its name in the API.
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
    /// Runs the command; `server` is the URL used by this command.
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
                let request = json!({"name": name, "url": url, "scopes": words});
                let account = client.post(&path, &request).await?;
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

/// Writes a new file that only its owner may read; an existing file is not changed.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{text}"));
    written.with_context(|| {
        format!("{} cannot be written; the account was made and can be deleted", path.display())
    })
}
