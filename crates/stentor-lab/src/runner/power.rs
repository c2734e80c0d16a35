//! What a fork cost in energy, by the models that its study names: nothing of it is measured here.

use crate::energy::EnergySide;
use crate::energy::battery::{BatteryCell, Discharge, MAH_OF_NEXUS_7};
use crate::energy::coefficients::{Bound, RadioModel};
use crate::energy::observed::{Observed, trace_of};
use crate::energy::processor::Processor;
use crate::energy::trace::PacketTrace;
use crate::record::ForkRecord;
use std::net::IpAddr;
use std::path::Path;

/// What the paper's test of a battery begins late at most, so that nothing falls into step.
const JITTER_NS: i64 = 20_000_000;
const MILLISECOND_NS: i64 = 1_000_000;

/// The models of a study, by the names that energy knows them by; empty for none.
#[derive(Debug, Clone, Default)]
pub struct Models {
    /// The processor whose watts a second of computing costs.
    pub processor: String,
    /// The radio that carried the packets of a capture.
    pub radio: String,
    /// How often a client makes an exchange while its battery empties; see [`crate::plan::StudyPlan::battery_period_ms`].
    pub battery_period_ms: Option<u32>,
}

/// What was captured of a fork, and at which pace.
pub(super) struct PacedCapture<'a> {
    pub(super) file: &'a Path,
    pub(super) device: IpAddr,
    pub(super) exchanges: u32,
    pub(super) interval_ns: u64,
}

/// Adds energy to a record: of both processors, and of the radio where packets were kept.
pub(super) fn add(record: &mut ForkRecord, models: &Models, capture: &PacedCapture<'_>) {
    let processors = Processor::all();
    let processor = processors.iter().find(|one| one.id == models.processor);
    let sides = [(EnergySide::Client, record.cpu.client), (EnergySide::Server, record.cpu.server)];
    let cpu_seconds: Vec<(EnergySide, f64)> =
        sides.into_iter().filter_map(|(side, cpu_ns)| Some((side, cpu_ns? as f64 / 1e9))).collect();
    let trace = if capture.file.exists() { trace_of(capture.file, capture.device).ok() } else { None };
    let radios = if models.radio.is_empty() { Vec::new() } else { vec![models.radio.as_str()] };
    let observed = Observed {
        trace: trace.as_ref(),
        radios: &radios,
        cpu_seconds: &cpu_seconds,
        processor,
        ..Observed::default()
    };
    // A model that fails has nothing to say about this fork.
    record.energy = observed.values().unwrap_or_default();
    let client = cpu_seconds.first().filter(|(side, _)| *side == EnergySide::Client);
    record.battery_hours =
        trace.as_ref().zip(client.zip(processor)).and_then(|(trace, (client, processor))| {
            let joule = client.1 / f64::from(capture.exchanges.max(1)) * processor.watt.value;
            battery_hours(models, trace, capture.interval_ns, joule)
        });
}

/// Empties the battery of the paper with these exchanges, each of which costs the client's processor so many joules.
fn battery_hours(models: &Models, trace: &PacketTrace, interval_ns: u64, joule: f64) -> Option<f64> {
    let period_ms = models.battery_period_ms.filter(|period| *period > 0)?;
    let discharge = Discharge {
        model: &RadioModel::built_in(&models.radio)?,
        trace,
        period_ns: i64::from(period_ms) * MILLISECOND_NS,
        captured_every_ns: i64::try_from(interval_ns).ok()?,
        jitter_ns: JITTER_NS,
        cell: BatteryCell::full(MAH_OF_NEXUS_7).ok()?,
        base_w: joule * 1000.0 / f64::from(period_ms),
    };
    Some(discharge.run(1, Bound::Value, |_| {}).ok()?.hours)
}
