//! `stentor lab bench web-push`: one campaign by Web Push through a sink.

use crate::bench::web_push::{self, WebPushOptions};
use clap::Args;
use std::process::ExitCode;
use stentor_terminal::output::Output;
use stentor_terminal::progress::on_the_terminal;

/// Send one campaign by Web Push to a sink, each message sealed for its subscription
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench web-push
  stentor lab bench web-push --messages 1000000 --rounds 3 --json

floor_cpu_us is the time of OpenSSL for one agreement on P-256 and the cipher, as `openssl speed` measures it before
the first round. A message also needs a key pair of its own (key_pair_beside). The rival is the library web-push on Node,
in the same run and before the same sink: npm ci --prefix lab/rivals/web-push.")]
pub(crate) struct WebPushArgs {
    /// Number of subscriptions
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=5_000_000))]
    messages: u64,
    /// Number of rounds, each with a new server and an empty store
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
}

impl WebPushArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let Self { messages, rounds } = self;
        let report = web_push::run(WebPushOptions { messages, rounds }, &on_the_terminal()).await?;
        let (per_second, cpu_us) = report.medians();
        let text = || {
            format!(
                "{per_second:.0} messages per second, {cpu_us:.1} us of the server's processor time for each"
            )
        };
        output.result(&report.object(), text)?;
        Ok(ExitCode::SUCCESS)
    }
}
