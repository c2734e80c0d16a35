//! The same figures as Markdown, for a repository.

use super::tables::{self, Table};
use super::{Measured, Report};

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
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let header: Vec<String> = table.header.iter().map(|&name| name.to_owned()).collect();
    let rule: Vec<String> = table.header.iter().map(|_| "---".to_owned()).collect();
    let rows = table.rows.iter().map(|row| {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        line(&cells)
    });
    let lines: Vec<String> = [line(&header), line(&rule)].into_iter().chain(rows).collect();
    format!("## {title}\n\n{}", lines.join("\n"))
}
