//! `stentor lab clock`: one-way delay between clocks that differ.

mod party;
mod selftest;

use clap::{Args, Subcommand};
use std::process::ExitCode;
use stentor_terminal::output::Output;

/// Test the comparison of two clocks over a link
#[derive(Debug, Args)]
pub(crate) struct ClockArgs {
    #[command(subcommand)]
    command: ClockCommand,
}

#[derive(Debug, Subcommand)]
enum ClockCommand {
    Selftest(selftest::ClockSelftestArgs),
    #[command(hide = true)]
    Party(party::PartyArgs),
}

impl ClockArgs {
    /// Runs the subcommand.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self.command {
            ClockCommand::Selftest(selftest) => {
                stentor_stage::emulated::refuse()?;
                selftest.run(output).await
            }
            ClockCommand::Party(party) => party.run().await,
        }
    }
}
