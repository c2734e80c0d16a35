//! `stentor lab link`: a link between two network namespaces, for anything that is run behind it.

mod run;
mod selftest;
mod show;

pub(in crate::commands::lab) use selftest::checks;

use crate::failure::{CommandFailure, Exit};
use crate::output::Output;
use clap::{Args, Subcommand};
use std::process::ExitCode;
use stentor_rig::RigError;

/// Run anything behind an emulated link, and test the link itself
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
    /// Does what was asked for.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        if !matches!(self.command, LinkCommand::Show(_)) {
            crate::emulated::refuse()?;
        }
        match self.command {
            LinkCommand::Show(show) => show.run(output),
            LinkCommand::Selftest(selftest) => selftest.run(output).await,
            LinkCommand::Run(run) => run.run(output).await,
        }
    }
}

/// Returns a machine that cannot do it apart from everything else that goes wrong.
pub(in crate::commands::lab) fn refusal(error: RigError) -> anyhow::Error {
    match error {
        RigError::NoLevel { .. } | RigError::NoLimits { .. } => {
            CommandFailure::new(Exit::NotTestable, format!("this cannot be tested here: {error}")).into()
        }
        RigError::Io(_) => error.into(),
    }
}
