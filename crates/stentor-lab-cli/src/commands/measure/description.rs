//! A comparison as text and as an object for programs.

use serde_json::{Value, json};
use stentor_lab::comparison::{Comparison, describe};

/// Returns the comparison for programs.
pub(super) fn object(comparison: &Comparison) -> Value {
    json!({
        "ok": comparison.is_complete(),
        "candidates": comparison.summaries(),
        "link": comparison.link,
        "rig": comparison.environment.rig,
        "seed": comparison.seed,
        "forks": comparison.forks,
        "uncounted": comparison.uncounted().count(),
        "environment": comparison.environment,
    })
}

/// Describes the comparison for people.
pub(super) fn text(comparison: &Comparison) -> String {
    let mut lines = describe(comparison);
    let uncounted = comparison.uncounted().count();
    if uncounted > 0 {
        lines.push(format!(
            "{uncounted} attempts do not count; the machine may be too busy (--html FILE lists the reasons)"
        ));
    }
    if !comparison.is_complete() {
        lines.push("a candidate has fewer than two forks that count: repeat on a quieter machine".to_owned());
    }
    lines.join("\n")
}
