//! `stentor lab clock`: one-way delay between clocks that differ.

mod party;
mod selftest;

use crate::output::Output;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Test how well two clocks are compared over a link
#[derive(Debug, Args)]
pub(crate) struct Clock {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Selftest(selftest::Selftest),
    #[command(hide = true)]
    Party(party::Party),
}

impl Clock {
    /// Does what was asked for.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::Selftest(selftest) => {
                crate::emulated::refuse()?;
                selftest.run(output).await
            }
            Action::Party(party) => party.run().await,
        }
    }
}
