//! `stentor app webhook`: where what devices send is posted to.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::client::{ApiClient, segment};
use crate::output::{Output, cell, facts};

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Set the webhook, in the place of one that was there; a secret that is made is shown only now
    #[command(after_help = "Example:\n  stentor app webhook set https://app.example.org/from-devices")]
    Set {
        /// The address that messages of devices are posted to
        url: String,
        /// A file with the secret that requests are signed with (`whsec_…`), `-` for standard input; one is made when not given
        #[arg(long, value_name = "FILE")]
        secret_file: Option<PathBuf>,
    },
    /// Show the webhook, without its secret
    #[command(after_help = "Example:\n  stentor app webhook show")]
    Show,
    /// Delete the webhook; what devices send waits for somebody else to take it over
    #[command(after_help = "Example:\n  stentor app webhook delete")]
    Delete,
}

impl WebhookCommand {
    /// Runs the command.
    pub(crate) async fn run(self, client: &ApiClient, app: &str, output: Output) -> anyhow::Result<()> {
        let path = format!("/v1/apps/{}/upstream-webhook", segment(app));
        match self {
            Self::Set { url, secret_file } => {
                let secret = secret_file.as_deref().map(secret).transpose()?;
                let put = client.put(&path, &json!({"url": url, "secret": secret})).await?;
                output.result(&put, || webhook_text(&put))
            }
            Self::Show => {
                let webhook = client.get(&path).await?;
                output.result(&webhook, || facts(&webhook))
            }
            Self::Delete => {
                client.delete(&path).await?;
                output.result(&json!({"deleted": app}), || format!("deleted the webhook of {app}"))
            }
        }
    }
}

fn webhook_text(put: &Value) -> String {
    let url = format!("url     {}", cell(&put["url"]));
    match put["secret"].as_str() {
        Some(secret) => format!("{url}\nsecret  {secret}  (shown only now)"),
        None => url,
    }
}

fn secret(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text).map(drop),
        _ => std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text)).map(drop),
    };
    read.with_context(|| format!("{} cannot be read", file.display()))?;
    // Some editors put a byte order mark before the text.
    Ok(text.trim_start_matches('\u{feff}').trim().to_owned())
}
