//! The results of the phases of a kill suite, side by side and together.

use crate::demo::{DemoReport, rounded};
use serde_json::{Map, Value, json};

/// Numbers that are the sum of those of all phases.
const SUMS: [&str; 12] = [
    "devices",
    "accepted",
    "rejected",
    "lost",
    "stuck",
    "disagreeing",
    "duplicates",
    "unmarked_duplicates",
    "unanswered_duplicates",
    "kills",
    "emulator_kills",
    "stalls",
];

/// The bound that a phase's ledger states.
const BOUND: &str = "duplicate_bound";

/// A phase that came to its end, or broke off.
pub struct PhaseReport {
    /// Its name.
    pub phase: &'static str,
    /// Its report as an object.
    pub object: Value,
    /// Its report, or why it broke off.
    pub ended: Result<Box<DemoReport>, String>,
}

/// The results so far.
#[derive(Default)]
pub struct KillReport {
    phases: Vec<PhaseReport>,
    skipped: Vec<Value>,
}

impl KillReport {
    /// Adds a phase that was completed or broken off.
    pub fn note(&mut self, phase: &'static str, report: anyhow::Result<DemoReport>) {
        let (mut object, ended) = match report {
            Ok(report) => (report.object(), Ok(Box::new(report))),
            Err(error) => {
                let sentence = format!("broken off: {error:#}");
                (json!({"ok": false, "broken": [sentence]}), Err(sentence))
            }
        };
        object["phase"] = phase.into();
        self.phases.push(PhaseReport { phase, object, ended });
    }

    /// Adds a phase that cannot be run here.
    pub fn skip(&mut self, phase: &str, reason: String) {
        self.skipped.push(json!({"what": phase, "reason": reason}));
    }

    /// Returns true if there were phases, and all proofs hold.
    pub fn holds(&self) -> bool {
        !self.phases.is_empty() && self.all(|phase| phase["ok"] == true)
    }

    /// The report as one object: the sums, and each phase.
    pub fn object(&self, seed: u64) -> Value {
        let mut object = Map::new();
        object.insert("ok".to_owned(), self.holds().into());
        for field in SUMS {
            object.insert(field.to_owned(), self.known(self.sum(field)));
        }
        object.insert("ledger_duplicate_bound".to_owned(), self.known(self.ledger_duplicate_bound()));
        object.insert("duplicate_bound".to_owned(), self.known(self.duplicate_bound()));
        object.insert("duplicates_per_kill".to_owned(), self.duplicates_per_kill().map(rounded).into());
        object.insert("ledger_balanced".to_owned(), self.known(self.is_balanced()));
        object.insert("seed".to_owned(), seed.into());
        object.insert("phases".to_owned(), self.phases.iter().map(|phase| phase.object.clone()).collect());
        object.insert("skipped".to_owned(), self.skipped.clone().into());
        object.into()
    }

    /// The phases that were run.
    pub fn phases(&self) -> &[PhaseReport] {
        &self.phases
    }

    /// The phases that were skipped, each with `what` and `reason`.
    pub fn skipped(&self) -> &[Value] {
        &self.skipped
    }

    /// Returns the maximum number of duplicates by the ledgers of all phases.
    pub fn ledger_duplicate_bound(&self) -> u64 {
        self.sum(BOUND)
    }

    /// Returns true if the books of all phases balanced.
    pub fn is_balanced(&self) -> bool {
        self.all(|phase| phase["ledger_balanced"] == true)
    }

    /// Returns the value for all phases, or null if there was no phase.
    fn known(&self, value: impl Into<Value>) -> Value {
        if self.phases.is_empty() { Value::Null } else { value.into() }
    }

    /// Returns the duplicates of the phases in which the server was killed, for each of its kills; `None` without kills.
    fn duplicates_per_kill(&self) -> Option<f64> {
        let sum = |field| self.sum_where(field, |phase| phase["kills"].as_u64() > Some(0));
        let kills = sum("kills");
        (kills > 0).then(|| sum("duplicates") as f64 / kills as f64)
    }

    fn all(&self, holds: impl Fn(&Value) -> bool) -> bool {
        self.phases.iter().all(|phase| holds(&phase.object))
    }

    /// Returns the maximum number of duplicates, by the rule of each phase: the bound of its ledger, and in phases with killed emulators
    /// the duplicates that follow an accepted but unanswered request.
    pub fn duplicate_bound(&self) -> u64 {
        self.ledger_duplicate_bound()
            + self.sum_where("unanswered_duplicates", |phase| phase["emulator_kills"].as_u64() > Some(0))
    }

    /// Adds a number of all phases up.
    pub fn sum(&self, field: &str) -> u64 {
        self.sum_where(field, |_| true)
    }

    fn sum_where(&self, field: &str, counts: impl Fn(&Value) -> bool) -> u64 {
        let phases = self.phases.iter().map(|phase| &phase.object).filter(|phase| counts(phase));
        phases.filter_map(|phase| phase[field].as_u64()).sum()
    }
}

#[cfg(test)]
mod tests;
