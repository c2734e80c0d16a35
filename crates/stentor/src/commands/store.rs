//! `stentor store`: backups of a server's data, copies into another engine, and steps of the schema.

mod copying;
mod migration;

use crate::failure::CommandFailure;
use crate::output::{Output, table, thousands};
use crate::progress::PhaseProgress;
use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use stentor_node::{BackupManifest, Depth, Sealing, back_up, check_backup, restore, store_file};
use stentor_server::app::AppError;
use stentor_server::config::Config;

/// Interval of polling a running backup.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Back up a server's data, restore it, or move it into another engine
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Copy the database as of one instant into a new folder, also while the server runs
    #[command(after_help = "\
Examples:
  stentor store backup /backups/2026-11-25 --data-dir /var/lib/stentor
  stentor store backup /backups/2026-11-25 --config stentor.toml --json

Copies the database and key.pepper, and writes backup.json with their sizes and BLAKE3 hashes last: a folder without it is no
backup. A backup blocks no request, but the write-ahead log of a running server grows until it has ended, and the disk needs room for a copy.
The key that seals credentials is not copied: keep it apart (docs/operations.md).")]
    Backup {
        /// The folder, new or empty
        folder: PathBuf,
        #[command(flatten)]
        place: DataArgs,
    },
    /// Compare a backup with its hashes and read its whole database
    #[command(after_help = "\
Examples:
  stentor store check /backups/2026-11-25
  stentor store check /backups/2026-11-25 --deep

Exits 1 when anything is missing, different or damaged.")]
    Check {
        /// The folder of the backup
        folder: PathBuf,
        /// Also compare every index with its table; takes several times as long
        #[arg(long)]
        deep: bool,
    },
    /// Check a backup and restore it into a data directory without a database; the server must be stopped
    #[command(after_help = "\
Example:
  stentor store restore /backups/2026-11-25 --data-dir /var/lib/stentor

After the next start the server sends all deliveries again that were queued or being sent at the time of the backup, so devices may get
them twice. The restored server does not know messages that were accepted after the backup. Put the key that seals credentials back as
well, or set the credentials again.")]
    Restore {
        /// The folder of the backup
        folder: PathBuf,
        #[command(flatten)]
        place: DataArgs,
    },
    Copy(copying::CopyArgs),
    Migrate(migration::MigrateArgs),
}

/// The location of a server's data.
#[derive(Debug, Args)]
struct DataArgs {
    /// The server's configuration file
    #[arg(long, value_name = "FILE", env = "STENTOR_CONFIG")]
    config: Option<PathBuf>,
    /// The data directory; overrides the configuration
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl DataArgs {
    fn load(self) -> anyhow::Result<Config> {
        let mut config = super::config::load(self.config.as_deref())?;
        if let Some(data_dir) = self.data_dir {
            config.data_dir = data_dir;
        }
        super::config::start_log(&config)?;
        Ok(config)
    }
}

impl StoreArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        match self.command {
            StoreCommand::Backup { folder, place } => {
                let manifest = with_progress(place.load()?, folder.clone()).await?;
                output.result(&object(&folder, &manifest), || describe(&folder, &manifest, "is a backup of"))
            }
            StoreCommand::Check { folder, deep } => {
                let depth = if deep { Depth::Deep } else { Depth::Quick };
                let manifest = check_backup(&folder, depth).map_err(not_done)?;
                output
                    .result(&object(&folder, &manifest), || describe(&folder, &manifest, "is whole; it has"))
            }
            StoreCommand::Restore { folder, place } => {
                let config = place.load()?;
                let manifest = restore(&config, &folder).map_err(not_done)?;
                let problem = Sealing::look(&config).map_err(not_done)?.problem();
                let mut object = object(&folder, &manifest);
                object["sealing_problem"] = json!(problem);
                output.result(&object, || {
                    with_problem(&describe(&folder, &manifest, "is put back; it has"), problem)
                })
            }
            StoreCommand::Copy(copy) => copy.run(output).await,
            StoreCommand::Migrate(migrate) => migrate.run(output).await,
        }
    }
}

/// Makes a backup and shows its progress.
async fn with_progress(config: Config, folder: PathBuf) -> anyhow::Result<BackupManifest> {
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let copy = store_file(&folder);
    let mut progress = PhaseProgress::start("bytes", bytes(&store_file(&config.data_dir)));
    let mut work = tokio::task::spawn_blocking(move || back_up(&config, &folder));
    let done = loop {
        match tokio::time::timeout(LOOK_EVERY, &mut work).await {
            Ok(done) => break done.context("the backup broke off")?,
            Err(_) => progress.update(bytes(&copy)),
        }
    };
    progress.finish(bytes(&copy));
    done.map_err(not_done)
}

fn not_done(error: AppError) -> anyhow::Error {
    CommandFailure::not_done(error.to_string()).into()
}

fn object(folder: &Path, manifest: &BackupManifest) -> Value {
    json!({"folder": folder, "taken_at": manifest.taken_at, "version": manifest.version, "files": manifest.files})
}

fn describe(folder: &Path, manifest: &BackupManifest, is: &str) -> String {
    let rows = manifest.files.iter().map(|file| [file.name.clone(), thousands(file.bytes)]);
    let list = table(["file", "bytes"], rows);
    format!("{} {is} {}, version {}\n{list}", folder.display(), manifest.taken_at, manifest.version)
}

fn with_problem(text: &str, problem: Option<String>) -> String {
    problem.map_or_else(|| text.to_owned(), |problem| format!("{text}\n\n{problem}"))
}
