//! `stentor config`: the configuration file and the effective settings.

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
    /// Show every effective setting and the origin of its value
    #[command(after_help = "\
Examples:
  stentor config explain stentor.toml
  stentor config explain log.level
  stentor config explain stentor.toml pipeline")]
    Explain {
        /// The file, and the settings or sections to explain in full; without any, one line for every setting
        #[arg(value_name = "FILE|SETTING")]
        about: Vec<String>,
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
            ConfigCommand::Explain { about } => explain(&about, output),
        }
    }
}

/// Prints one line for every setting, or the named settings in full.
fn explain(about: &[String], output: Output) -> anyhow::Result<()> {
    let known = config::explain(None).map_err(refused)?;
    let (settings, files): (Vec<&String>, Vec<&String>) =
        about.iter().partition(|word| known.iter().any(|one| is_named(one, word)));
    let file = match files.as_slice() {
        [] => None,
        [file] if Path::new(file).exists() || file.ends_with(".toml") => Some(Path::new(file.as_str())),
        [first, ..] => {
            let sentence = format!(
                "{first} is neither a file nor a setting: `stentor config explain` lists all settings"
            );
            return Err(CommandFailure::usage(sentence).into());
        }
    };
    let all = config::explain(file).map_err(refused)?;
    let is_meant =
        |one: &&config::Explained| settings.is_empty() || settings.iter().any(|word| is_named(one, word));
    let meant: Vec<&config::Explained> = all.iter().filter(is_meant).collect();
    let object = |one: &&config::Explained| json!({"setting": one.key, "value": one.value, "from": one.origin, "default": one.default, "about": one.about});
    let list: Vec<Value> = meant.iter().map(object).collect();
    output.result(&json!({ "settings": list }), || match settings.is_empty() {
        true => table(
            ["setting", "value", "from"],
            meant.iter().map(|one| [one.key.clone(), one.value.clone(), one.origin.clone()]),
        ),
        false => meant.iter().map(|one| in_full(one)).collect::<Vec<_>>().join("\n\n"),
    })
}

/// Returns true if a word names a setting, or its section.
fn is_named(setting: &config::Explained, word: &str) -> bool {
    setting.key == word || setting.key.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'))
}

fn in_full(one: &config::Explained) -> String {
    let config::Explained { key, value, origin, default, about } = one;
    let variable = format!("STENTOR__{}", key.to_uppercase().replace('.', "__"));
    let about = if about.is_empty() { String::new() } else { format!("\n{about}") };
    format!("{key} = {value}{about}\n  from      {origin}\n  default   {default}\n  variable  {variable}")
}

/// Loads the configuration from its file and the environment.
pub(super) fn load(file: Option<&Path>) -> anyhow::Result<config::Config> {
    stentor_node::config::load(file).map_err(refused)
}

fn refused(error: config::ConfigError) -> anyhow::Error {
    CommandFailure::usage(format!("the configuration cannot be used: {error}")).into()
}

/// Starts the log as configured.
pub(super) fn start_log(config: &config::Config) -> anyhow::Result<()> {
    let json = config.log.format == config::LogFormat::Json;
    logging::start(&config.log.level, json).context("the log cannot be started")
}
