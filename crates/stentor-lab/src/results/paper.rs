//! The figures of each paper, and their computation from a fork of ours.

use super::basis::Basis;
use super::metric::{captured, client_load_percent, median, phase_ms};
use super::{MeasuredCell, Results, setting};
use crate::claims::figures::{Figure, FigureValue};
use crate::record::{FINISHED, ForkRecord, phase};

/// Milliseconds of a second.
const MS: f64 = 1000.0;
/// Bytes of the papers' kB.
const KB: f64 = 1000.0;
/// Bytes of the papers' MB.
const MB: f64 = 1e6;
/// Percent of a whole.
const PERCENT: f64 = 100.0;

/// A figure of a paper, with its computation from a fork.
pub(super) struct PaperReading {
    /// The part of the study in which the paper has it; empty for the part named in the record.
    pub(super) experiment: &'static str,
    /// Its name in the paper's figures.
    pub(super) metric: &'static str,
    /// The unit used in the paper.
    pub(super) unit: &'static str,
    /// Its basis.
    pub(super) basis: Basis,
    /// Computes the figure.
    pub(super) of: fn(&ForkRecord) -> Option<f64>,
}

const fn reading(
    experiment: &'static str,
    metric: &'static str,
    unit: &'static str,
    basis: Basis,
    of: fn(&ForkRecord) -> Option<f64>,
) -> PaperReading {
    PaperReading { experiment, metric, unit, basis, of }
}

/// Basis of the client's serialization; below those of its deserialization and of its waiting time.
const REQUESTING: Basis = Basis::Phases(&[phase::CLIENT_SER]);
const READING: Basis = Basis::Phases(&[phase::CLIENT_DESER]);
const WAITING: Basis = Basis::Phases(&[phase::REQUEST, phase::TRANSFER]);
/// Basis of the time from the opening of a connection to the first byte of the reply.
const CONNECTING: Basis = Basis::Phases(&[phase::REQUEST]);
/// Basis of shares of the server's time; the denominator includes all of its phases.
const OF_SERVER: Basis = Basis::Phases(&[phase::SERVER_SER, phase::SERVER_DESER]);

const ANACLETO: &[PaperReading] = &[
    reading("poi sync", "duration", "ms", Basis::Whole, median),
    reading("poi sync", "connecting and waiting", "ms", CONNECTING, |r| phase_ms(r, phase::REQUEST)),
    reading("poi sync", "CPU", "%", Basis::Whole, client_load_percent),
    reading("poi sync", "memory", "MB", Basis::Memory, |r| Some(r.mem.client? as f64 / MB)),
    reading("poi sync", "data received", "kB", Basis::Whole, |r| {
        captured(r).map(|(b, n)| b.down.ip as f64 / n / KB)
    }),
    reading("poi sync", "data sent", "kB", Basis::Whole, |r| {
        captured(r).map(|(b, n)| b.up.ip as f64 / n / KB)
    }),
];
const NUNES: &[PaperReading] = &[
    reading("client time", "total time", "s", Basis::Whole, seconds),
    reading("client time", "serialization share", "%", REQUESTING, |r| {
        share(phase_ms(r, phase::CLIENT_SER), median(r))
    }),
    reading("client time", "deserialization share", "%", READING, |r| {
        share(phase_ms(r, phase::CLIENT_DESER), median(r))
    }),
    reading("client time", "service share", "%", WAITING, |r| share(waited(r), median(r))),
    reading("server time", "total time", "s", Basis::Server, |r| server(r).map(|ms| ms / MS)),
    reading("server time", "serialization share", "%", OF_SERVER, |r| {
        share(phase_ms(r, phase::SERVER_SER), server(r))
    }),
    reading("server time", "deserialization share", "%", OF_SERVER, |r| {
        share(phase_ms(r, phase::SERVER_DESER), server(r))
    }),
    reading("server time", "service share", "%", OF_SERVER, |r| {
        share(phase_ms(r, phase::SERVER_WORK), server(r))
    }),
];
const CAI: &[PaperReading] = &[reading("", "latency", "s", Basis::Whole, seconds)];
/// Pushes of each test in the paper; only tests of this size have a comparable duration.
const PUSHES: u64 = 1_000_000;
const ISIKLIGIL: &[PaperReading] = &[
    reading("", "throughput", "push/s", Basis::Whole, ForkRecord::pushes_per_second),
    reading("", "duration", "s", Basis::Whole, whole_seconds),
    reading("", "finished share", "", Basis::Whole, finished_share),
];

/// Returns the duration of a test with as many pushes as the paper's.
fn whole_seconds(record: &ForkRecord) -> Option<f64> {
    Some(record.campaign.as_ref().filter(|one| one.pushes == PUSHES)?.wall_seconds)
}

/// Returns the share of a test's pushes that reached a final state.
fn finished_share(record: &ForkRecord) -> Option<f64> {
    let is_over = record.outcome == FINISHED;
    let one = record.campaign.as_ref().filter(|one| one.pushes > 0 && is_over)?;
    Some(1.0 - one.stuck as f64 / one.pushes as f64)
}

/// Lists the figures of a study's paper; those of albertengo-2020 are computed from several cells (`overhead`).
pub(super) fn readings(study: &str) -> &'static [PaperReading] {
    match study {
        "anacleto-2012" => ANACLETO,
        "nunes-2014" => NUNES,
        "cai-2009" => CAI,
        "isikligil-2017" => ISIKLIGIL,
        _ => &[],
    }
}

/// Returns the paper's time for a cell, in milliseconds; `None` for cells outside the paper's setting.
pub(super) fn published_ms(results: &Results, cell: &MeasuredCell) -> Option<f64> {
    if !setting::is_papers(results, cell) {
        return None;
    }
    let (experiment, metric, unit_ms) = match results.study.as_str() {
        "anacleto-2012" => ("poi sync", "duration", 1.0),
        "nunes-2014" => ("client time", "total time", MS),
        "cai-2009" => (cell.experiment.as_str(), "latency", MS),
        _ => return None,
    };
    let figures = results.dossier.as_ref()?.figures();
    let fits = |figure: &&Figure| {
        let is_here =
            |(name, level): (&String, &String)| cell.levels.get(name).is_none_or(|ours| ours == level);
        figure.kind == "published"
            && figure.experiment == experiment
            && figure.metric == metric
            && figure.subject == cell.subject
            && figure.factors.iter().all(is_here)
    };
    let mut found = figures.iter().filter(fits);
    match (found.next().map(|figure| &figure.value), found.next()) {
        (Some(FigureValue::Number(value)), None) => Some(value.value * unit_ms),
        _ => None,
    }
}

fn seconds(record: &ForkRecord) -> Option<f64> {
    Some(median(record)? / MS)
}

fn share(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let whole = whole.filter(|whole| *whole > 0.0)?;
    Some(PERCENT * part? / whole)
}

/// Returns the client's waiting time for the service.
fn waited(record: &ForkRecord) -> Option<f64> {
    Some(phase_ms(record, phase::REQUEST)? + phase_ms(record, phase::TRANSFER).unwrap_or_default())
}

fn server(record: &ForkRecord) -> Option<f64> {
    let parts = [phase::SERVER_DESER, phase::SERVER_WORK, phase::SERVER_SER];
    parts.into_iter().map(|part| phase_ms(record, part)).sum()
}
