//! All figures of a fork: metrics, phases, layers of bytes, interruptions, energy; the common source of plots and tables.

use super::{METRICS, layers};
use crate::record::{ForkRecord, InterruptionOutcome};

/// Nanoseconds of a millisecond.
const MS: f64 = 1e6;
/// Millijoules of a joule.
const MILLI: f64 = 1000.0;
/// The kind of counted and timed figures.
const MEASURED: &str = "measured";

/// A figure of a fork.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ForkFigure {
    /// A short name for programs.
    pub(super) id: String,
    /// Its unit.
    pub(super) unit: &'static str,
    /// `measured`, or for energy `measured`, `imported` or `modelled`.
    pub(super) kind: String,
    /// The meter or the model of energy; otherwise empty.
    pub(super) model: String,
    /// The number.
    pub(super) value: f64,
}

impl ForkFigure {
    fn measured(id: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self { id: id.into(), unit, kind: MEASURED.into(), model: String::new(), value }
    }

    /// Returns true if both are the same figure of different forks.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.id, &self.kind, &self.model) == (&other.id, &other.kind, &other.model)
    }
}

/// Lists the figures of a fork; `payload` is the known size of its content.
pub(super) fn of(record: &ForkRecord, payload: Option<f64>) -> Vec<ForkFigure> {
    let metrics = METRICS.iter().filter_map(|metric| {
        let value = (metric.of)(record)?;
        Some(ForkFigure::measured(metric.id, metric.unit, value))
    });
    let phases = record.latency.iter();
    let phases = phases
        .map(|(name, times)| ForkFigure::measured(format!("phase_{name}"), "ms", times.p50 as f64 / MS));
    let layers = layers::of(record, payload).into_iter().flat_map(|parts| layers::IDS.into_iter().zip(parts));
    let layers = layers.map(|(id, bytes)| ForkFigure::measured(id, "B", bytes));
    let interruption = record.interruption.iter().flat_map(|found| interrupted(found, record.is_emulated()));
    let data = super::metric::data_bytes(record).map(|bytes| ForkFigure::measured("bytes_data", "B", bytes));
    metrics.chain(data).chain(phases).chain(layers).chain(interruption).chain(energy(record)).collect()
}

fn interrupted(found: &InterruptionOutcome, is_untimed: bool) -> Vec<ForkFigure> {
    let count = |id: &str, value: u64| ForkFigure::measured(format!("interruption_{id}"), "", value as f64);
    let time = |id: &str, ns: u64| ForkFigure::measured(format!("interruption_{id}"), "ms", ns as f64 / MS);
    let mut all = vec![
        count("pages", found.pages),
        count("pages_kept", found.pages_kept),
        count("pages_again", found.pages_again),
        count("rows_offline", found.rows_offline),
    ];
    if !is_untimed {
        all.extend([time("silence", found.silence_ns), time("offline", found.offline_ns)]);
    }
    all
}

fn energy(record: &ForkRecord) -> impl Iterator<Item = ForkFigure> {
    let wholes = super::metric::wholes(record).unwrap_or(1.0);
    record.energy.iter().filter_map(move |energy| {
        Some(ForkFigure {
            id: format!("energy_{}", energy.name().replace(' ', "_")),
            unit: "mJ",
            kind: energy.kind.word().to_owned(),
            model: energy.model.clone(),
            value: MILLI * energy.joule? / wholes,
        })
    })
}
