//! The same account as Markdown, for a repository.

use super::features::features;
use super::interruptions::interruptions;
use super::overhead::overhead;
use super::phases::{footnote, phases};
use super::sizes::sizes;
use super::{Account, Results, breakdown, tables};
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
        section_with("Verdicts", &judged_at(account), &tables::claims(account)),
        section("Features, by probes", &features(results)),
        section("Sizes beside the paper's", &sizes(results)),
        section("Interrupted half way", &interruptions(results)),
        section("Every cell", &tables::cells(results)),
        section("Bytes as the paper counts them, and the whole exchange", &overhead(results)),
        by_phase(results),
    ];
    let layers = "Both ways, of a whole exchange; of a synchronisation in pages all pages together. Payload is the values as text.";
    parts.extend([
        section_with("Bytes of an exchange", layers, &breakdown::bytes(results)),
        section("Processor time and memory of each side", &breakdown::costs(results)),
        section("Energy", &breakdown::energy(results)),
    ]);
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

fn judged_at(account: &Account) -> String {
    account.verdicts.as_ref().map(super::Verdicts::judged_at).unwrap_or_default()
}

fn section(title: &str, table: &Table) -> String {
    section_with(title, "", table)
}

fn section_with(title: &str, words: &str, table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let words = if words.is_empty() { String::new() } else { format!("{words}\n\n") };
    format!("## {title}\n\n{words}{}\n", table.markdown())
}

fn by_phase(results: &Results) -> String {
    let table = phases(results);
    let words = "Medians; where points come in pages, of a single page.";
    let (text, below) = (section_with("Phases", words, &table), footnote(&table));
    if below.is_empty() { text } else { format!("{text}\n{}\n", below) }
}
