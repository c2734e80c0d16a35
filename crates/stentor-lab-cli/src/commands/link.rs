//! `stentor lab link`: a link between two network namespaces, for any command.

mod run;
mod selftest;
pub(super) mod server_side;
mod show;

use clap::{Args, Subcommand};
use std::process::ExitCode;
use stentor_terminal::output::Output;

/// Run any command behind an emulated link, and test the link itself
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    #[command(subcommand)]
    command: LinkCommand,
}

#[derive(Debug, Subcommand)]
enum LinkCommand {
    Show(show::ShowArgs),
    Selftest(selftest::LinkSelftestArgs),
    Run(Box<run::LinkRunArgs>),
}

impl LinkArgs {
    /// Runs the subcommand.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        if !matches!(self.command, LinkCommand::Show(_)) {
            stentor_stage::emulated::refuse()?;
        }
        match self.command {
            LinkCommand::Show(show) => show.run(output),
            LinkCommand::Selftest(selftest) => selftest.run(output).await,
            LinkCommand::Run(run) => run.run(output).await,
        }
    }
}
