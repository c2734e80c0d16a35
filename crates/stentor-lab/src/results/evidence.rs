//! Our figures in the terms of the papers, so that their claims can be judged by them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::basis::{Basis, marked};
use super::metric::phase_ms;
use super::overhead;
use super::own_figure::make;
use super::paper::{self, PaperReading};
use super::setting::SettingLevels;
use super::sheet::quoted;
use super::{MeasuredCell, Results, published, setting};
use crate::claims::figures::{Figure, FigureValue, Figures, Interval};
use crate::record::{FINISHED, ForkRecord, phase};
use crate::statistics::Replicates;

const HEADER: &str = "paper,source,experiment,subject,factors,metric,stat,value,unit,kind,note,low,high";
/// Milliseconds of a second.
const MS: f64 = 1000.0;

/// Writes our figures with the columns of the published ones.
#[must_use]
pub fn figures_csv(results: &Results, confidence: f64) -> String {
    let mut text = format!("{HEADER}\n");
    for figure in figures(results, &chosen(results, true), confidence).iter() {
        let factors: Vec<String> =
            figure.factors.iter().map(|(name, level)| format!("{name}={level}")).collect();
        let (value, low, high) = match &figure.value {
            FigureValue::Number(interval) => bounds(*interval),
            FigureValue::Word(word) => (word.clone(), String::new(), String::new()),
            FigureValue::Absent => continue,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{},stentor,{},{},{},{},{},{value},{},{},{},{low},{high}",
            results.study,
            quoted(&figure.experiment),
            quoted(&figure.subject),
            quoted(&factors.join(";")),
            quoted(&figure.metric),
            quoted(&figure.stat),
            figure.unit,
            quoted(&figure.kind),
            quoted(&figure.note)
        );
    }
    text
}

/// Returns value and bounds as text. The unbounded interval of a single fork is left empty.
fn bounds(interval: Interval) -> (String, String, String) {
    let value = interval.value.to_string();
    let is_open = interval.is_open();
    let end = |end: f64| if is_open { String::new() } else { end.to_string() };
    (value, end(interval.low), end(interval.high))
}

/// Selects the cells that represent the paper: those of the period's software or of its substitute, in the paper's variant if there are
/// several variants, on one platform, in the paper's setting, and at one level of each factor that the paper does not have.
pub(super) fn chosen(results: &Results, period: bool) -> Vec<&MeasuredCell> {
    chosen_at(results, period, &results.setting)
}

/// Selects the cells as [`chosen`], at a given setting.
pub(super) fn chosen_at<'a>(
    results: &'a Results,
    period: bool,
    setting: &SettingLevels,
) -> Vec<&'a MeasuredCell> {
    if results.is_of_campaigns() {
        // A claim names the tests that it compares, so that those beyond the paper may be among them.
        return results.cells.iter().filter(|_| period).collect();
    }
    // The project's own server responds with its own data, which the paper's claims do not cover.
    let of_stack =
        |cell: &&MeasuredCell| cell.is_period() == period && cell.stack != crate::subject::SERVED_STACK;
    let cells: Vec<&MeasuredCell> = results.cells.iter().filter(of_stack).collect();
    let has_paper = cells.iter().any(|cell| cell.variant == "paper");
    let known = published::factors(results);
    let is_set = |factor: &str| setting.contains_key(factor);
    let extra = |cell: &MeasuredCell| {
        let levels = cell.levels.iter().filter(|(name, _)| !known.contains(name.as_str()) && !is_set(name));
        let mut levels: Vec<(String, String)> =
            levels.map(|(name, level)| (name.clone(), level.clone())).collect();
        levels.push(("link".into(), cell.link.clone()));
        (levels, platform(&cell.stack).to_owned())
    };
    let spoken = published::subjects(results);
    let readable = |cell: &&MeasuredCell| {
        let is_spoken = spoken.is_empty() || spoken.contains(cell.subject.as_str());
        let is_set = setting::fits(results, cell, setting) || setting::is_elsewhere(results, cell, setting);
        is_spoken && is_set && (!has_paper || cell.variant == "paper")
    };
    let place = |cell: &MeasuredCell| {
        let levels = cell.levels.iter().filter(|(name, _)| !is_set(name));
        let levels: Vec<(String, String)> =
            levels.map(|(name, level)| (name.clone(), level.clone())).collect();
        (cell.experiment.clone(), cell.subject.clone(), levels)
    };
    let cells: Vec<&MeasuredCell> = cells.into_iter().filter(readable).collect();
    let mut settings: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for cell in &cells {
        settings.entry(extra(cell)).or_default().insert(place(cell));
    }
    // The setting that covers the most cells of the paper. Among equals the first by the names of levels, on our own platform.
    let usual = settings.into_iter().max_by(|((one, here), places), ((other, there), others)| {
        places.len().cmp(&others.len()).then_with(|| other.cmp(one)).then_with(|| here.cmp(there))
    });
    let Some((usual, _)) = usual else { return Vec::new() };
    let mut taken: Vec<&MeasuredCell> = Vec::new();
    for cell in cells {
        let is_new = |other: &&MeasuredCell| place(other) != place(cell);
        if extra(cell) == usual && taken.iter().all(is_new) {
            taken.push(cell);
        }
    }
    taken
}

/// Returns the platform of a stack; only frameworks on the same platform are compared.
fn platform(stack: &str) -> &str {
    stack.rsplit_once('/').map_or(stack, |(_, platform)| platform)
}

