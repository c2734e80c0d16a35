//! The same figures as Markdown, for a repository.

use super::{Measured, Report, tables};
use crate::document::Table;

/// Writes a report's tables.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let study = &report.study;
    let scenarios: Vec<&Measured> = report.scenarios.iter().collect();
    let mut parts = vec![
        format!("# {}, run again", study.id),
        section("Verdicts", &tables::claims(&report.judged())),
        section("Pushes per second", &tables::rates(&scenarios)),
        section("Little's law", &tables::little(&scenarios)),
        section("Proof", &tables::proof(&scenarios)),
        section("Cost", &tables::costs(&scenarios)),
    ];
    for (group, cells) in super::page::groups(report) {
        parts.push(section(&group.title, &tables::group(&cells)));
        parts.push(section("Answers", &tables::answers(&report.judged(), &group.id)));
    }
    parts.push(section("Runs that do not count", &tables::uncounted(report)));
    parts.push(section("Where and how this was measured", &tables::provenance(&report.provenance)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn section(title: &str, table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    format!("## {title}\n\n{}", table.markdown())
}
