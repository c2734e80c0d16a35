//! A report as one self-contained HTML page without scripts, fonts or other external resources, and as Markdown for a repository.

use super::clocks::clocks;
use super::connection_servers::connection_servers;
use super::delays::delays;
use super::features::features;
use super::grounds::SettingGrounds;
use super::interruptions::interruptions;
use super::overhead::overhead;
use super::phases::{footnote, phases};
use super::section::{Section, SectionBlock};
use super::sizes::sizes;
use super::verdicts::ClaimFindings;
use super::{Account, Plot, breakdown, campaigns, grounds, interviews, runs, tables};
use crate::claims::ClaimVerdict;
use crate::document::{escape, text};

const STYLE: &str = include_str!("style.css");

/// Writes the report as a page.
#[must_use]
pub fn page(account: &Account) -> String {
    frame(&format!("{}, run again", account.results.study), &head(account), &sections(account))
}

/// Writes a page around a head and sections; sections without content are not written.
pub(crate) fn frame(title: &str, head: &str, sections: &[Section]) -> String {
    let parts: Vec<String> = sections.iter().map(Section::html).filter(|part| !part.is_empty()).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}</title>\n<style>\n{STYLE}</style></head><body class=\"account\">\n{head}<main>\n{}\n</main></body></html>\n",
        escape(title),
        parts.join("\n")
    )
}

/// Writes the report's tables as Markdown.
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
    let not_timed = results.not_timed().map_or_else(String::new, |sentence| format!("**{sentence}**\n"));
    let sections = sections(account);
    let parts = [title, not_timed].into_iter().chain(sections.iter().map(Section::text));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Lists the sections in their order; sections without content are not written.
fn sections(account: &Account) -> Vec<Section> {
    let results = &account.results;
    let mut sections =
        vec![verdicts(account), Section::tabled("runs", "Runs", "", runs::table(results), "words")];
    sections.extend(account.plots.iter().map(drawing));
    sections.push(effects(account));
    sections.extend(campaigns::sections(account));
    sections.extend([
        Section::tabled("features", "Features, by probes", FEATURES, features(results), "words"),
        interviews::section(account),
        Section::tabled("table-1", TABLE_1_TITLE, TABLE_1, connection_servers(results), "words"),
        Section::tabled("", "Sizes beside the paper’s", "", sizes(results), "words"),
        Section::tabled("delays", DELAYS_TITLE, DELAYS, delays(results), ""),
        Section::tabled("interruptions", "Interrupted half way", INTERRUPTED, interruptions(results), ""),
        Section::tabled("cells", "Every cell", "", tables::cells(results), "").folded(),
        Section::tabled("overhead", OVERHEAD_TITLE, OVERHEAD, overhead(results), "").folded(),
        Section::tabled("clocks", CLOCKS_TITLE, CLOCKS, clocks(results), "").folded(),
        by_phase(account),
    ]);
    let breakdowns = [
        ("Bytes of an exchange", LAYERS, breakdown::bytes(results)),
        ("Processor time and memory of each side", "", breakdown::costs(results)),
        ("Energy", "", breakdown::energy(results)),
    ];
    sections.extend(breakdowns.map(|(title, words, table)| {
        let section = Section::new("", title).markdown(SectionBlock::Words(words.to_owned()));
        section.markdown(SectionBlock::Table(table, ""))
    }));
    sections.extend(tables::effects(results).into_iter().map(|(name, table)| {
        Section::new("", &format!("Effects: {name}")).markdown(SectionBlock::Table(table, ""))
    }));
    sections.push(uncounted(account));
    sections.extend([
        Section::tabled("", "Not tested here", "", tables::not_here(account), "words"),
        listed("Differences from the paper", &account.remarks.differences),
        listed("Threats", &account.remarks.threats),
        listed("Remarks on the published figures", &account.remarks.on_figures),
        Section::new("", "Software").markdown(SectionBlock::Table(tables::software(results), "")),
        Section::new("", "Where and how").markdown(SectionBlock::Table(tables::environment(account), "")),
        again(account),
        environment(account),
    ]);
    sections
}

const FEATURES: &str = "The paper's tables of words, tried on our own subjects. Answers marked documented, interviews or proxy were \
    not tried. Rows of the server itself are trials of the SOAP, XML-RPC and REST (JSON) that it serves; they decide no claim.";
const TABLE_1_TITLE: &str = "Table 1: GCM’s connection servers";
const TABLE_1: &str = "The paper describes Google's servers, which are gone. Each feature was tried once at the front of our own server that \
    speaks their protocol; a trial decides no claim.";