/// Converts cells to figures in the terms of the paper.
pub(super) fn figures(results: &Results, cells: &[&MeasuredCell], confidence: f64) -> Figures {
    let mut figures: Vec<Figure> = Vec::new();
    for cell in cells {
        for reading in paper::readings(&results.study) {
            figures.extend(figure(cell, reading, confidence));
        }
        figures.extend(outcome(results, cell));
        figures.extend(xml_times(results, cell, confidence));
    }
    if results.study == "albertengo-2020" {
        figures.extend(overhead::figures(cells, confidence));
    }
    figures.extend(file_sizes(results, cells, confidence));
    figures.into_iter().collect()
}

fn figure(cell: &MeasuredCell, reading: &PaperReading, confidence: f64) -> Option<Figure> {
    if cell.experiment == FILE_PARSING {
        // Its exchanges bring the file; the paper timed the parsing alone.
        return None;
    }
    let values = cell.replicates(reading.of);
    let experiment = if reading.experiment.is_empty() { &cell.experiment } else { reading.experiment };
    let figure = make(cell, experiment, reading.metric, reading.unit, &values, confidence)?;
    Some(marked(figure, cell, reading.basis))
}

/// The part of cai-2009 whose client reads a file, as in the paper's table 2; below the paper's name for it.
const FILE_PARSING: &str = "XML parsing (file)";
const PLAIN: &str = "query latency (plain PHP)";
const XML_PARSING: &str = "XML parsing";
/// Phases in which both sides read or write XML.
const XML_PHASES: [&str; 4] =
    [phase::CLIENT_SER, phase::SERVER_DESER, phase::SERVER_SER, phase::CLIENT_DESER];

/// Returns what XML takes with strings: the client's parsing, which cai-2009 measured separately, and the parsing and formatting of
/// both sides.
fn xml_times(results: &Results, cell: &MeasuredCell, confidence: f64) -> Vec<Figure> {
    let is = |name: &str, level: &str| cell.levels.get(name).is_some_and(|ours| ours == level);
    if cell.experiment == FILE_PARSING {
        return xml_time(cell, XML_PARSING, "strings", &[phase::CLIENT_DESER], confidence)
            .into_iter()
            .collect();
    }
    // The plain implementation of figure 2 is none of those whose parsing the claims mean.
    if results.study != "cai-2009" || !is("type", "String") || cell.experiment == PLAIN {
        return Vec::new();
    }
    let parts: [(&str, &'static [&'static str]); 2] =
        [(XML_PARSING, &[phase::CLIENT_DESER]), ("XML parsing and formatting", &XML_PHASES)];
    parts.into_iter().filter_map(|(name, phases)| xml_time(cell, name, "items", phases, confidence)).collect()
}

fn xml_time(
    cell: &MeasuredCell,
    experiment: &str,
    count: &str,
    phases: &'static [&'static str],
    confidence: f64,
) -> Option<Figure> {
    let seconds = |fork: &ForkRecord| {
        let ms = phases.iter().map(|phase| phase_ms(fork, phase)).sum::<Option<f64>>()?;
        Some(ms / MS)
    };
    let values = cell.replicates(seconds);
    let figure = make(cell, experiment, "latency", "s", &values, confidence)?;
    let factors = BTreeMap::from([("strings".to_owned(), cell.levels.get(count)?.clone())]);
    Some(marked(Figure { factors, ..figure }, cell, Basis::Phases(phases)))
}

/// Returns the outcome of forks as a figure, if one did not finish, or if the paper reports outcomes.
fn outcome(results: &Results, cell: &MeasuredCell) -> Option<Figure> {
    let is_told = published::has(results, "outcome") && !cell.forks.is_empty();
    let word = cell.outcome().or(is_told.then_some(FINISHED))?;
    let word = if word.eq_ignore_ascii_case("out of memory") { "Out of Memory" } else { word };
    let mut figure = make(cell, &cell.experiment, "outcome", "", &cell.replicates(|_| Some(1.0)), 0.95)?;
    let agreeing = cell.forks.iter().filter(|fork| fork.outcome.eq_ignore_ascii_case(word)).count();
    figure.value = FigureValue::Word(word.to_owned());
    figure.note = format!("{agreeing} of {} forks", cell.forks.len());
    figure.forks = u32::try_from(agreeing).ok();
    figure.replicates = Replicates::default();
    Some(figure)
}

/// Returns the file sizes by format, that is, the size of a response's body.
fn file_sizes(results: &Results, cells: &[&MeasuredCell], confidence: f64) -> Vec<Figure> {
    if results.study != "anacleto-2012" {
        return Vec::new();
    }
    let formats = [("HTTP XML SAX", "XML"), ("HTTP JSON", "JSON"), ("HTTP PROBUF", "ProtocolBuffers")];
    let of = |cell: &&MeasuredCell| {
        let (_, format) = formats.iter().find(|(subject, _)| *subject == cell.subject)?;
        let size = |fork: &ForkRecord| {
            let bytes = fork.bytes.as_ref().filter(|bytes| bytes.exchanges > 0 && bytes.down.app > 0)?;
            Some(bytes.down.app as f64 / bytes.exchanges as f64 / 1000.0)
        };
        let sizes = cell.replicates(size);
        let mut figure = make(cell, "file size", "file size", "kB", &sizes, confidence)?;
        (*format).clone_into(&mut figure.subject);
        Some(figure)
    };
    cells.iter().filter_map(of).collect()
}
