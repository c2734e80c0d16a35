//! The price that another app pays for unfinished requests, at every kind of entry point.

mod attack;
mod entry;
mod setting;

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use stentor_stage::reporter::Reporter;

use attack::Pressure;
pub(crate) use entry::{AttackKind, AttackedEntry, CredentialKind, ENTRY_POINTS};
use setting::LimitsStage;

/// Largest ratio of the other app's times beside an attack to those on an idle server.
const TIMES: f64 = 3.0;
/// Permitted further time, if the ratio is less than the noise of a machine.
const MARGIN_MS: f64 = 10.0;
/// Limit of measurements of a cell that does not hold. One slow flush of a shared disk is no effect of an attack; an attack's effect
/// repeats.
const TRIES_MAX_COUNT: u32 = 3;

/// The options of a run.
#[derive(Clone, Debug)]
pub(crate) struct LimitsOptions {
    /// The attacked entry points.
    pub(crate) entry_points: Vec<&'static AttackedEntry>,
    /// Credentials of the attacks.
    pub(crate) credentials: Vec<CredentialKind>,
    /// The attacks.
    pub(crate) attacks: Vec<AttackKind>,
    /// Connections of an attack, or streams of its one connection.
    pub(crate) connections: u64,
    /// Length of the measurement of the other app, for each cell.
    pub(crate) span: Duration,
}

/// One attack at one entry point.
pub(crate) struct LimitsCell {
    pub(crate) entry_point: &'static str,
    pub(crate) credential: CredentialKind,
    pub(crate) attack: AttackKind,
    /// The 99th percentiles of the time from the request to the 202, beside the attack and before it.
    pub(crate) victim_p99_ms: f64,
    pub(crate) idle_p99_ms: f64,
    /// Requests of the other app that got another answer than 202.
    pub(crate) refused: u64,
    /// The server's memory at the end of the attack.
    pub(crate) rss_mb: f64,
}

/// All cells.
pub(crate) struct LimitsReport(pub(crate) Vec<LimitsCell>);

/// Runs the bench and returns the report.
pub(crate) async fn run(
    options: &LimitsOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<LimitsReport> {
    let mut stage = LimitsStage::build().await?;
    stage.measure(options.span).await?;
    let mut cells = Vec::new();
    for &entry_point in &options.entry_points {
        let (mut idle, _) = stage.measure(options.span).await?;
        for &credential in &options.credentials {
            for &attack in &options.attacks {
                let case = AttackCase { entry_point, credential, attack };
                let mut tries = 0;
                let cell = loop {
                    let Some(cell) = measure(&mut stage, options, case, p99(&idle)).await? else {
                        break None;
                    };
                    tries += 1;
                    if cell.holds() || tries == TRIES_MAX_COUNT {
                        break Some(cell);
                    }
                    (idle, _) = stage.measure(options.span).await?;
                };
                if let Some(cell) = cell {
                    reporter.line(&cell.line());
                    cells.push(cell);
                }
            }
        }
    }
    Ok(LimitsReport(cells))
}

/// An attack, its credential and its target.
#[derive(Clone, Copy)]
struct AttackCase {
    entry_point: &'static AttackedEntry,
    credential: CredentialKind,
    attack: AttackKind,
}

/// Measures the other app beside an attack; returns `None` if the attack does not apply to the entry point.
async fn measure(
    stage: &mut LimitsStage,
    options: &LimitsOptions,
    case: AttackCase,
    idle_p99_ms: f64,
) -> anyhow::Result<Option<LimitsCell>> {
    let AttackCase { entry_point, credential, attack } = case;
    let Some(bytes) = stage.bytes(entry_point, credential, attack, options.connections)? else {
        return Ok(None);
    };
    let pressure = Pressure::begin(stage.address(entry_point)?, bytes)?;
    let (beside, refused) = stage.measure(options.span).await?;
    let rss_mb = stage.rss_mb()?;
    pressure.end();
    stage.check_alive()?;
    let (victim_p99_ms, entry_point) = (p99(&beside), entry_point.name);
    Ok(Some(LimitsCell { entry_point, credential, attack, victim_p99_ms, idle_p99_ms, refused, rss_mb }))
}

fn p99(times: &stentor_lab::statistics::Samples) -> f64 {
    times.quantile(0.99).unwrap_or(f64::NAN)
}

impl LimitsCell {
    /// Returns true if the other app was never refused and its time is within the limits; false if a time is missing.
    pub(crate) fn holds(&self) -> bool {
        self.refused == 0
            && self.victim_p99_ms <= (TIMES * self.idle_p99_ms).max(self.idle_p99_ms + MARGIN_MS)
    }

    fn line(&self) -> String {
        let Self { entry_point, credential, attack, victim_p99_ms, idle_p99_ms, rss_mb, .. } = self;
        let verdict = if self.holds() { "ok" } else { "NOT ok" };
        format!(
            "{entry_point}, {}, {}: {victim_p99_ms:.1} ms beside {idle_p99_ms:.1}, {rss_mb:.0} MB, {verdict}",
            credential.word(),
            attack.word()
        )
    }

    fn object(&self) -> Value {
        json!({
            "entry_point": self.entry_point,
            "credential": self.credential.word(),
            "attack": self.attack.word(),
            "victim_p99_ms": self.victim_p99_ms,
            "idle_p99_ms": self.idle_p99_ms,
            "refused": self.refused,
            "rss_mb": self.rss_mb,
            "ok": self.holds(),
        })
    }
}

impl LimitsReport {
    /// Returns true if every cell holds.
    pub(crate) fn holds(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(LimitsCell::holds)
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let cells: Vec<_> = self.0.iter().map(LimitsCell::object).collect();
        json!({"cells": cells, "ok": self.holds()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_when_nobody_is_refused_and_three_times_are_not_exceeded() {
        let cell = |victim_p99_ms, refused| LimitsCell {
            entry_point: "POST /token",
            credential: CredentialKind::None,
            attack: AttackKind::HalfBody,
            victim_p99_ms,
            idle_p99_ms: 20.0,
            refused,
            rss_mb: 1.0,
        };
        assert!(cell(60.0, 0).holds() && !cell(60.1, 0).holds() && !cell(1.0, 1).holds());
        assert!(!cell(f64::NAN, 0).holds());
        assert!(!LimitsReport(Vec::new()).holds());
        let object = LimitsReport(vec![cell(1.0, 0)]).object();
        assert_eq!((&object["ok"], &object["cells"][0]["credential"]), (&json!(true), &json!("none")));
    }
}
