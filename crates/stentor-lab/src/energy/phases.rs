//! Energy by phase and side: a meter's readings joined with the phases of a subject's exchanges.

use super::value::{EnergySide, EnergySource, EnergyValue, PhaseName};
use super::{EnergyError, seconds};
use crate::subject::sample::{ClientSample, SAMPLE_BYTES, ServerSample};
use serde::Serialize;
use std::path::Path;

/// The phases of one exchange on one side, in order, in nanoseconds of the monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangePhases {
    phases: [(PhaseName, i64, i64); 3],
}

impl From<&ClientSample> for ExchangePhases {
    fn from(of: &ClientSample) -> Self {
        let phases = [
            (PhaseName::Serialize, of.t_start, of.t_ser_end),
            (PhaseName::Service, of.t_ser_end, of.t_end),
            (PhaseName::Deserialize, of.t_end, of.t_deser_end),
        ];
        Self { phases }
    }
}

impl From<&ServerSample> for ExchangePhases {
    fn from(of: &ServerSample) -> Self {
        let phases = [
            (PhaseName::Deserialize, of.t_recv, of.t_deser_end),
            (PhaseName::Service, of.t_deser_end, of.t_work_end),
            (PhaseName::Serialize, of.t_work_end, of.t_ser_end),
        ];
        Self { phases }
    }
}

impl ExchangePhases {
    /// Reads the samples that a subject wrote (LSP-1), without those that have no response.
    pub fn read(path: &Path, side: EnergySide) -> Result<Vec<Self>, EnergyError> {
        let bytes = std::fs::read(path).map_err(EnergyError::io(path.display().to_string()))?;
        let (samples, rest) = bytes.as_chunks::<SAMPLE_BYTES>();
        if !rest.is_empty() {
            let problem = format!("{} bytes of samples are no multiple of {SAMPLE_BYTES}", bytes.len());
            return Err(EnergyError::Senseless(problem));
        }
        let exchange = |bytes: &[u8; SAMPLE_BYTES]| match side {
            EnergySide::Server => {
                Some(ServerSample::of_bytes(bytes)).filter(|one| one.status == 0).as_ref().map(Self::from)
            }
            _ => Some(ClientSample::of_bytes(bytes)).filter(|one| one.status == 0).as_ref().map(Self::from),
        };
        Ok(samples.iter().filter_map(exchange).collect())
    }

    const fn span(&self) -> (i64, i64) {
        (self.phases[0].1, self.phases[2].2)
    }

    fn is_in_order(&self) -> bool {
        let instants = self.phases.iter().flat_map(|(_, from, to)| [*from, *to]);
        instants.is_sorted() && self.phases[0].1 > 0
    }
}

/// Energy of one phase over all exchanges.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseEnergy {
    /// The energy, or an unresolved value.
    #[serde(flatten)]
    pub value: EnergyValue,
    /// Occurrences of the phase.
    pub times: usize,
    /// Total duration.
    pub seconds: f64,
    /// Mean energy per occurrence.
    pub joule_mean: Option<f64>,
    /// Occurrences shorter than the meter's period; all of them if exchanges overlap.
    pub times_unresolved: usize,
    /// The reason for a missing value; empty if there is a value.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'static str,
}

/// The time spans of one phase.
struct PhaseSpans {
    name: PhaseName,
    spans: Vec<(i64, i64)>,
}

const TOO_SHORT: &str = "shorter than the meter's period";
const OVERLAP: &str = "exchanges overlap: their energy cannot be separated";