const DELAYS_TITLE: &str = "Delays beside REST’s, with the same kind of connection";
const DELAYS: &str = "Means over the four payloads, of forks; ratios by Welch's method. GCM and FCM keep their connections, and their \
    provider has no delay of its own here. † This server notes the arrival of a message after its reading.";
const INTERRUPTED: &str = "When half of the pages were there, nothing got through for two seconds, or the client was killed and started \
    again, or both. In the meantime its file was opened without the server: whole pages, every row compared, and marked as stale. Silence \
    is from the interruption until the next page was kept.";
const OVERHEAD_TITLE: &str = "Bytes as the paper counts them, and the whole exchange";
const OVERHEAD: &str = "The paper counts packets that carry a message: NDU is 2p + x + y, POH (x + y) / 2, and claims are judged by that. \
    The full exchange also includes the packets that open, acknowledge and close.";
const CLOCKS_TITLE: &str = "One-way delay by both methods of setting clocks";
const CLOCKS: &str = "Both halves read one clock, by which claims are judged. Before the exchanges each queried a time server 100 times \
    over its link: the error that their clocks would add is added here, by the paper's mean and by the queries with the shortest round trips.";
const LAYERS: &str = "Both ways, of a whole exchange; of a synchronisation in pages all pages together. Payload is the values as text.";
const PHASES: &str = "Medians; where points come in pages, of a single page.";
const EFFECTS: &str = "Every combination of the factors' extreme levels was run. The share is the part of all differences in time \
    that a factor explains, or that two factors explain only together (a x b). The number beside it multiplies the time from the low \
    level to the high one. Shares are of logarithms of the median times.";

fn listed(title: &str, items: &[String]) -> Section {
    Section::new("", title).both(SectionBlock::List(items.to_vec()))
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
    facts.extend(account.remarks.provenance.get("scale").map(|scale| format!("scale {scale}")));
    if let Some(first) = results.records.first() {
        facts.push(format!("{} × {}", first.env.cores, first.env.cpu));
        if !first.env.rig.is_empty() {
            facts.push(format!("between the sides: {}", first.env.rig));
        }
    }
    facts
}

fn badge(verdict: ClaimVerdict) -> String {
    let (class, sign) = match verdict {
        ClaimVerdict::Holds => ("yes", "✓"),
        ClaimVerdict::DoesNotHold => ("no", "✗"),
        ClaimVerdict::Undecided => ("open", "?"),
        ClaimVerdict::SetByExperiment => ("set", "="),
        ClaimVerdict::NotTestable => ("none", "–"),
    };
    format!("<span class=\"badge {class}\">{sign} {}</span>", verdict.word())
}

fn verdicts(account: &Account) -> Section {
    let section = Section::new("verdicts", "Verdicts");
    let Some(found) = &account.verdicts else { return section };
    let has_modern = found.claims.iter().any(|one| one.modern.judgment.is_some());
    let claims = tables::ordered(account);
    let rows: String = claims.iter().map(|one| verdict(account, one, has_modern)).collect();
    let is_of_campaigns = account.results.is_of_campaigns();
    let measured = if is_of_campaigns { campaigns::MEASURED } else { "measured: period software" };
    let modern = if has_modern { "<th>measured: today’s software</th>" } else { "" };
    let table = format!(
        "<div class=\"wide\"><table class=\"words claims\"><thead><tr><th>the paper says</th><th>the paper’s own data</th>\
         <th>{measured}</th>{modern}<th></th></tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
    );
    let who = if is_of_campaigns { campaigns::WHO_SPEAKS } else { WHO_SPEAKS };
    let over = runs::over(&account.results);
    let words = format!("{WORDS} {who} {over} {}", found.judged_at());
    section
        .both(SectionBlock::Table(tables::tally(account), "tally"))
        .page(SectionBlock::Html(text(words.trim_end()) + &table))
        .markdown(SectionBlock::Words(format!("{over} {}", found.judged_at()).trim_end().to_owned()))
        .markdown(SectionBlock::Table(tables::claims(account), ""))
}

const WORDS: &str = "Each sentence of the paper is judged twice: by the figures that the paper prints, and by ours. Figures in \
    parentheses are 95\u{a0}% intervals; a fork is a fresh pair of processes. Measured figures must be more than 5\u{a0}% apart, and a \
    claim must withstand a correction for the number of claims (Holm). A verdict names the difference that it could have seen, in four of \
    five repetitions. Figures are in the paper's own units.";
const WHO_SPEAKS: &str = "Only the software of the paper's time speaks for the paper.";

