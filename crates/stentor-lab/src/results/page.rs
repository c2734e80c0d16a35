//! One HTML page without scripts, fonts or anything else from elsewhere.

use super::features::features;
use super::interruptions::interruptions;
use super::overhead::overhead;
use super::phases::{footnote, phases};
use super::sizes::sizes;
use super::verdicts::{Finding, Ours};
use super::{Account, Plot, tables};
use crate::document::{escape, list, section, text};
use crate::study::Verdict;

const STYLE: &str = concat!(include_str!("../report/style.css"), include_str!("style.css"));

/// Writes the page of an account.
#[must_use]
pub fn page(account: &Account) -> String {
    let results = &account.results;
    let mut parts = vec![verdicts(account)];
    parts.extend(account.plots.iter().map(figure));
    parts.push(effects(account));
    parts.push(by_probes(account));
    parts.push(by_size(account));
    parts.push(interrupted(account));
    parts.push(details("cells", "Every cell", &tables::cells(results).html("")));
    parts.push(by_count(account));
    parts.push(by_phase(account));
    parts.push(uncounted(account));
    parts.push(not_here(account));
    if !account.remarks.differences.is_empty() {
        parts.push(section("Differences from the paper", &list(account.remarks.differences.iter().cloned())));
    }
    parts.push(environment(account));
    parts.retain(|part| !part.is_empty());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}, run again</title>\n<style>\n{STYLE}</style></head><body class=\"account\">\n{}<main>\n{}\n</main></body></html>\n",
        escape(&results.study),
        head(account),
        parts.join("\n")
    )
}

fn head(account: &Account) -> String {
    let results = &account.results;
    let about = results.dossier.as_ref().map_or_else(String::new, |dossier| {
        let paper = dossier.paper();
        format!("<p>{}: <cite>{}</cite> ({})</p>\n", escape(&paper.authors), escape(&paper.title), paper.year)
    });
    let facts: String = facts(account).iter().map(|fact| format!("<span>{}</span>", escape(fact))).collect();
    let contents: Vec<String> = account
        .plots
        .iter()
        .map(|plot| format!("<a href=\"#{}\">{}</a>", plot.id, escape(&plot.title)))
        .collect();
    let contents = [
        vec!["<a href=\"#verdicts\">Verdicts</a>".to_owned()],
        contents,
        vec!["<a href=\"#cells\">Every cell</a>".to_owned()],
    ]
    .concat();
    format!(
        "<header><div><h1>{}, run again</h1>\n{about}<div class=\"facts\">{facts}</div></div></header>\n\
         <nav aria-label=\"Contents\">{}</nav>\n",
        escape(&results.study),
        contents.join("")
    )
}

fn facts(account: &Account) -> Vec<String> {
    let results = &account.results;
    let forks: usize = results.cells.iter().map(|cell| cell.forks.len()).sum();
    let uncounted = results.uncounted().count();
    let dates =
        || results.records.iter().map(|record| record.ended.as_str()).filter(|ended| !ended.is_empty());
    let day = |instant: &str| instant.chars().take(10).collect::<String>();
    let date = dates().min().zip(dates().max()).map(|(first, last)| {
        if day(first) == day(last) { day(first) } else { format!("{} to {}", day(first), day(last)) }
    });
    let mut facts: Vec<String> = date.into_iter().collect();
    facts.push(format!("{} cells", results.cells.len()));
    facts.push(format!("{forks} forks that count"));
    if uncounted > 0 {
        facts.push(format!("{uncounted} that do not"));
    }
    facts.extend(results.not_timed());
    if let Some(first) = results.records.first() {
        facts.push(format!("{} × {}", first.env.cores, first.env.cpu));
        if !first.env.rig.is_empty() {
            facts.push(format!("between the sides: {}", first.env.rig));
        }
    }
    facts
}

fn badge(verdict: Verdict) -> String {
    let (class, sign) = match verdict {
        Verdict::Holds => ("yes", "✓"),
        Verdict::DoesNotHold => ("no", "✗"),
        Verdict::Undecided => ("open", "?"),
        Verdict::NotTestable => ("none", "–"),
    };
    format!("<span class=\"badge {class}\">{sign} {}</span>", verdict.word())
}

