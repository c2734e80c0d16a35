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
pub(crate) struct Link {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(show::Show),
    Selftest(selftest::Selftest),
    Run(Box<run::Run>),
}

impl Link {
    /// Does what was asked for.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        if !matches!(self.action, Action::Show(_)) {
            crate::emulated::refuse()?;
        }
        match self.action {
            Action::Show(show) => show.run(output),
            Action::Selftest(selftest) => selftest.run(output).await,
            Action::Run(run) => run.run(output).await,
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
