//! Text of the verdicts: contradictions first, each with its evidence.

use super::ClaimsAccount;
use std::collections::BTreeMap;
use stentor_lab::claims::ClaimVerdict;
use stentor_lab::claims::agreement::CodingAgreement;
use stentor_lab::claims::judge::Judgment;
use stentor_lab::claims::{Analysis, Derived, Judged};
use stentor_terminal::output::table;

/// Limit of the contradicting cells that are shown for a claim.
const CELLS_MAX: usize = 3;
/// Percent of a whole.
const PERCENT: f64 = 100.0;

/// Returns the whole account as text.
pub(super) fn describe(account: &ClaimsAccount) -> String {
    let paper = account.dossier.paper();
    let (against, others): (Vec<_>, Vec<_>) = account.judged.iter().partition(|one| one.is_contradicted());
    let mut parts = vec![format!("{} ({}): {}\n{}", paper.id, paper.year, paper.title, paper.authors)];
    if !against.is_empty() {
        let heading =
            format!("Contradicted by the paper's own tables: {} of {}", against.len(), account.judged.len());
        let each = against.iter().map(|one| contradiction(one));
        parts.push(format!("{heading}\n\n{}", each.collect::<Vec<_>>().join("\n\n")));
    }
    parts.push(rest(&others));
    if !account.derived.is_empty() {
        parts.push(derived(&account.derived));
    }
    if !account.analyses.is_empty() {
        parts.push(effects(&account.analyses));
    }
    parts.extend(account.agreement.as_ref().map(coded_twice));
    parts.push(account.judged_at.clone());
    parts.push(changed(&account.judged));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn contradiction(one: &Judged) -> String {
    let statement = &one.statement;
    let mut lines = vec![format!("{}  {}", statement.id, statement.text)];
    let mut add = |name: &str, text: String| lines.push(format!("  {name:<7} {text}"));
    let quote = if statement.quote.is_empty() { String::new() } else { format!(" \"{}\"", statement.quote) };
    add("says", format!("{}{quote}", statement.source));
    add("tables", verdict_with_cells(&one.published));
    add("ours", ours(one));
    if !statement.note.is_empty() {
        add("note", statement.note.clone());
    }
    lines.join("\n")
}

fn verdict_with_cells(judgment: &Judgment) -> String {
    let failures: Vec<_> = judgment.failures().collect();
    let shown = failures.iter().take(CELLS_MAX).map(|one| {
        if one.cell.is_empty() { one.text.clone() } else { format!("{} ({})", one.text, values(&one.cell)) }
    });
    let more = failures.len().saturating_sub(CELLS_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let cells = shown.collect::<Vec<_>>().join("; ");
    let all = judgment.comparisons.len();
    format!("{} in {} of {all}: {cells}{more}", judgment.verdict.word(), failures.len())
}

/// Removes the names from a cell, and leaves its values.
fn values(cell: &str) -> String {
    let values: Vec<&str> =
        cell.split("; ").filter_map(|pair| pair.split_once('=')).map(|(_, value)| value).collect();
    values.join(", ")
}

fn ours(one: &Judged) -> String {
    let basis = Some(&one.statement.basis).filter(|basis| !basis.is_empty());
    let basis = basis.map(|basis| format!(" ({basis})")).unwrap_or_default();
    match &one.ours {
        None => "not run".into(),
        Some(judgment) if judgment.verdict == ClaimVerdict::DoesNotHold => {
            verdict_with_cells(judgment) + &basis + &graded(judgment)
        }
        Some(judgment) if judgment.verdict == ClaimVerdict::NotTestable => {
            let why = judgment.missing.as_ref().filter(|_| one.statement.about_paper);
            judgment.verdict.word().to_owned() + &why.map(|why| format!(": {why}")).unwrap_or_default()
        }
        Some(judgment)
            if matches!(judgment.verdict, ClaimVerdict::Undecided | ClaimVerdict::SetByExperiment) =>
        {
            let why = judgment.missing.as_ref().map(|why| format!(": {why}"));
            judgment.verdict.word().to_owned() + &why.unwrap_or_default() + &graded(judgment)
        }
        Some(judgment) => judgment.verdict.word().to_owned() + &basis + &graded(judgment),
    }
}

/// Returns the grade of a verdict and the difference that it could have seen.
fn graded(judgment: &Judgment) -> String {
    let grade = judgment.grade().filter(|grade| grade.of > 1).map(|grade| grade.to_string());
    let power = judgment.power.map(|power| power.to_string());
    let parts: Vec<String> = grade.into_iter().chain(power).collect();
    if parts.is_empty() { String::new() } else { format!(" [{}]", parts.join("; ")) }
}

fn rest(judged: &[&Judged]) -> String {
    let rows = judged.iter().map(|one| {
        let why = one.published.missing.as_deref().map(|why| format!(" [{why}]")).unwrap_or_default();
        let ours = one
            .ours
            .as_ref()
            .map_or_else(|| "not run".to_owned(), |ours| ours.verdict.word().to_owned() + &graded(ours));
        let text = format!("{}{why}", one.statement.text);
        [one.statement.id.clone(), one.published.verdict.word().into(), ours, text]
    });
    table(["claim", "tables", "ours", "statement of the paper"], rows)
}

fn derived(derived: &[Derived]) -> String {
    let mut groups: BTreeMap<usize, (String, Vec<String>)> = BTreeMap::new();
    for one in derived {
        let place = derived.iter().position(|other| other.id == one.id).unwrap_or_default();
        let group = groups.entry(place).or_insert_with(|| (one.text.clone(), Vec::new()));
        group.1.push(format!("{} {} {}", values(&one.cell), short(one.value), one.unit).trim().to_owned());
    }
    let lines = groups.into_values().map(|(text, values)| format!("  {text}: {}", values.join(", ")));
    format!("Results derived from the paper's figures\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn short(value: f64) -> String {
    let decimals = if value.abs() >= PERCENT || value.fract() == 0.0 { 0 } else { 2 };
    format!("{value:.decimals$}")
}

fn effects(analyses: &[Analysis]) -> String {
    let names = |analysis: &Analysis| {
        let alone = analysis.effects.iter().filter(|effect| effect.order == 1);
        alone.map(|effect| effect.name.clone()).collect::<Vec<_>>()
    };
    let lines = analyses.iter().map(|analysis| {
        let share = |name: &String| {
            let effect = analysis.effects.iter().find(|effect| effect.name == *name);
            format!("{name} {:.1} %", effect.map_or(0.0, |effect| effect.share) * PERCENT)
        };
        let mut shares: Vec<String> = names(analysis).iter().map(share).collect();
        let together = analysis.effects.iter().filter(|effect| effect.order > 1).map(|effect| effect.share);
        shares.push(format!("all interactions {:.1} %", together.sum::<f64>() * PERCENT));
        format!("  {}: {}", analysis.response, shares.join(", "))
    });
    let lines: Vec<String> = lines.collect();
    format!("Factors that explain the variation of the paper's means (2^k effects)\n{}", lines.join("\n"))
}

fn coded_twice(agreement: &CodingAgreement) -> String {
    let changed: Vec<&str> = agreement.changed_claims.iter().map(|one| one.id.as_str()).collect();
    let changed = if changed.is_empty() { "no claim".to_owned() } else { changed.join(", ") };
    format!(
        "{} statements, coded twice by this project: Cohen's kappa {:.2} for topics, {:.2} for polarities; {changed} \
         with another verdict by the second coding",
        agreement.statements, agreement.kappa_topic, agreement.kappa_polarity
    )
}

fn changed(judged: &[Judged]) -> String {
    let changed = judged.iter().filter(|one| !one.is_as_recorded());
    let lines: Vec<String> = changed
        .map(|one| {
            let (now, recorded) = (one.published.verdict.word(), one.statement.recorded.word());
            format!("{}: the tables say \"{now}\", recorded is \"{recorded}\"", one.statement.id)
        })
        .collect();
    lines.join("\n")
}
