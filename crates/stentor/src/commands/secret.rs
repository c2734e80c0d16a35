//! `stentor secret`: the key that seals credentials at rest.

use crate::failure::CommandFailure;
use crate::output::{Output, table};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;
use stentor_node::{Rotation, Sealing, rotate};

/// Manage the key that seals credentials at rest
#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    #[command(flatten)]
    place: SealingKeyArgs,
    #[command(subcommand)]
    command: SecretCommand,
}

#[derive(Debug, Subcommand)]
enum SecretCommand {
    /// Show the keys that seal the credentials, and their availability
    #[command(after_help = "\
Examples:
  stentor secret show
  stentor secret show --data-dir /var/lib/stentor

Shows ids of keys, never a key. Exits 1 when a credential needs a key that is not available.")]
    Show,
    /// Replace the key in the key file with a new one; the server must be stopped
    #[command(after_help = "\
Examples:
  stentor secret rotate --data-dir /var/lib/stentor
  stentor secret rotate --config stentor.toml

The file holds both keys until every credential is sealed under the new one; then the database is rewritten. After an
interrupted rotation everything stays readable, and the next start of the server continues it. To rotate a key in the variable
STENTOR__SECRETS__KEY, write a new key before the old one and start the server.")]
    Rotate,
}

/// The locations of the data and the key.
#[derive(Clone, Debug, Args)]
pub(super) struct SealingKeyArgs {
    /// The server's configuration file, which may name the file of the key
    #[arg(long, global = true, value_name = "FILE", env = "STENTOR_CONFIG")]
    config: Option<PathBuf>,
    /// The data directory; overrides the configuration
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl SecretArgs {
    /// Runs the command.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<()> {
        let mut config = super::config::load(self.place.config.as_deref())?;
        if let Some(data_dir) = self.place.data_dir {
            config.data_dir = data_dir;
        }
        match self.command {
            SecretCommand::Show => {
                let sealing =
                    Sealing::look(&config).map_err(|error| CommandFailure::not_done(error.to_string()))?;
                output.result(&object(&sealing), || describe(&sealing))?;
                sealing.problem().map_or(Ok(()), |problem| Err(CommandFailure::not_done(problem).into()))
            }
            SecretCommand::Rotate => {
                super::config::start_log(&config)?;
                let done = rotate(&config).map_err(|error| CommandFailure::not_done(error.to_string()))?;
                output.result(&rotated(&done), || rotation_text(&done))
            }
        }
    }
}

fn object(sealing: &Sealing) -> Value {
    let keys: Vec<String> = sealing.keys.iter().map(ToString::to_string).collect();
    let wanted =
        sealing.wanted.iter().map(|(id, count)| json!({"key": id.to_string(), "credentials": count}));
    json!({
        "ok": sealing.problem().is_none(),
        "source": sealing.source,
        "keys": keys,
        "wanted": wanted.collect::<Vec<_>>(),
    })
}

fn describe(sealing: &Sealing) -> String {
    let mut rows: Vec<[String; 3]> = Vec::new();
    for (place, id) in sealing.keys.iter().enumerate() {
        let count = sealing.wanted.get(id).copied().unwrap_or_default();
        rows.push([id.to_string(), if place == 0 { "seals" } else { "opens" }.to_owned(), count.to_string()]);
    }
    for (id, count) in sealing.wanted.iter().filter(|(id, _)| !sealing.keys.contains(id)) {
        rows.push([id.to_string(), "MISSING".to_owned(), count.to_string()]);
    }
    format!("{}\n(keys from {})", table(["key", "use", "credentials"], rows), sealing.source)
}

fn rotated(done: &Rotation) -> Value {
    json!({
        "from": done.from.to_string(),
        "to": done.to.to_string(),
        "credentials": done.credentials,
        "unreadable": done.unreadable,
        "key_file": done.key_file,
    })
}

fn rotation_text(done: &Rotation) -> String {
    let file = done.key_file.display();
    let mut text = format!(
        "{} credentials are sealed under the new key {}; {file} has it, keep a copy elsewhere",
        done.credentials, done.to
    );
    if done.unreadable > 0 {
        text.push_str(&format!(
            "\n{} credentials could not be opened and have to be put again; until then the former key {} stays in the file",
            done.unreadable, done.from
        ));
    }
    text
}