/// Returns the energy of each phase, of the gaps, and in total, from the start of the first exchange to the end of the last one.
///
/// A phase is unresolved if any occurrence is shorter than the meter's period. It then has no value at all, because the longer occurrences
/// would not represent it.
pub fn energy(
    source: &dyn EnergySource,
    side: EnergySide,
    exchanges: &[ExchangePhases],
) -> Result<Vec<PhaseEnergy>, EnergyError> {
    let (from, to) = bounds(exchanges)?;
    let total = PhaseSpans { name: PhaseName::Total, spans: vec![(from, to)] };
    let all = covered(source, from, to)?;
    let overlap = exchanges.windows(2).any(|pair| pair[1].span().0 < pair[0].span().1);
    let names = [PhaseName::Serialize, PhaseName::Deserialize, PhaseName::Service];
    let mut parts: Vec<PhaseSpans> = names.into_iter().map(|name| of_name(exchanges, name)).collect();
    parts.push(PhaseSpans { name: PhaseName::Others, spans: gaps(exchanges) });
    let mut energies: Vec<PhaseEnergy> = parts
        .iter()
        .map(|part| if overlap { none(source, side, part, OVERLAP) } else { resolve(source, side, part) })
        .collect();
    let mut whole = resolve(source, side, &total);
    if whole.value.joule.is_some() {
        whole.value =
            EnergyValue::of(PhaseName::Total.word(), side, all, seconds(to - from), source.origin());
    }
    energies.push(whole);
    Ok(energies)
}

fn bounds(exchanges: &[ExchangePhases]) -> Result<(i64, i64), EnergyError> {
    if let Some(place) = exchanges.iter().position(|exchange| !exchange.is_in_order()) {
        return Err(EnergyError::Senseless(format!("sample {place}: its times do not follow each other")));
    }
    if !exchanges.is_sorted_by_key(|exchange| exchange.span().0) {
        return Err(EnergyError::Senseless("the samples are not in the order of their start".into()));
    }
    let first = exchanges.first().map(|exchange| exchange.span().0);
    let last = exchanges.iter().map(|exchange| exchange.span().1).max();
    first.zip(last).ok_or_else(|| EnergyError::Missing("there is no sample".into()))
}

fn covered(source: &dyn EnergySource, from: i64, to: i64) -> Result<f64, EnergyError> {
    source.joules(from, to).ok_or_else(|| {
        let (first, last) = source.span_ns().unwrap_or_default();
        EnergyError::Missing(format!(
            "the meter knows {:.3} s to {:.3} s, the samples lie between {:.3} s and {:.3} s: shift the meter's clock with --offset-seconds",
            seconds(first),
            seconds(last),
            seconds(from),
            seconds(to)
        ))
    })
}

fn of_name(exchanges: &[ExchangePhases], name: PhaseName) -> PhaseSpans {
    let all = exchanges.iter().flat_map(|exchange| exchange.phases);
    let spans = all.filter(|(phase, ..)| *phase == name).map(|(_, from, to)| (from, to));
    PhaseSpans { name, spans: spans.collect() }
}

/// Returns the time spans between exchanges.
fn gaps(exchanges: &[ExchangePhases]) -> Vec<(i64, i64)> {
    let gaps = exchanges.windows(2).map(|pair| (pair[0].span().1, pair[1].span().0));
    gaps.filter(|(from, to)| to > from).collect()
}

fn resolve(source: &dyn EnergySource, side: EnergySide, part: &PhaseSpans) -> PhaseEnergy {
    let is_short = |(from, to): &&(i64, i64)| to - from < source.period_ns();
    let times_unresolved = part.spans.iter().filter(is_short).count();
    let joules: Option<Vec<f64>> = part.spans.iter().map(|(from, to)| source.joules(*from, *to)).collect();
    let Some(joules) = joules.filter(|_| times_unresolved == 0) else {
        return PhaseEnergy { times_unresolved, ..none(source, side, part, TOO_SHORT) };
    };
    let (sum, lasted) = (joules.iter().sum::<f64>(), lasted(part));
    PhaseEnergy {
        value: EnergyValue::of(part.name.word(), side, sum, lasted, source.origin()),
        times: part.spans.len(),
        seconds: lasted,
        joule_mean: (!joules.is_empty()).then(|| sum / joules.len() as f64),
        times_unresolved: 0,
        reason: "",
    }
}

fn none(source: &dyn EnergySource, side: EnergySide, part: &PhaseSpans, reason: &'static str) -> PhaseEnergy {
    PhaseEnergy {
        value: EnergyValue::unresolved(part.name.word(), side, source.origin()),
        times: part.spans.len(),
        seconds: lasted(part),
        joule_mean: None,
        times_unresolved: part.spans.len(),
        reason,
    }
}

fn lasted(part: &PhaseSpans) -> f64 {
    seconds(part.spans.iter().map(|(from, to)| to - from).sum())
}
