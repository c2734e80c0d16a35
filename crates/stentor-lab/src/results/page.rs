//! A report as one self-contained HTML page without scripts, fonts or other external resources, and as Markdown for a repository.

use super::batteries::batteries;
use super::clocks::clocks;
use super::connection_servers::connection_servers;
use super::delays::delays;
use super::features::features;
use super::interruptions::interruptions;
use super::overhead::overhead;
use super::phases::{footnote, phases};
use super::section::{Section, SectionBlock};
use super::sizes::sizes;
use super::{Account, Plot, breakdown, campaigns, instrument, interviews, judged_claims, runs, tables};
use crate::document::escape;
use crate::plot::dark_variables;

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
         <title>{}</title>\n<style>\n{STYLE}@media screen and (prefers-color-scheme:dark){{.account{{{}}}}}</style></head><body class=\"account\">\n{head}<main>\n{}\n</main></body></html>\n",
        escape(title),
        dark_variables(),
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

/// Lists the sections of a run, then those of the runs beside it; sections without content are not written.
fn sections(account: &Account) -> Vec<Section> {
    let own = of_run(account);
    let written = |section: &Section| [section.html(), section.text()];
    let told: Vec<[String; 2]> = own.iter().map(written).collect();
    let beside = account.beside.iter().map(|(title, account)| {
        let section = Section::new("", title).both(SectionBlock::List(facts(account)));
        // Remarks on the study are the same for each of its runs.
        let sections = of_run(account).into_iter().filter(|section| !told.contains(&written(section)));
        sections.fold(section, |section, one| section.both(SectionBlock::Inner(one)))
    });
    let beside: Vec<Section> = beside.collect();
    own.into_iter().chain(beside).collect()
}

/// Lists the sections of a run in their order.
fn of_run(account: &Account) -> Vec<Section> {
    let results = &account.results;
    let mut sections =
        vec![verdicts(account), Section::tabled("runs", "Runs", "", runs::table(results), "words")];
    sections.extend(account.plots.iter().map(|plot| drawing(account, plot)));
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
        Section::tabled(
            "starts",
            "From the actual and from the intended start",
            STARTS,
            instrument::starts(results),
            "",
        )
        .folded(),
        Section::tabled("overhead", OVERHEAD_TITLE, OVERHEAD, overhead(results), "").folded(),
        Section::tabled("batteries", BATTERIES_TITLE, BATTERIES, batteries(results), "").folded(),
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
        section.markdown(SectionBlock::Table(table, "")).folded()
    }));
    sections.extend(tables::effects(results).into_iter().map(|(name, table)| {
        Section::new("", &format!("Effects: {name}")).markdown(SectionBlock::Table(table, "")).folded()
    }));
    sections.extend([instrument_cost(account), uncounted(account)]);
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
    provider has no delay of its own here. One way is by packets where each fork has them, and otherwise by the server's clock. † \
    This server notes the arrival of a message after its reading.";
const INTERRUPTED: &str = "When half of the pages were there, nothing got through for two seconds, or the client was killed and started \
    again, or both. In the meantime its file was opened without the server: whole pages, every row compared, and marked as stale. Silence \
    is from the interruption until the next page was kept.";
const STARTS: &str = "Figures elsewhere on this page are from the actual start of an exchange. From its intended start on, the wait for a \
    late start is included, so that a slow exchange cannot hide the delay of the next. Of a synchronisation in pages, both are of a single page.";
const INSTRUMENT: &str = "The laboratory's own process beside the processes that it measures: medians over forks, and of the latenesses \
    the largest of a fork. The share of the machine is of all its processors.";
const NOT_RECORDED: &str = "The processor time of the laboratory itself was not recorded.";
const OVERHEAD_TITLE: &str = "Bytes as the paper counts them, and the whole exchange";
const OVERHEAD: &str = "The paper counts packets that carry a message: NDU is 2p + x + y, POH (x + y) / 2, and claims are judged by that. \
    The full exchange also includes the packets that open, acknowledge and close.";
const BATTERIES_TITLE: &str = "Hours of a battery, modelled";
const BATTERIES: &str = "The packets of each fork, an exchange each `battery_period_ms` of the plan (500 ms in albertengo-2020) and up to 20 ms \
    late, by a model of the device's radio until the cell of a Nexus 7, 4,325 mAh, is empty. The radio alone: a processor, a screen and a \
    system would shorten all hours, so that these are upper bounds. Intervals are over forks.";
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

fn verdicts(account: &Account) -> Section {
    let section = Section::new("verdicts", "Verdicts");
    let Some(found) = &account.verdicts else { return section };
    let is_of_campaigns = account.results.is_of_campaigns();
    let who = if is_of_campaigns { campaigns::WHO_SPEAKS } else { WHO_SPEAKS };
    let over = runs::over(&account.results);
    let words = format!("{WORDS} {who} {over} {}", found.judged_at());
    let section = section
        .both(SectionBlock::Table(tables::tally(account), "tally"))
        .both(SectionBlock::Words(words.trim_end().to_owned()));
    judged_claims::blocks(account).into_iter().fold(section, Section::both)
}

const WORDS: &str = "Each sentence of the paper is judged twice: by the figures that the paper prints, and by ours. Figures in \
    parentheses are 95\u{a0}% intervals; a fork is a fresh pair of processes. Measured figures must be more than 5\u{a0}% apart, and a \
    claim must withstand a correction for the number of claims (Holm). A verdict names the difference that it could have seen, in four of \
    five repetitions. Figures are in the paper's own units.";
const WHO_SPEAKS: &str = "Only the software of the paper's time speaks for the paper.";

/// Returns the section of a plot. Figures of the paper are in both media, with their values.
fn drawing(account: &Account, plot: &Plot) -> Section {
    let section = Section::new(&plot.id, &plot.title).page(SectionBlock::Words(plot.words.clone()));
    if !plot.is_of_paper() {
        return section.page(SectionBlock::Html(format!("<div class=\"wide\">{}</div>\n", plot.svg)));
    }
    let folder = &account.remarks.figures;
    let file = if folder.is_empty() { String::new() } else { format!("{folder}/{}.svg", plot.id) };
    let alt = format!("{}; the values are in the table below", plot.title);
    let values = vec![SectionBlock::Table(plot.values.clone(), "")];
    section
        .both(SectionBlock::Figure { svg: plot.svg.clone(), file, alt })
        .both(SectionBlock::Folded("Values".to_owned(), values))
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

fn instrument_cost(account: &Account) -> Section {
    let section = Section::new("instrument", "The cost of the instrument");
    let table = instrument::costs(&account.results);
    if table.rows.is_empty() {
        return section.both(SectionBlock::List(vec![NOT_RECORDED.to_owned()]));
    }
    section.both(SectionBlock::Words(INSTRUMENT.to_owned())).both(SectionBlock::Table(table, ""))
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
