//! `stentor lab selftest power`: how often methods of verdicts decide, and how often wrongly, in simulated studies.

use anyhow::Context;
use clap::Args;
use std::process::ExitCode;
use stentor_lab::power::{LookedCell, PowerCell, PowerFindings, VerdictMethod, kinds, simulate};
use stentor_terminal::output::{Output, ledger};
use stentor_terminal::progress::PhaseProgress;

/// Percent of a whole.
const PERCENT: f64 = 100.0;

/// Simulate studies with a known truth, and count the right and the wrong verdicts of each method
///
/// All methods judge the same studies: two sides with 3 to 30 forks each, 4 % between forks, nothing or 5 % in common between both sides of a
/// round, and true ratios from 1 to 1.3. A verdict is wrong if one side counts as surely more than 5 % above the other, and is not.
///
/// The exit code is 0 if the chosen method keeps its level and its least power, 1 if it does not.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  stentor lab selftest power\n  stentor lab selftest power --studies 2000 --json"
)]
pub(super) struct PowerSelftestArgs {
    /// Simulated studies of each kind
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1_000..=1_000_000))]
    studies: u32,
    /// Seed of the studies
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl PowerSelftestArgs {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let made = tokio::task::spawn_blocking(move || self.make()).await;
        let findings = made.context("the simulation broke off")?;
        output.result(&serde_json::to_value(&findings)?, || text(&findings))?;
        Ok(ExitCode::from(u8::from(!findings.ok)))
    }

    fn make(&self) -> PowerFindings {
        let count = kinds().len() as u64;
        let mut progress = PhaseProgress::start("power", count);
        let findings = simulate(self.studies as usize, self.seed, |done| progress.update(done as u64));
        progress.finish(count);
        findings
    }
}

/// Writes one line for each kind of study, with the shares of all methods: decided, and in parentheses wrong.
fn text(findings: &PowerFindings) -> String {
    let [intervals, welch, mixed, rounds, combined] = VerdictMethod::ALL.map(VerdictMethod::word);
    let header = ["claims", "round sd, %", "forks", "true ratio", intervals, welch, mixed, rounds, combined];
    let mut lines: Vec<&[PowerCell]> = findings.cells.chunks(VerdictMethod::ALL.len()).collect();
    lines.sort_by_key(|line| line.first().map(|cell| cell.claims));
    let table = ledger(header, lines.into_iter().filter_map(row));
    let verdict = if findings.ok { "keeps" } else { "DOES NOT KEEP" };
    let objections: Vec<String> =
        findings.objections.iter().map(|objection| format!("\n{objection}")).collect();
    format!(
        "Decided in % of {} studies of each kind, and wrong in parentheses:\n{table}\n\nRuns that add rounds until their comparison is \
         settled, in %:\n{}\n\nThe chosen method, {}, {verdict} its level and its least power.{}",
        findings.studies,
        looked(&findings.looked),
        findings.chosen,
        objections.concat()
    )
}

/// Writes one line for each kind of run with looks.
fn looked(cells: &[LookedCell]) -> String {
    let header =
        ["claims", "round sd, %", "true ratio", "decided (wrong)", "10 % excluded", "rounds on average"];
    let mut cells: Vec<&LookedCell> = cells.iter().collect();
    cells.sort_by_key(|cell| cell.claims);
    let rows = cells.into_iter().map(|cell| {
        [
            cell.claims.to_string(),
            format!("{:.0}", cell.round_sd * PERCENT),
            format!("{:.2}", cell.true_ratio),
            format!("{:.1} ({:.2})", cell.decided * PERCENT, cell.wrong * PERCENT),
            format!("{:.1}", cell.excluded * PERCENT),
            format!("{:.1}", cell.rounds_mean),
        ]
    });
    ledger(header, rows)
}

fn row(cells: &[PowerCell]) -> Option<[String; 9]> {
    let shares = |cell: &PowerCell| format!("{:.1} ({:.2})", cell.decided * PERCENT, cell.wrong * PERCENT);
    let [intervals, welch, mixed, rounds, combined] = cells else { return None };
    Some([
        intervals.claims.to_string(),
        format!("{:.0}", intervals.round_sd * PERCENT),
        intervals.forks.to_string(),
        format!("{:.2}", intervals.true_ratio),
        shares(intervals),
        shares(welch),
        shares(mixed),
        shares(rounds),
        shares(combined),
    ])
}
