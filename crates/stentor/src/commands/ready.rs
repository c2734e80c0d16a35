//! `stentor ready`: whether a server can do its work.

use crate::client::ApiClient;
use crate::connection::ConnectionArgs;
use crate::failure::CommandFailure;
use crate::output::Output;
use clap::Args;
use serde_json::Value;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Ask whether the server can do its work; the exit code is 0 if it can
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor ready
  stentor ready --wait 30 && stentor app create my-app
  stentor ready --server https://push.example:8686 --json

Needs no key. Asks /readyz, whose answer names the part that cannot work. The exit code is 1 while the server is not ready, and 3 while it does
not answer.")]
pub(crate) struct ReadyArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// How long to wait until the server is ready
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,
}

impl ReadyArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let client = self.connection.keyless_client()?;
        let (began, wait) = (Instant::now(), Duration::from_secs(self.wait));
        loop {
            match asked(&client).await {
                Ok(answer) => return output.result(&answer, || "the server is ready".to_owned()),
                Err(error) if began.elapsed() >= wait => return Err(error),
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }
}

async fn asked(client: &ApiClient) -> anyhow::Result<Value> {
    let (status, answer) = client.probe("/readyz").await?;
    if status.is_success() {
        return Ok(answer);
    }
    Err(CommandFailure::not_done(format!("the server is not ready: {answer}")).into())
}