fn verdicts(account: &Account) -> String {
    let Some(found) = &account.verdicts else { return String::new() };
    let has_modern = found.claims.iter().any(|one| one.modern.judgment.is_some());
    let claims = tables::ordered(account);
    let rows: String = claims.iter().map(|one| verdict(account, one, has_modern)).collect();
    let modern = if has_modern { "<th>measured: today’s software</th>" } else { "" };
    let table = format!(
        "<div class=\"wide\"><table class=\"words claims\"><thead><tr><th>the paper says</th><th>the paper’s own data</th>\
         <th>measured: period software</th>{modern}<th></th></tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
    );
    let words = format!("{WORDS} {}", found.judged_at());
    let content = tally(&claims, found.period) + &text(words.trim_end()) + &table;
    section("Verdicts", &content).replacen("<section>", "<section id=\"verdicts\">", 1)
}

const WORDS: &str = "Each sentence of the paper is judged twice: by the figures that the paper prints, and by ours. Figures in \
    parentheses are 95 % intervals over forks (fresh pairs of processes). Measured figures must be more than 5 % apart, and what a \
    claim says must stand a correction for the number of claims (Holm). Figures are in the paper's own units. Only the software of \
    the paper's time speaks for the paper.";

fn tally(claims: &[&Ours], period: bool) -> String {
    let count = |verdict: Verdict, of: &dyn Fn(&Ours) -> Verdict| {
        claims.iter().filter(|one| of(one) == verdict).count()
    };
    let all = [Verdict::DoesNotHold, Verdict::Holds, Verdict::Undecided, Verdict::NotTestable];
    let line = |name: &str, of: &dyn Fn(&Ours) -> Verdict| {
        let counts: String = all
            .into_iter()
            .filter(|verdict| count(*verdict, of) > 0)
            .map(|verdict| {
                format!("<span class=\"count\"><b>{}</b> {}</span>", count(verdict, of), badge(verdict))
            })
            .collect();
        format!("<div class=\"tally\"><span class=\"name\">{name}</span>{counts}</div>\n")
    };
    let name = if period { "measured here" } else { "measured here, with today’s software only" };
    line("the paper’s own data", &|one| one.judged.published.verdict) + &line(name, &|one| one.best().verdict)
}

fn verdict(account: &Account, one: &Ours, has_modern: bool) -> String {
    let statement = &one.judged.statement;
    let quote = if statement.quote.is_empty() {
        String::new()
    } else {
        format!("<q>{}</q>", escape(&statement.quote))
    };
    let ours = |finding: &Finding| cell(finding.verdict, &tables::grounds(finding));
    let modern = if has_modern { ours(&one.modern) } else { String::new() };
    let note = if statement.note.is_empty() {
        String::new()
    } else {
        format!("<p class=\"note\">{}</p>", escape(&statement.note))
    };
    format!(
        "<tr><td><b>{}</b>{quote}<p class=\"note\">{}, {}</p>{note}</td>{}{}{modern}<td>{}</td></tr>\n",
        escape(&statement.text),
        escape(&statement.id),
        escape(&statement.source),
        cell(one.judged.published.verdict, &tables::evidence(&one.judged.published)),
        ours(&one.period),
        link(account, one)
    )
}

fn cell(verdict: Verdict, grounds: &[String]) -> String {
    let lines: String =
        grounds.iter().map(|line| format!("<span class=\"ground\">{}</span>", escape(line))).collect();
    format!("<td>{}{lines}</td>", badge(verdict))
}

