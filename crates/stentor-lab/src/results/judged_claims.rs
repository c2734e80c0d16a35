//! The claims with their verdicts, one line each; sentences, comparisons and their certainty are shown on demand.

use super::grounds::{self, SettingGrounds};
use super::section::{SectionBlock, VerdictLine};
use super::tables::{columns, ordered};
use super::verdicts::ClaimFindings;
use super::{Account, Plot};
use crate::claims::ClaimVerdict;

const DETAILS: &str = "Sentence and comparisons";

/// Returns the blocks of all claims, contradicted ones first.
pub(super) fn blocks(account: &Account) -> Vec<SectionBlock> {
    ordered(account).into_iter().flat_map(|one| claim(account, one)).collect()
}

/// Returns a heading, a line for each verdict, and the details.
fn claim(account: &Account, one: &ClaimFindings) -> [SectionBlock; 3] {
    let statement = &one.judged.statement;
    let implied = if statement.implied { " (implied)" } else { "" };
    let found = found(account, one);
    let lines = found.iter().map(|(by, found)| VerdictLine {
        by: by.clone(),
        verdict: found.verdict,
        ground: found.headline.clone(),
    });
    let verdicts = SectionBlock::Verdicts(lines.collect());
    [
        SectionBlock::Heading(format!("{}: {}{implied}", statement.id, statement.text)),
        verdicts,
        SectionBlock::Folded(DETAILS.to_owned(), details(account, one, &found)),
    ]
}

/// Lists the findings on a claim, each with its column and its setting; first that of the paper's own data.
fn found(account: &Account, one: &ClaimFindings) -> Vec<(String, SettingGrounds)> {
    let published = &one.judged.published;
    let own = SettingGrounds {
        settings: String::new(),
        verdict: published.verdict,
        headline: grounds::headline(published),
        lines: grounds::of_judgment(published),
    };
    let mut found = vec![("the paper's own data".to_owned(), own)];
    for (period, column) in columns(account) {
        let each = grounds::by_setting(one, period).into_iter();
        found.extend(each.map(|found| (super::joined(&[column, &found.settings], ", "), found)));
    }
    found
}

fn details(account: &Account, one: &ClaimFindings, found: &[(String, SettingGrounds)]) -> Vec<SectionBlock> {
    let statement = &one.judged.statement;
    let quote = format!("“{}” ({})", statement.quote, statement.source);
    let told = found.iter().filter(|(_, found)| found.lines != [found.headline.as_str()]);
    let lines = told.map(|(by, found)| format!("{by}: {}", found.lines.join("; ")));
    vec![
        SectionBlock::Words(quote),
        SectionBlock::Words(statement.note.clone()),
        SectionBlock::List(lines.collect()),
        SectionBlock::Html(link(account, one)),
    ]
}

/// Returns a link to the plot that bears on a claim: of bytes, energy or cost if it concerns them, else of time.
fn link(account: &Account, one: &ClaimFindings) -> String {
    if matches!(one.best().verdict, ClaimVerdict::SetByExperiment | ClaimVerdict::NotTestable) {
        return String::new();
    }
    let checks = one.judged.statement.checks.join(" ");
    let wanted: &[&str] =
        if ["data_received", "data_sent", "file_size", "NDU", "POH"].iter().any(|word| checks.contains(word))
        {
            &["bytes"]
        } else if checks.contains("energy") || checks.contains("power") {
            &["energy"]
        } else if checks.contains("CPU") || checks.contains("memory") {
            &["costs"]
        } else {
            &["ratios", "size", "spread"]
        };
    let found = wanted
        .iter()
        .find_map(|prefix| account.plots.iter().find(|plot: &&Plot| plot.id.starts_with(prefix)));
    found.map_or_else(String::new, |plot| format!("<a href=\"#{}\">plot</a>", plot.id))
}
