//! One HTML page without scripts, fonts or anything else from elsewhere.

use super::{Judged, Measured, Report, draw, figure, tables};
use crate::document::{escape, list, section, text};
use crate::study::{Group, Verdict};

const STYLE: &str = include_str!("style.css");

/// Writes the page of a report.
#[must_use]
pub fn page(report: &Report) -> String {
    let title = escape(&report.study.id);
    let scenarios: Vec<&Measured> = report.scenarios.iter().collect();
    let mut parts = vec![verdicts(report)];
    if !scenarios.is_empty() {
        parts.push(rates(report, &scenarios));
        parts.push(little(report, &scenarios));
        parts.push(proof(&scenarios));
    }
    let judged = report.judged();
    parts.extend(groups(report).iter().map(|(group, cells)| question(group, cells, &judged)));
    parts.push(uncounted(report));
    let texts = |remarks: &[crate::study::Remark]| list(remarks.iter().map(|one| one.text.clone()));
    parts.push(section("Differences from the paper", &texts(&report.study.differences)));
    parts.push(section("Threats", &texts(&report.study.threats)));
    parts.push(section("Remarks on the published figures", &list(remarks(report))));
    parts.push(environment(report));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\n\
         <style>\n{STYLE}</style></head><body>\n{}<main>\n{}\n</main></body></html>\n",
        head(report),
        parts.join("\n")
    )
}

/// Lists the questions beyond the paper of which something was run, each with its cells.
pub(super) fn groups(report: &Report) -> Vec<(&Group, Vec<&Measured>)> {
    let of = |group: &Group| report.beyond.iter().filter(|one| one.group == group.id).collect::<Vec<_>>();
    let groups = report.study.groups.iter().map(|group| (group, of(group)));
    groups.filter(|(_, cells)| !cells.is_empty()).collect()
}

fn head(report: &Report) -> String {
    let study = &report.study;
    let fact = |name: &str| match &report.provenance[name] {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let facts = [
        fact("date"),
        fact("scale").map(|scale| format!("scale {scale}")),
        fact("repetitions").map(|count| format!("{count} runs of each test")),
        fact("cpu").zip(fact("cores")).map(|(cpu, cores)| format!("{cores} × {cpu}")),
        fact("optimized").filter(|optimized| optimized == "false").map(|_| "a debug build".to_owned()),
    ];
    let facts: String =
        facts.into_iter().flatten().map(|fact| format!("<span>{}</span>", escape(&fact))).collect();
    format!(
        "<header><div><h1>{}, run again</h1>\n<p>{}: <cite>{}</cite> ({})</p>\n<div class=\"facts\">{facts}</div></div></header>\n",
        escape(&study.id),
        escape(&study.authors),
        escape(&study.title),
        study.year
    )
}

fn badge(verdict: Verdict) -> String {
    let class = match verdict {
        Verdict::Holds => "yes",
        Verdict::DoesNotHold => "no",
        Verdict::Undecided => "open",
        Verdict::NotTestable => "none",
    };
    format!("<span class=\"badge {class}\">{}</span>", verdict.word())
}

fn verdicts(report: &Report) -> String {
    let words = "Ratios of rates with 95 % intervals (Welch, on logarithms; the run of a fresh server is the unit). A claim \
        holds when every ratio's interval lies above 1.05, does not hold when one lies below 1/1.05 (corrected for the number \
        of ratios), and is undecided otherwise. The paper ran each test once: its figures have no intervals.";
    let judged = report.judged();
    let rows: String = judged.iter().filter(|one| one.claim.group.is_empty()).map(verdict).collect();
    let table = format!(
        "<div class=\"wide\"><table class=\"words claims\"><thead><tr><th>the paper says</th><th>by its own figures</th>\
         <th>by ours</th></tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
    );
    section("Verdicts", &(text(words) + &table))
}

fn verdict(one: &Judged) -> String {
    let note = if one.claim.note.is_empty() { String::new() } else { format!("; {}", one.claim.note) };
    let cell = |verdict, figures: &str| format!("<td>{}<br>{}</td>", badge(verdict), escape(figures));
    format!(
        "<tr><td>{}<p class=\"text\" style=\"font-weight:400;margin:.2rem 0\">{}</p></td>{}{}</tr>\n",
        escape(&one.claim.text),
        escape(&(one.claim.source.clone() + &note)),
        cell(one.published, &one.published_figures),
        cell(one.ours, &one.our_figures)
    )
}

fn rates(report: &Report, cells: &[&Measured]) -> String {
    let content = figure(report) + &draw(cells) + &tables::rates(cells).html("");
    section("Pushes per second", &content)
}

fn little(report: &Report, cells: &[&Measured]) -> String {
    let latency = report.study.provider.mean_ms();
    let words = format!(
        "So many places for requests in flight, each taken for {latency:.1} ms on average, allow no more than the bound. Time \
         held is places over the rate: where it grows with the places while the rate does not, something other than the push \
         service holds the rate. How many places were taken was looked at while the tests ran, between the first and the last \
         tenth: from 90 % on the requests in flight are the limit, below 70 % it is what feeds them. Without pools a place is \
         also held while a connection opens, which the count does not show."
    );
    section("Little's law", &(text(&words) + &tables::little(cells).html("")))
}

fn proof(cells: &[&Measured]) -> String {
    let words = "Each device of the audience was looked up in the counts of the emulators. The known device of each platform \
        listened there. p50, p95 and p99 are the times from the request until so many deliveries had ended.";
    let content = text(words) + &tables::proof(cells).html("") + &tables::costs(cells).html("");
    section("Proof and cost", &content)
}

fn question(group: &Group, cells: &[&Measured], judged: &[Judged]) -> String {
    let answers = tables::answers(judged, &group.id);
    let answers = if answers.rows.is_empty() { String::new() } else { answers.html("words") };
    let costs = format!(
        "<details><summary>Proof and cost</summary>\n{}{}</details>\n",
        tables::proof(cells).html(""),
        tables::costs(cells).html("")
    );
    let content = text(&group.text) + &answers + &draw(cells) + &tables::group(cells).html("") + &costs;
    section(&format!("Beyond the paper: {}", group.title), &content)
}

fn uncounted(report: &Report) -> String {
    let table = tables::uncounted(report);
    if table.rows.is_empty() {
        return section("Runs that do not count", &text("None."));
    }
    let words = "They are kept in the raw samples and are in no figure above.";
    let content = text(words) + &table.html("words");
    section("Runs that do not count", &content).replacen("<section>", "<section class=\"alert\">", 1)
}

fn remarks(report: &Report) -> impl Iterator<Item = String> {
    let told = report.published.remarks();
    told.map(|figure| {
        format!(
            "{}, {} {} = {}: {}",
            figure.source, figure.experiment, figure.metric, figure.value, figure.note
        )
    })
}

fn environment(report: &Report) -> String {
    let command = report.provenance["command"].as_str().unwrap_or_default();
    let again = format!("<h3>Run it again</h3>\n<pre>{}</pre>\n", escape(command));
    let content = tables::provenance(&report.provenance).html("words") + &again;
    section("Where and how this was measured", &content)
}