/// Links to the drawing that bears on a claim: by bytes, energy or cost where it speaks of them, else by time.
fn link(account: &Account, one: &Ours) -> String {
    if one.best().verdict == Verdict::NotTestable {
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

fn figure(plot: &Plot) -> String {
    let content = format!("{}<div class=\"wide\">{}</div>\n", text(&plot.words), plot.svg);
    section(&plot.title, &content).replacen("<section>", &format!("<section id=\"{}\">", plot.id), 1)
}

fn effects(account: &Account) -> String {
    let tables: Vec<_> = tables::effects(&account.results);
    if tables.is_empty() {
        return String::new();
    }
    let words = "Factors at their extremes, every combination run. The share says how much of all differences in time a factor \
        explains, an interaction (a x b) what two explain only together; the factor beside it is what the time is multiplied by from \
        the low level to the high one. Shares are of logarithms of the median times.";
    let parts: String = tables
        .iter()
        .map(|(title, table)| format!("<h3>{}</h3>\n{}", escape(title), table.html("effects")))
        .collect();
    section("What matters most", &(text(words) + &parts)).replacen("<section>", "<section id=\"effects\">", 1)
}

fn by_probes(account: &Account) -> String {
    let table = features(&account.results);
    if table.rows.is_empty() {
        return String::new();
    }
    let words = "What the paper has in tables of words, tried on our own faces. What is marked documented, interviews or proxy was \
        not tried.";
    let content = text(words) + &table.html("words");
    section("Features, by probes", &content).replacen("<section>", "<section id=\"features\">", 1)
}

fn by_size(account: &Account) -> String {
    let table = sizes(&account.results);
    if table.rows.is_empty() {
        String::new()
    } else {
        section("Sizes beside the paper’s", &table.html("words"))
    }
}

fn interrupted(account: &Account) -> String {
    let table = interruptions(&account.results);
    if table.rows.is_empty() {
        return String::new();
    }
    let words = "When half of the pages were there, nothing got through for two seconds, or the client was killed and started again, or \
        both. In the meantime its file was opened without the server: whole pages, every row compared, and marked as stale. Silence is \
        from the interruption until the next page was kept.";
    section("Interrupted half way", &(text(words) + &table.html(""))).replacen(
        "<section>",
        "<section id=\"interruptions\">",
        1,
    )
}

fn details(id: &str, title: &str, content: &str) -> String {
    section(title, &format!("<details open><summary>Show or hide</summary>\n{content}</details>\n")).replacen(
        "<section>",
        &format!("<section id=\"{id}\">"),
        1,
    )
}

fn by_count(account: &Account) -> String {
    let table = overhead(&account.results);
    if table.rows.is_empty() {
        return String::new();
    }
    let words = "The paper counts packets that carry a message: NDU is 2p + x + y, POH (x + y) / 2, and claims are judged by that. The full \
        exchange has what opens, acknowledges and closes as well.";
    let content = text(words) + &table.html("");
    details("overhead", "Bytes as the paper counts them, and the whole exchange", &content)
}

fn by_phase(account: &Account) -> String {
    let table = phases(&account.results);
    if table.rows.is_empty() {
        return String::new();
    }
    details("phase-table", "Phases", &(table.html("") + &text(footnote(&table))))
}

fn uncounted(account: &Account) -> String {
    let table = tables::uncounted(&account.results);
    if table.rows.is_empty() {
        return section("Forks that do not count", &text("None."));
    }
    let words = "They are kept with their reasons and raw samples, and are in no figure above.";
    let content = text(words) + &table.html("words");
    section("Forks that do not count", &content).replacen("<section>", "<section class=\"alert\">", 1)
}

fn not_here(account: &Account) -> String {
    let table = tables::not_here(account);
    if table.rows.is_empty() { String::new() } else { section("Not tested here", &table.html("words")) }
}

fn environment(account: &Account) -> String {
    let results = &account.results;
    let mut content = tables::environment(results).html("words")
        + "<h3>Software</h3>\n"
        + &tables::software(results).html("words");
    let raw = account.remarks.raw_files;
    let directory = &account.remarks.directory;
    let has_times = results.records.iter().any(|record| !record.latency.is_empty());
    let beside = format!(
        "Every record is in {directory}/records.jsonl{}{}. Every figure of cells and forks is in the CSV file that `stentor lab \
         report --csv` writes.",
        if has_times { ", with the whole distribution of each phase (HdrHistogram, V2)" } else { "" },
        match raw {
            0 => String::new(),
            1 => "; a file of raw samples lies beside it, with its SHA-256 in its record".to_owned(),
            _ => format!("; {raw} files of raw samples lie beside it, each with its SHA-256 in its record"),
        }
    );
    content += "<h3>Raw data</h3>\n";
    content += &text(&beside);
    if !account.remarks.command.is_empty() {
        content += &format!("<h3>Run it again</h3>\n<pre>{}</pre>\n", escape(&account.remarks.command));
    }
    section("Where and how this was measured", &content)
}

#[cfg(test)]
mod tests;
