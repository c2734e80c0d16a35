//! `stentor lab bench limits`: the effect of unfinished requests on another app.

use crate::bench::limits::{
    self, AttackKind, AttackedEntry, CredentialKind, ENTRY_POINTS, LimitsOptions, LimitsReport,
};
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;
use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::on_the_terminal;
use stentor_terminal::value_names::one_of;

/// Leave requests unfinished at every kind of entry point, and compare another app's times with those on an idle server
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench limits
  stentor lab bench limits --entry-point 'POST /token' --attack zstd-head --json
  stentor lab bench limits --credential none --seconds 5 --json

Each cell is one attack at one entry point with one credential: N connections (--connections) begin a request and do not
continue it, and each is opened again when the server has closed it. At the same time another app sends single messages. A
cell is ok when none of them is refused and their 202 (p99) takes at most three times as long as before the attacks, or 10 ms longer if
that is more. Attacks that mean nothing at an entry point are left out. The attackers run in this program with a low priority.")]
pub(crate) struct LimitsArgs {
    /// Method and path, or a protocol, separated by commas; by default one of each kind
    #[arg(long, value_delimiter = ',', value_parser = entry_point)]
    entry_point: Vec<&'static AttackedEntry>,
    /// Credentials of the attacks, separated by commas; all by default
    #[arg(long, value_delimiter = ',', value_parser = one_of(&CredentialKind::ALL, CredentialKind::word, CredentialKind::meaning))]
    credential: Vec<CredentialKind>,
    /// Missing parts of the requests, separated by commas; all by default
    #[arg(long, value_delimiter = ',', value_parser = one_of(&AttackKind::ALL, AttackKind::word, AttackKind::meaning))]
    attack: Vec<AttackKind>,
    /// Connections of an attack; with `streams` these are streams, 256 on each connection
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    connections: u64,
    /// Duration of the measurement of the other app in each cell
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

fn entry_point(text: &str) -> Result<&'static AttackedEntry, String> {
    ENTRY_POINTS.iter().find(|one| one.name == text).ok_or_else(|| {
        let names: Vec<_> = ENTRY_POINTS.iter().map(|one| one.name).collect();
        format!("must be one of: {}", names.join(", "))
    })
}

impl LimitsArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let options = LimitsOptions {
            entry_points: match self.entry_point.is_empty() {
                true => ENTRY_POINTS.iter().collect(),
                false => self.entry_point,
            },
            credentials: if self.credential.is_empty() {
                CredentialKind::ALL.into()
            } else {
                self.credential
            },
            attacks: if self.attack.is_empty() { AttackKind::ALL.into() } else { self.attack },
            connections: self.connections,
            span: Duration::from_secs(self.seconds),
        };
        let report = limits::run(&options, &on_the_terminal()).await?;
        output.result(&report.object(), || describe(&report))?;
        Ok(super::exit(report.holds()))
    }
}

fn describe(LimitsReport(cells): &LimitsReport) -> String {
    let rows = cells.iter().map(|cell| {
        [
            cell.entry_point.to_owned(),
            cell.credential.word().to_owned(),
            cell.attack.word().to_owned(),
            format!("{:.1}", cell.idle_p99_ms),
            format!("{:.1}", cell.victim_p99_ms),
            format!("{:.0}", cell.rss_mb),
            if cell.holds() { "yes" } else { "no" }.to_owned(),
        ]
    });
    table(["entry point", "credential", "attack", "alone, ms", "beside, ms", "server, MB", "ok"], rows)
}
