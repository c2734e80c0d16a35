//! `stentor lab clock selftest`: one-way delay by two methods, beside the true one.

use super::party;
use crate::commands::rig::{checks, refusal};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::process::{Command, ExitCode};
use stentor_rig::RigLevel;
use stentor_rig::check::Check;
use stentor_rig::clock::party::Protocol;
use stentor_rig::clock::trial::{ClockTrial, Findings};
use stentor_terminal::output::{Output, ledger, note};
use stentor_terminal::progress::PhaseProgress;

/// Test the estimate of one-way delay against the truth
///
/// A phone and a server, each in a time namespace with a clock of its own, compare their clocks with a time server over the link, by the
/// protocol of albertengo-2020, and exchange messages. The one-way delay is estimated by the paper's mean of 100 offsets, and by the
/// shortest round trips before and after each block. Both estimates are printed beside the true delay, once with equal ways, and once with
/// a way back that takes up to 30 ms longer.
///
/// The exit code is 0 if every check is within its bound, 1 if one is not, 6 if this machine allows no link.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  stentor lab clock selftest\n  stentor lab clock selftest --full --json")]
pub(super) struct ClockSelftestArgs {
    /// The paper's counts: 10 tests of 500 messages, one each 500 ms; about 90 minutes
    #[arg(long)]
    full: bool,
    /// Seed of the delays of packets
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Result of one setup.
struct SelftestResult {
    setup: ClockTrial,
    findings: Findings,
    checks: Vec<Check>,
}

impl ClockSelftestArgs {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let protocol = if self.full { Protocol::PAPER } else { Protocol::QUICK };
        let seed = self.seed;
        let results =
            tokio::task::spawn_blocking(move || make(protocol, seed)).await.context("it broke off")??;
        let all: Vec<&Check> = results.iter().flat_map(|result| &result.checks).collect();
        let within_bounds = all.iter().all(|check| check.ok);
        let object = json!({
            "within_bounds": within_bounds,
            "rig": RigLevel::Netns,
            "seed": seed,
            "checks": all,
            "setups": results.iter().map(object).collect::<Vec<_>>(),
        });
        output.result(&object, || text(&results, within_bounds))?;
        Ok(ExitCode::from(u8::from(!within_bounds)))
    }
}

fn make(protocol: Protocol, seed: u64) -> anyhow::Result<Vec<SelftestResult>> {
    // Resolved once before the trial, where an error could not be returned.
    let command = |party_orders: &_| party::command(party_orders).unwrap_or_else(|_| Command::new("stentor"));
    let setups = [ClockTrial::symmetric(protocol, seed), ClockTrial::asymmetric(protocol, seed)];
    let messages = u64::from(protocol.tests * protocol.blocks * protocol.messages);
    let mut results = Vec::new();
    for setup in setups {
        let mut progress = PhaseProgress::start(setup.name, messages);
        let findings = setup.make(command, |sent| progress.update(sent)).map_err(refusal)?;
        progress.finish(messages);
        if !findings.in_time_namespaces {
            note("there are no time namespaces here: both parties set their clocks ahead themselves");
        }
        let checks = setup.checks(&findings);
        results.push(SelftestResult { setup, findings, checks });
    }
    Ok(results)
}

fn object(result: &SelftestResult) -> Value {
    json!({
        "name": result.setup.name,
        "link": result.setup.link,
        "phone_ahead_ns": result.setup.phone_offset_ns,
        "server_ahead_ns": result.setup.server_offset_ns,
        "server_fast_ppb": result.setup.server_fast_ppb,
        "findings": result.findings,
    })
}

fn text(results: &[SelftestResult], within_bounds: bool) -> String {
    let mut text = String::new();
    for result in results {
        text.push_str(&format!("One-way delay to the server in ms, {}:\n", result.setup.name));
        let header = ["test", "block", "true", "by shortest", "bound", "by the paper's mean", "round trip"];
        let rows = result.findings.blocks.iter().map(|block| {
            [
                (block.test + 1).to_string(),
                (block.block + 1).to_string(),
                format!("{:.3}", block.true_ms),
                format!("{:.3}", block.shortest_ms),
                format!("±{:.3}", block.bound_ms),
                format!("{:.3}", block.paper_ms),
                format!("{:.3}", block.round_trip_ms),
            ]
        });
        text.push_str(&ledger(header, rows));
        text.push_str("\n\n");
    }
    let all: Vec<Check> = results.iter().flat_map(|result| result.checks.clone()).collect();
    text.push_str(&checks(&all));
    let [drift, verdict] = [
        "The server's speed is applied where its process reads the clock of its time namespace.",
        if within_bounds { "The clock is within bounds." } else { "The clock is NOT within bounds." },
    ];
    text.push_str(&format!("\n\n{drift}\n{verdict}"));
    text
}
