//! Common parts of commands on links and clocks: the refusal by this machine, and a table of checks.

use stentor_rig::RigError;
use stentor_rig::check::Check;
use stentor_terminal::failure::{CommandFailure, Exit};
use stentor_terminal::output::ledger;

/// Returns the error of a command; it has an exit code of its own if this machine lacks an ability.
pub(super) fn refusal(error: RigError) -> anyhow::Error {
    match error {
        RigError::NoLevel { .. } | RigError::NoLimits { .. } => {
            CommandFailure::new(Exit::NotTestable, format!("this cannot be tested here: {error}")).into()
        }
        RigError::Io(_) => error.into(),
    }
}

/// Returns checks as a table.
pub(super) fn checks(checks: &[Check]) -> String {
    let header = ["check", "measured", "wanted", "bound", "unit", "", "note"];
    let rows = checks.iter().map(|check| {
        [
            check.name.clone(),
            number(check.measured),
            number(check.wanted),
            format!("±{}", number(check.bound)),
            check.unit.to_owned(),
            if check.ok { "ok" } else { "NOT OK" }.to_owned(),
            check.note.clone(),
        ]
    });
    ledger(header, rows)
}

fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
