//! `stentor config`: the configuration file and what is in force.

use crate::failure::CommandFailure;
use crate::logging;
use crate::output::{Output, line, table};
use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use stentor_server::config;

/// Show, check and explain the configuration
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the default configuration, with comments
    #[command(after_help = "Example:\n  stentor config default > stentor.toml")]
    Default,
    /// Check a configuration file together with the environment
    #[command(after_help = "Example:\n  stentor config check stentor.toml")]
    Check {
        /// The file; without it only the environment is checked
        file: Option<PathBuf>,
    },
    /// Show every setting in force and where its value comes from
    #[command(after_help = "Example:\n  stentor config explain stentor.toml")]
    Explain {
        /// The file
        file: Option<PathBuf>,
    },
}

impl ConfigArgs {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<()> {
        match self.command {
            ConfigCommand::Default => line(config::DEFAULT_TOML.trim_end()),
            ConfigCommand::Check { file } => {
                load(file.as_deref())?;
                output
                    .result(&json!({"ok": true, "file": file}), || "the configuration is in order".to_owned())
            }
            ConfigCommand::Explain { file } => {
                let settings = config::explain(file.as_deref()).map_err(refused)?;
                let object = |one: &config::Explained| json!({"setting": one.key, "value": one.value, "from": one.origin});
                let list: Vec<Value> = settings.iter().map(object).collect();
                output.result(&json!({ "settings": list }), || {
                    table(
                        ["setting", "value", "from"],
                        settings.iter().map(|one| [one.key.clone(), one.value.clone(), one.origin.clone()]),
                    )
                })
            }
        }
    }
}

/// Loads the configuration from its file and the environment.
pub(super) fn load(file: Option<&Path>) -> anyhow::Result<config::Config> {
    stentor_node::config::load(file).map_err(refused)
}

fn refused(error: config::ConfigError) -> anyhow::Error {
    CommandFailure::usage(format!("the configuration cannot be used: {error}")).into()
}

/// Begins to log as the configuration says.
pub(super) fn start_log(config: &config::Config) -> anyhow::Result<()> {
    let json = config.log.format == config::LogFormat::Json;
    logging::start(&config.log.level, json).context("the log cannot be started")
}
