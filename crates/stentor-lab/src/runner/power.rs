//! What a fork cost in energy, by the models that its study names: nothing of it is measured here.

use crate::energy::EnergySide;
use crate::energy::observed::{Observed, trace_of};
use crate::energy::processor::Processor;
use crate::record::ForkRecord;
use std::net::IpAddr;
use std::path::Path;

/// The models of a study, by the names that energy knows them by; empty for none.
#[derive(Debug, Clone, Default)]
pub struct Models {
    /// The processor whose watts a second of computing costs.
    pub processor: String,
    /// The radio that carried the packets of a capture.
    pub radio: String,
}

/// Adds energy to a record: of both processors, and of the radio where packets were kept.
pub(super) fn add(record: &mut ForkRecord, models: &Models, capture: &Path, device: IpAddr) {
    let processors = Processor::all();
    let processor = processors.iter().find(|one| one.id == models.processor);
    let sides = [(EnergySide::Client, record.cpu.client), (EnergySide::Server, record.cpu.server)];
    let cpu_seconds: Vec<(EnergySide, f64)> =
        sides.into_iter().filter_map(|(side, cpu_ns)| Some((side, cpu_ns? as f64 / 1e9))).collect();
    let trace = if capture.exists() { trace_of(capture, device).ok() } else { None };
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
}
