//! The same account as Markdown, for a repository.

use super::features::features;
use super::interruptions::interruptions;
use super::payloads::overhead;
use super::phases::{footnote, phases};
use super::sizes::sizes;
use super::{Account, Results, tables};
use crate::document::Table;

/// Writes an account's tables.
#[must_use]
pub fn markdown(account: &Account) -> String {
    let results = &account.results;
    let title = results.dossier.as_ref().map_or_else(
        || format!("# {}\n", results.study),
        |dossier| {
            let paper = dossier.paper();
            format!("# {}, run again\n\n{}: *{}* ({})\n", paper.id, paper.authors, paper.title, paper.year)
        },
    );
    let mut parts = vec![
        title,
        results.not_timed().map_or_else(String::new, |told| format!("**{told}**\n")),
        section("Verdicts", &tables::claims(account)),
        section("Features, by probes", &features(results)),
        section("Sizes beside the paper's", &sizes(results)),
        section("Interrupted half way", &interruptions(results)),
        section("Every cell", &tables::cells(results)),
        section("Bytes as the paper counts them, and the whole exchange", &overhead(results)),
        by_phase(results),
    ];
    for (name, table) in tables::effects(results) {
        parts.push(section(&format!("What matters: {name}"), &table));
    }
    parts.push(section("Forks that do not count", &tables::uncounted(results)));
    parts.push(section("Not tested here", &tables::not_here(account)));
    if !account.remarks.differences.is_empty() {
        let lines: Vec<String> = account.remarks.differences.iter().map(|one| format!("- {one}")).collect();
        parts.push(format!("## Differences from the paper\n\n{}\n", lines.join("\n")));
    }
    parts.push(section("Software", &tables::software(results)));
    parts.push(section("Where and how", &tables::environment(results)));
    if !account.remarks.command.is_empty() {
        parts.push(format!("## Run it again\n\n```sh\n{}\n```\n", account.remarks.command));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn section(title: &str, table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    format!("## {title}\n\n{}\n", table.markdown())
}

fn by_phase(results: &Results) -> String {
    let table = phases(results);
    let (text, below) = (section("Phases", &table), footnote(&table));
    if below.is_empty() { text } else { format!("{text}\n{}\n", below) }
}
