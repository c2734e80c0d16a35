//! `stentor doctor`: checks everything that a server needs and gives advice.

mod checks;

use crate::connection::ConnectionArgs;
use crate::output::{Output, table};
use checks::{FindingHealth, ServerFinding};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_node::Depth;

/// Check database, queue, credentials, clock, file limits and free disk, and give advice
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor doctor
  stentor doctor --data-dir /var/lib/stentor --server http://127.0.0.1:8686
  stentor doctor --deep

Reads every page of the database and the queue, also while a server uses them. It writes nothing and blocks no other process, but
the write-ahead log grows while it reads. It does not detect a changed value in a page that is otherwise valid.

Exits 0 when nothing is broken; warnings do not count as broken.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Also compare every index with its table; takes several times as long
    #[arg(long)]
    deep: bool,
    /// The server's configuration file; it may name the file with the sealing key of credentials
    #[arg(long, value_name = "FILE", env = "STENTOR_CONFIG")]
    config: Option<PathBuf>,
    /// The monitoring URL of a nats-server (its http port), to check whether acknowledged data is on its disk
    #[arg(long, value_name = "URL")]
    nats_monitor: Option<String>,
}

impl DoctorArgs {
    /// Runs every check and reports.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let depth = if self.deep { Depth::Deep } else { Depth::Quick };
        let mut findings = checks::all(&self.connection, self.config.as_deref(), depth).await;
        findings.extend(checks::transport(self.config.as_deref(), self.nats_monitor.as_deref()).await);
        let broken = findings.iter().any(|finding| finding.health == FindingHealth::Broken);
        let list: Vec<Value> = findings.iter().map(ServerFinding::object).collect();
        output.result(&json!({"ok": !broken, "checks": list}), || describe(&findings))?;
        Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn describe(findings: &[ServerFinding]) -> String {
    let rows = findings.iter().map(|finding| {
        [finding.health.word().to_owned(), finding.subject.to_owned(), finding.detail.clone()]
    });
    let mut text = table(["", "what", "found"], rows);
    for finding in findings {
        if let Some(advice) = &finding.advice {
            text.push_str(&format!("\n\n{}: {advice}", finding.subject));
        }
    }
    text
}
