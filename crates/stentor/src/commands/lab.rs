//! `stentor lab`: starts the laboratory, a separate program beside this one.

use crate::failure::CommandFailure;
use anyhow::Context;
use clap::Args;
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use stentor_stage::programs::Program;

/// Measure the sender, the pipeline, and published studies
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "\
The laboratory is the program `stentor-lab`, beside this one or on PATH. `stentor lab --help` lists its commands."
)]
pub(crate) struct LabArgs {
    /// The laboratory's command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl LabArgs {
    /// Returns the words of a command that this program has itself, but that was below `lab` before.
    pub(crate) fn own(&self) -> Option<&[OsString]> {
        self.words.first().is_some_and(|word| word == "kill").then_some(&self.words)
    }

    /// Returns true if the words for the laboratory request JSON.
    pub(crate) fn asks_for_json(&self) -> bool {
        self.words.iter().any(|word| word == "--json")
    }

    /// Replaces this process by the laboratory; returns only on failure.
    pub(crate) fn exec(&self, json: bool) -> anyhow::Error {
        let program = match Program::Laboratory.find() {
            Ok(program) => program,
            Err(error) => return error,
        };
        let json = json.then_some("--json");
        let error = Command::new(&program).args(json).args(&self.words).exec();
        CommandFailure::not_done(format!("{} cannot be started: {error}", program.display())).into()
    }
}

/// Queries the laboratory for the list of its commands. Without a laboratory the list is empty.
pub(super) fn commands() -> anyhow::Result<Vec<Value>> {
    let Ok(program) = Program::Laboratory.find() else { return Ok(Vec::new()) };
    let output = Command::new(program).args(["--json", "commands"]).output();
    let output = output.context("the laboratory cannot be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let object: Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
    Ok(object["commands"].as_array().cloned().unwrap_or_default())
}
