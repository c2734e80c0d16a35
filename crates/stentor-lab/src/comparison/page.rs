//! A comparison as one self-contained HTML page, and as Markdown.

use super::{CandidateSummary, Comparison, MeasuredTime, by_purpose, drawing, sentence};
use crate::document::{TextTable, escape};
use crate::plot::short;
use crate::results::frame;
use crate::results::section::{Section, SectionBlock};
use crate::statistics::Estimate;
use std::collections::BTreeMap;
use stentor_rig::anatomy::PurposeBytes;

const TITLE: &str = "Comparison of services";
const METHOD: &str = "A fork is a run in fresh processes. Each round has one fork of each candidate, in a random order, so that a slow minute of \
    the machine meets all of them. Means are geometric, and intervals (95 %, Student's on logarithms) are over forks; those of \
    ratios are over the differences within rounds.";
const BYTES: &str = "Mean bytes of an exchange, counted on the link from the IP header on. Opening and closing of connections are spread over \
    the exchanges of a fork.";

/// Writes the page.
#[must_use]
pub fn page(comparison: &Comparison) -> String {
    let facts: String =
        facts(comparison).iter().map(|fact| format!("<span>{}</span>", escape(fact))).collect();
    let head = format!("<header><div><h1>{TITLE}</h1>\n<div class=\"facts\">{facts}</div></div></header>\n");
    frame(TITLE, &head, &sections(comparison))
}

/// Writes the tables as Markdown.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let head = format!("# {TITLE}\n\n{}\n", facts(comparison).join("; "));
    let sections = sections(comparison);
    let parts = [head].into_iter().chain(sections.iter().map(Section::text));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn facts(comparison: &Comparison) -> Vec<String> {
    let environment = &comparison.environment;
    let counted = comparison.forks.len() - comparison.uncounted().count();
    vec![
        format!("link {} ({})", comparison.link, environment.rig),
        format!("{counted} forks that count, {} that do not", comparison.uncounted().count()),
        format!("{} × {}", environment.cores, environment.cpu),
        format!("kernel {}", environment.kernel),
        format!("load {:.2}", environment.load_before),
    ]
}

fn sections(comparison: &Comparison) -> Vec<Section> {
    let summaries = comparison.summaries();
    let drawing = drawing::draw(comparison).map(|svg| format!("<div class=\"wide\">{svg}</div>\n"));
    let uncounted = comparison.uncounted().map(|fork| {
        let reason = fork.invalid_reason.clone().unwrap_or_default();
        [comparison.candidates[fork.candidate].name.clone(), fork.round.to_string(), reason]
    });
    vec![
        Section::new("result", "Result").both(SectionBlock::List(sentences(&summaries))),
        Section::new("times", "Times")
            .both(SectionBlock::Words(METHOD.to_owned()))
            .page(SectionBlock::Html(drawing.unwrap_or_default()))
            .both(SectionBlock::Table(times(&summaries), "")),
        Section::tabled("bytes", "Bytes by purpose", BYTES, bytes(&summaries), ""),
        Section::tabled(
            "",
            "Forks that do not count",
            "",
            TextTable::new(["candidate", "round", "reason"], uncounted),
            "words",
        ),
        Section::new("", "Run it again").both(SectionBlock::Command(comparison.command.clone())),
    ]
}

/// Describes the comparison in lines of text.
#[must_use]
pub fn describe(comparison: &Comparison) -> Vec<String> {
    let summaries = comparison.summaries();
    let candidate = |one: &CandidateSummary| {
        let first =
            one.first_seconds.as_ref().map(|time| format!(", first request {} ms", milliseconds(Some(time))));
        let bytes = one.bytes.as_ref().map(|[up, down]| {
            let all = |way: &BTreeMap<&'static str, f64>| short(way.values().sum());
            format!(", {} bytes up and {} down", all(up), all(down))
        });
        let (first, bytes) = (first.unwrap_or_default(), bytes.unwrap_or_default());
        format!(
            "{}: {} forks, {} ms{first}{bytes}",
            one.candidate.name,
            one.forks,
            milliseconds(one.seconds.as_ref())
        )
    };
    let ratios = if summaries.len() > 1 { sentences(&summaries) } else { Vec::new() };
    summaries.iter().map(candidate).chain(ratios).collect()
}

/// States each ratio to the first candidate; for a single candidate its time.
fn sentences(summaries: &[CandidateSummary]) -> Vec<String> {
    let Some((base, others)) = summaries.split_first() else { return Vec::new() };
    if others.is_empty() {
        let subject = match base.candidate.time {
            MeasuredTime::Run => "a run",
            MeasuredTime::Request => "a request",
        };
        return vec![format!(
            "{subject} of {} takes {} ms",
            base.candidate.name,
            milliseconds(base.seconds.as_ref())
        )];
    }
    let state = |one: &CandidateSummary| match &one.ratio {
        Some(ratio) => sentence(&one.candidate.name, &base.candidate.name, ratio),
        None => format!("{} and {}: too few rounds", one.candidate.name, base.candidate.name),
    };
    others.iter().map(state).collect()
}

fn times(summaries: &[CandidateSummary]) -> TextTable {
    let header = ["candidate", "forks", "time, ms (95 %)", "first request, ms", "ratio (95 %)"];
    let rows = summaries.iter().map(|one| {
        let ratio = one.ratio.and_then(|ratio| Some((ratio.ratio, ratio.low?, ratio.high?)));
        [
            one.candidate.name.clone(),
            one.forks.to_string(),
            milliseconds(one.seconds.as_ref()),
            milliseconds(one.first_seconds.as_ref()),
            ratio.map_or_else(
                || "–".to_owned(),
                |(ratio, low, high)| format!("{ratio:.3} ({low:.3} to {high:.3})"),
            ),
        ]
    });
    TextTable::new(header, rows)
}

/// Writes a time in milliseconds with its interval.
fn milliseconds(time: Option<&Estimate>) -> String {
    let ms = |seconds: f64| short(seconds * 1000.0);
    match time.map(|time| (time.mean, time.low, time.high)) {
        Some((mean, Some(low), Some(high))) => format!("{} ({} to {})", ms(mean), ms(low), ms(high)),
        Some((mean, ..)) => ms(mean),
        None => "–".to_owned(),
    }
}

fn bytes(summaries: &[CandidateSummary]) -> TextTable {
    let purposes = by_purpose(&PurposeBytes::default()).map(|(purpose, _)| purpose);
    let header = ["candidate", "way"].into_iter().chain(purposes).chain(["all"]).map(str::to_owned).collect();
    let row = |candidate: &str, way: &str, bytes: &BTreeMap<&'static str, f64>| -> Vec<String> {
        let means = purposes.into_iter().map(|purpose| short(bytes[purpose]));
        let all = short(bytes.values().sum());
        [candidate.to_owned(), way.to_owned()].into_iter().chain(means).chain([all]).collect()
    };
    let counted = summaries.iter().filter_map(|one| Some((one.candidate.name.as_str(), one.bytes.as_ref()?)));
    let rows =
        counted.flat_map(|(candidate, [up, down])| [row(candidate, "up", up), row(candidate, "down", down)]);
    TextTable { header, rows: rows.collect() }
}
