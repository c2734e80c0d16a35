//! What the phases of a kill suite came to, side by side and together.

use crate::demo::report::Report;
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

/// What is known so far.
#[derive(Default)]
pub(super) struct Tally {
    /// Each phase with its object, and its text.
    phases: Vec<(Value, String)>,
    skipped: Vec<Value>,
}

impl Tally {
    /// Notes a phase that came to its end, or broke off.
    pub(super) fn note(&mut self, phase: &str, report: anyhow::Result<Report>) {
        let (mut object, text) = match report {
            Ok(report) => (report.object(), report.describe()),
            Err(error) => {
                let sentence = format!("broken off: {error:#}");
                (json!({"ok": false, "broken": [sentence]}), sentence)
            }
        };
        object["phase"] = phase.into();
        self.phases.push((object, format!("phase {phase}\n\n{text}")));
    }

    /// Notes a phase that cannot be made here.
    pub(super) fn skip(&mut self, phase: &str, reason: String) {
        self.skipped.push(json!({"what": phase, "reason": reason}));
    }

    /// Tells whether there were phases, and all proofs hold.
    pub(super) fn holds(&self) -> bool {
        !self.phases.is_empty() && self.all(|phase| phase["ok"] == true)
    }

    /// The report as one object: the sums, and each phase.
    pub(super) fn object(&self, seed: u64) -> Value {
        let mut object = Map::new();
        object.insert("ok".to_owned(), self.holds().into());
        for field in SUMS {
            object.insert(field.to_owned(), self.sum(field).into());
        }
        object.insert("ledger_duplicate_bound".to_owned(), self.sum(BOUND).into());
        object.insert("duplicate_bound".to_owned(), self.duplicate_bound().into());
        object
            .insert("ledger_balanced".to_owned(), self.all(|phase| phase["ledger_balanced"] == true).into());
        object.insert("seed".to_owned(), seed.into());
        object.insert("phases".to_owned(), self.phases.iter().map(|(object, _)| object.clone()).collect());
        object.insert("skipped".to_owned(), self.skipped.clone().into());
        object.into()
    }

    /// The phases as text, and the sums in a line.
    pub(super) fn describe(&self) -> String {
        let mut parts: Vec<String> = self.phases.iter().map(|(_, text)| text.clone()).collect();
        parts.extend(
            self.skipped
                .iter()
                .map(|skipped| format!("skipped: {}: {}", said(&skipped["what"]), said(&skipped["reason"]))),
        );
        parts.push(format!(
            "all phases: {} lost, {} stuck, {} duplicates of at most {} ({} by the ledgers, the others were never answered), \
             the books {}",
            self.sum("lost"),
            self.sum("stuck"),
            self.sum("duplicates"),
            self.duplicate_bound(),
            self.sum(BOUND),
            if self.all(|phase| phase["ledger_balanced"] == true) { "balance" } else { "DO NOT BALANCE" }
        ));
        parts.join("\n\n")
    }

    fn all(&self, holds: impl Fn(&Value) -> bool) -> bool {
        self.phases.iter().all(|(phase, _)| holds(phase))
    }

    /// Gives how many duplicates there may be: those that the ledgers allow for, and those whose first request a killed or
    /// stalled emulator took and never answered.
    fn duplicate_bound(&self) -> u64 {
        self.sum(BOUND) + self.sum("unanswered_duplicates")
    }

    fn sum(&self, field: &str) -> u64 {
        self.phases.iter().filter_map(|(phase, _)| phase[field].as_u64()).sum()
    }
}

fn said(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
