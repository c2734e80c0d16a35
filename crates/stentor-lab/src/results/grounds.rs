//! The grounds of a verdict, one per line.

use super::verdicts::{ClaimFindings, Finding};
use crate::claims::judge::{CELLS, Compared, Judgment};
use crate::claims::{ClaimVerdict, Statement};
use crate::plot::short;

/// Maximum of comparisons shown per claim.
const COMPARED_MAX: usize = 6;
/// Smaller p-values rest on the shape of a distribution that nobody measured so far out.
const P_MIN: f64 = 1e-4;

/// A finding at one or several settings, with its grounds.
pub(super) struct SettingGrounds {
    /// The settings; empty if the study has one.
    pub(super) settings: String,
    /// The verdict.
    pub(super) verdict: ClaimVerdict,
    /// The decisive comparison, with the names of both sides.
    pub(super) headline: String,
    /// All grounds.
    pub(super) lines: Vec<String>,
}

/// Lists the findings on a claim at each setting. Settings with the same finding come together.
pub(super) fn by_setting(one: &ClaimFindings, period: bool) -> Vec<SettingGrounds> {
    let mut all: Vec<SettingGrounds> = Vec::new();
    for (setting, finding) in one.at_each_setting(period) {
        let lines = of_finding(&one.judged.statement, finding);
        match all.iter_mut().find(|other| other.verdict == finding.verdict && other.lines == lines) {
            Some(same) => same.settings = format!("{}, {setting}", same.settings),
            None => all.push(SettingGrounds {
                settings: setting.to_owned(),
                verdict: finding.verdict,
                headline: finding.judgment.as_ref().map_or_else(|| finding.why.clone(), headline),
                lines,
            }),
        }
    }
    all
}

/// Returns the grounds of our finding on a claim, one per line, and what a verdict would need if there is none.
pub(super) fn of_finding(statement: &Statement, finding: &Finding) -> Vec<String> {
    let judgment = finding.judgment.as_ref();
    let grade = judgment.and_then(Judgment::grade).filter(|grade| grade.unit == CELLS);
    let mut lines: Vec<String> = grade.map(|grade| grade.to_string()).into_iter().collect();
    lines.extend(judgment.map(of_judgment).unwrap_or_default());
    let is_told = finding.judgment.as_ref().is_some_and(|one| one.missing.as_ref() == Some(&finding.why));
    if !finding.why.is_empty() && !is_told {
        lines.push(finding.why.clone());
    }
    if finding.is_deterministic {
        lines.push("deterministic: the same in every fork".to_owned());
    }
    lines.extend(finding.p.map(p_text));
    lines.extend(judgment.and_then(|judgment| judgment.power).map(|power| power.to_string()));
    lines.extend(needed(statement, finding).map(|what| format!("needed: {what}")));
    lines
}

/// Returns the ground of a judgment in one line: the cells that point its way, or its most telling comparison.
pub(super) fn headline(judgment: &Judgment) -> String {
    if !judgment.verdict.is_tested() {
        return missing(judgment.missing.as_deref().unwrap_or_default());
    }
    let Some(first) = telling(judgment).first().copied() else { return String::new() };
    if let Some(grade) = judgment.grade().filter(|grade| grade.unit == CELLS) {
        let is_one = judgment.comparisons.iter().all(|one| one.relation == first.relation);
        let others = if is_one { "" } else { " and alike" };
        return format!("{}{others} in {grade}", first.relation);
    }
    match judgment.comparisons.len() {
        1 => labelled(first),
        all => format!("{} ({} of {all} comparisons)", labelled(first), telling(judgment).len()),
    }
}

/// Lists the comparisons that decide a verdict, or leave it open.
fn telling(judgment: &Judgment) -> Vec<&Compared> {
    match judgment.verdict {
        ClaimVerdict::DoesNotHold => judgment.failures().collect(),
        ClaimVerdict::Undecided => judgment.comparisons.iter().filter(|one| one.is_so.is_none()).collect(),
        _ => judgment.comparisons.iter().collect(),
    }
}

/// Writes a comparison with the levels of its cell, except those that name a side.
fn labelled(one: &Compared) -> String {
    let values = one.cell.split("; ").filter_map(value).filter(|value| !one.named.contains(value));
    let values: Vec<&str> = values.collect();
    if values.is_empty() { one.named.clone() } else { format!("{}: {}", values.join(", "), one.named) }
}

fn p_text(p: f64) -> String {
    if p < P_MIN {
        format!("p < {P_MIN} after correction")
    } else {
        format!("p = {} after correction", short(p))
    }
}

/// Returns what a verdict would need; `None` if there is one, or if measurements cannot bear on the claim.
fn needed<'a>(statement: &'a Statement, finding: &Finding) -> Option<&'a str> {
    let is_named = !statement.needs.is_empty();
    match finding.verdict {
        ClaimVerdict::Holds | ClaimVerdict::DoesNotHold => None,
        ClaimVerdict::Undecided => Some("more forks, or a larger difference"),
        _ if is_named => Some(&statement.needs),
        _ if statement.about_paper => None,
        _ => Some("a run with the missing figures"),
    }
}

/// Returns the decisive comparisons, one per line.
pub(super) fn of_judgment(judgment: &Judgment) -> Vec<String> {
    if !judgment.verdict.is_tested() {
        return in_part(judgment);
    }
    let (telling, all) = (telling(judgment), judgment.comparisons.len());
    let count = match judgment.verdict {
        ClaimVerdict::DoesNotHold => format!("{} of {all} comparisons speak against it", telling.len()),
        ClaimVerdict::Undecided => format!("{} of {all} comparisons are open", telling.len()),
        _ => format!("all {all} comparisons are so"),
    };
    let grounds = telling.iter().take(COMPARED_MAX).map(|one| labelled(one));
    let mut lines: Vec<String> = (all > 1).then_some(count).into_iter().chain(grounds).collect();
    if telling.len() > COMPARED_MAX {
        lines.push(format!("and {} more", telling.len() - COMPARED_MAX));
    }
    lines
}

/// Returns the missing figure or the setting, and the comparisons made nevertheless.
fn in_part(judgment: &Judgment) -> Vec<String> {
    let compared = judgment.comparisons.iter().take(COMPARED_MAX).map(|one| {
        let sign = match one.is_so {
            Some(true) => "so",
            Some(false) => "not so",
            None => "open",
        };
        format!("in part: {} ({sign})", labelled(one))
    });
    let missing = missing(judgment.missing.as_deref().unwrap_or_default());
    std::iter::once(missing).chain(compared).collect()
}

/// Returns a level without its factor; `None` for the part of the study, which is shown elsewhere.
fn value(pair: &str) -> Option<&str> {
    let (name, value) = pair.split_once('=')?;
    (name != "experiment").then_some(value)
}

/// Returns the missing measurement in plainer words than the language of claims.
fn missing(what: &str) -> String {
    let is_selector = what.contains('[') && what.contains(']');
    if !is_selector {
        return what.trim_end_matches('.').to_owned();
    }
    let (metric, rest) = what.split_once('[').unwrap_or((what, ""));
    let conditions = rest.split(']').next().unwrap_or_default();
    let conditions: Vec<&str> = conditions
        .split(", ")
        .filter_map(|pair| pair.split_once('=').map(|(_, value)| value))
        .filter(|value| !value.starts_with('$'))
        .collect();
    let of = if conditions.is_empty() { String::new() } else { format!(" ({})", conditions.join(", ")) };
    format!("not measured: {}{of}", metric.replace('_', " "))
}
