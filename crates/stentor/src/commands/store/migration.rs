//! `stentor store migrate`: applies steps of the schema manually.

use super::{DataArgs, not_done};
use crate::failure::CommandFailure;
use crate::output::Output;
use anyhow::Context;
use clap::Args;
use serde_json::json;
use stentor_node::{SchemaChange, SchemaGoal, migrate, store_place};

/// Migrate the schema to this version's, or one step back for an older version
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor store migrate --data-dir /var/lib/stentor
  stentor store migrate --config stentor.toml --back --json

A server migrates forward by itself at its start. Stop the server before this command, unless several servers use a PostgreSQL database:
a step that is compatible with the running servers is taken while they run. A step back is taken only if it can be undone without loss;
otherwise the command says why not and changes nothing, and the way back is a backup from before the upgrade.")]
pub(super) struct MigrateArgs {
    /// Go one step back, so that the version of Stentor before that step can use the store
    #[arg(long)]
    back: bool,
    #[command(flatten)]
    place: DataArgs,
}

impl MigrateArgs {
    /// Applies the steps.
    pub(super) async fn run(self, output: Output) -> anyhow::Result<()> {
        let place = store_place(&self.place.load()?).map_err(not_done)?;
        let goal = if self.back { SchemaGoal::OneBack } else { SchemaGoal::Newest };
        // A separate thread: the driver of PostgreSQL blocks in a way that the threads of a runtime refuse.
        let (done, changed) = tokio::sync::oneshot::channel();
        let work = move || {
            let _ = done.send(migrate(&place, goal));
        };
        std::thread::Builder::new().name("stentor-schema".to_owned()).spawn(work)?;
        let changed = changed.await.context("the step broke off")?;
        let SchemaChange { from, to } =
            changed.map_err(|error| CommandFailure::not_done(error.to_string()))?;
        output.result(&json!({"from": from, "to": to}), || match from == to {
            true => format!("the store has schema {to} already"),
            false => format!("the store has schema {to}; it had {from}"),
        })
    }
}