fn verdict(account: &Account, one: &ClaimFindings, has_modern: bool) -> String {
    let statement = &one.judged.statement;
    let implied = if statement.implied { "<span class=\"badge none\">implied</span>" } else { "" };
    let ours = |period: bool| {
        let parts: String = grounds::by_setting(one, period).iter().map(at_setting).collect();
        format!("<td>{parts}</td>")
    };
    let modern = if has_modern { ours(false) } else { String::new() };
    let note = if statement.note.is_empty() {
        String::new()
    } else {
        format!("<p class=\"note\">{}</p>", escape(&statement.note))
    };
    format!(
        "<tr><td><b>{}</b> {implied}<q>{}</q><p class=\"note\">{}, {}</p>{note}</td>{}{}{modern}<td>{}</td></tr>\n",
        escape(&statement.text),
        escape(&statement.quote),
        escape(&statement.id),
        escape(&statement.source),
        cell(one.judged.published.verdict, &grounds::of_judgment(&one.judged.published)),
        ours(true),
        link(account, one)
    )
}

fn cell(verdict: ClaimVerdict, grounds: &[String]) -> String {
    format!("<td>{}{}</td>", badge(verdict), lines(grounds))
}

fn at_setting(found: &SettingGrounds) -> String {
    let settings = &found.settings;
    let name = if settings.is_empty() { String::new() } else { format!("<b>{}</b> ", escape(settings)) };
    format!("<div class=\"finding\">{name}{}{}</div>", badge(found.verdict), lines(&found.lines))
}

fn lines(grounds: &[String]) -> String {
    grounds.iter().map(|line| format!("<span class=\"ground\">{}</span>", escape(line))).collect()
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

fn drawing(plot: &Plot) -> Section {
    let svg = format!("<div class=\"wide\">{}</div>\n", plot.svg);
    Section::new(&plot.id, &plot.title)
        .page(SectionBlock::Words(plot.words.clone()))
        .page(SectionBlock::Html(svg))
}

fn effects(account: &Account) -> Section {
    let tables = tables::effects(&account.results);
    let words = if tables.is_empty() { String::new() } else { EFFECTS.to_owned() };
    let section = Section::new("effects", "Largest effects").page(SectionBlock::Words(words));
    tables.into_iter().fold(section, |section, (title, table)| {
        section.page(SectionBlock::Heading(title)).page(SectionBlock::Table(table, "effects"))
    })
}

fn by_phase(account: &Account) -> Section {
    let table = phases(&account.results);
    let below = footnote(&table).to_owned();
    let section = Section::new("phase-table", "Phases").markdown(SectionBlock::Words(PHASES.to_owned()));
    section.both(SectionBlock::Table(table, "")).both(SectionBlock::Words(below)).folded()
}

fn uncounted(account: &Account) -> Section {
    let (title, table) = ("Forks that do not count", tables::uncounted(&account.results));
    if table.rows.is_empty() {
        return Section::new("", title).page(SectionBlock::Words("None.".to_owned()));
    }
    let words = "They are kept with their reasons and raw samples, and are in no figure above.";
    Section::tabled("", title, words, table, "words").alert()
}

fn again(account: &Account) -> Section {
    let section = Section::new("", "Run it again");
    let command = &account.remarks.command;
    if command.is_empty() { section } else { section.markdown(SectionBlock::Command(command.clone())) }
}

fn environment(account: &Account) -> Section {
    let (results, remarks) = (&account.results, &account.remarks);
    let has_times = results.records.iter().any(|record| !record.latency.is_empty());
    let beside = format!(
        "Every record is in {}/{}{}{}. Every figure of cells and forks is in the CSV file that `stentor lab \
         report --csv` writes.",
        remarks.directory,
        results.file(),
        if has_times { ", with the whole distribution of each phase (HdrHistogram, V2)" } else { "" },
        match remarks.raw_files {
            0 => String::new(),
            1 => "; a file of raw samples lies beside it, with its SHA-256 in its record".to_owned(),
            raw => format!("; {raw} files of raw samples lie beside it, each with its SHA-256 in its record"),
        }
    );
    let section = Section::new("", "Where and how this was measured")
        .page(SectionBlock::Table(tables::environment(account), "words"))
        .page(SectionBlock::Heading("Software".to_owned()))
        .page(SectionBlock::Table(tables::software(results), "words"))
        .page(SectionBlock::Heading("Raw data".to_owned()))
        .page(SectionBlock::Words(beside));
    if remarks.command.is_empty() {
        return section;
    }
    section
        .page(SectionBlock::Heading("Run it again".to_owned()))
        .page(SectionBlock::Command(remarks.command.clone()))
}

#[cfg(test)]
mod tests;
