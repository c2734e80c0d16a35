//! `stentor lab features`: the tables of features of GCM and FCM, each cell by an exchange with a server of our own.

use std::process::ExitCode;

use crate::features::{self, FeatureRow};
use clap::Args;
use serde_json::json;

use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::on_the_terminal;

/// Try the features of GCM and FCM at our own server, with devices connected
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab features
  stentor lab features --json

Starts a server on a folder of its own and tries each feature once through the front of each service: the legacy HTTP API and CCS
for GCM, the HTTP v1 API and CCS for FCM. Devices of the server's gateway are connected over Server-Sent Events and get the
message, or do not. Each cell is YES or NO with the observation. The tables are about our server, not about Google's. Exits 0 when
all trials were made, with any answers.")]
pub(crate) struct FeaturesArgs {}

impl FeaturesArgs {
    /// Runs it.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let rows = features::run(&on_the_terminal()).await?;
        output.result(&json!({"features": rows}), || {
            table(["feature", "service", "there", "observation"], rows.iter().map(shown))
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(row: &FeatureRow) -> [String; 4] {
    [row.feature.to_owned(), row.service.name().to_owned(), row.answer.to_owned(), row.seen.clone()]
}
