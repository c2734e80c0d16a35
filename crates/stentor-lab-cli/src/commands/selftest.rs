//! `stentor lab selftest`: tests of the laboratory's own methods, which need no study.

mod power;

use clap::{Args, Subcommand};
use std::process::ExitCode;
use stentor_terminal::output::Output;

/// Test the methods of the laboratory where the truth is known
#[derive(Debug, Args)]
pub(crate) struct SelftestArgs {
    #[command(subcommand)]
    command: SelftestCommand,
}

#[derive(Debug, Subcommand)]
enum SelftestCommand {
    Power(power::PowerSelftestArgs),
}

impl SelftestArgs {
    /// Runs the subcommand.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self.command {
            SelftestCommand::Power(power) => power.run(output).await,
        }
    }
}
