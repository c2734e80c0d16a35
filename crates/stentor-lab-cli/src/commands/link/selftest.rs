//! `stentor lab link selftest`: a comparison of the link with the counts of probes and of other tools.

use crate::commands::rig::{checks, refusal};
use anyhow::Context;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use stentor_rig::RigLevel;
use stentor_rig::check::Check;
use stentor_rig::lateness::Lateness;
use stentor_rig::selftest::STEPS;
use stentor_terminal::output::{Output, note};
use stentor_terminal::progress::PhaseProgress;

/// Test delay, jitter, rate, loss, byte counts and lateness of the link engine
///
/// The exit code is 0 if every check is within its bound, 1 if one is not or the engine was late, 6 if this machine allows no namespaces or
/// TUN devices.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  stentor lab link selftest\n  stentor lab link selftest --seed 7 --json")]
pub(super) struct LinkSelftestArgs {
    /// Seed of the losses and delays of packets
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Findings of all steps.
#[derive(Default)]
struct LinkFindings {
    checks: Vec<Check>,
    invalid: Vec<String>,
    worst: Lateness,
}

impl LinkSelftestArgs {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let seed = self.seed;
        let findings =
            tokio::task::spawn_blocking(move || make(seed)).await.context("the self-test broke off")??;
        let within_bounds = findings.invalid.is_empty() && findings.checks.iter().all(|check| check.ok);
        let object = json!({
            "within_bounds": within_bounds,
            "rig": RigLevel::Netns,
            "seed": seed,
            "invalid": findings.invalid,
            "lateness": findings.worst,
            "checks": findings.checks,
        });
        output.result(&object, || text(&findings, within_bounds))?;
        Ok(ExitCode::from(u8::from(!within_bounds)))
    }
}

fn make(seed: u64) -> anyhow::Result<LinkFindings> {
    let mut findings = LinkFindings::default();
    let mut progress = PhaseProgress::start("link", STEPS.len() as u64);
    for (done, step) in STEPS.iter().enumerate() {
        progress.update(done as u64);
        let outcome = step.make(seed).map_err(refusal)?;
        if outcome.lateness.max_ns > findings.worst.max_ns {
            findings.worst = outcome.lateness;
        }
        findings.invalid.extend(outcome.invalid.map(|complaint| format!("{}: {complaint}", step.name)));
        findings.checks.extend(outcome.checks);
    }
    progress.finish(STEPS.len() as u64);
    if !findings.checks.iter().any(|check| check.name.contains("tshark")) {
        note("tshark is not installed: bytes are compared with the kernel's counters only");
    }
    Ok(findings)
}

fn text(findings: &LinkFindings, within_bounds: bool) -> String {
    let mut text = checks(&findings.checks);
    for complaint in &findings.invalid {
        text.push_str(&format!("\nnot valid: {complaint} (three attempts; is the machine busy?)"));
    }
    let verdict = if within_bounds { "within bounds" } else { "NOT within bounds" };
    text.push_str(&format!("\n\nThe link is {verdict}; worst lateness of its engine: {}.", findings.worst));
    text
}
