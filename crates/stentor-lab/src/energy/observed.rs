//! All energy that can be told of one run, from whatever was observed of it: for records and reports.

use super::coefficients::{Bound, RadioModel};
use super::pcap::CaptureContents;
use super::phases::{self, ExchangePhases};
use super::processor::Processor;
use super::radio::simulate;
use super::value::{EnergySide, EnergySource, EnergyValue};
use super::{EnergyError, trace::PacketTrace};
use std::net::IpAddr;
use std::path::Path;

/// What was observed of a run; what is absent is left out of its values.
#[derive(Default)]
pub struct Observed<'a> {
    /// What the client's radio carried.
    pub trace: Option<&'a PacketTrace>,
    /// The radios to model, by their short names (`coefficients::RADIOS`).
    pub radios: &'a [&'a str],
    /// CPU seconds of each side.
    pub cpu_seconds: &'a [(EnergySide, f64)],
    /// What a CPU second costs.
    pub processor: Option<&'a Processor>,
    /// A meter that was read meanwhile, and on which side it was.
    pub meter: Option<(EnergySide, &'a dyn EnergySource)>,
    /// The exchanges as the meter's side saw them.
    pub exchanges: &'a [ExchangePhases],
}

/// Reads the packets of a device from a capture.
pub fn trace_of(capture: &Path, device: IpAddr) -> Result<PacketTrace, EnergyError> {
    let bytes = std::fs::read(capture).map_err(EnergyError::io(capture.display().to_string()))?;
    CaptureContents::read(&bytes)?.trace(device).not_empty()
}

impl Observed<'_> {
    /// Returns everything that can be told: the meter's total, or its phases where exchanges are known; each radio; each
    /// side's processor.
    pub fn values(&self) -> Result<Vec<EnergyValue>, EnergyError> {
        let mut values = Vec::new();
        if let Some((side, meter)) = self.meter {
            if self.exchanges.is_empty() {
                values.extend(meter.value(side));
            } else {
                let phases = phases::energy(meter, side, self.exchanges)?;
                values.extend(phases.into_iter().map(|phase| phase.value));
            }
        }
        let pairs = self.trace.into_iter().flat_map(|trace| self.radios.iter().map(move |id| (trace, id)));
        for (trace, id) in pairs {
            let unknown = || EnergyError::Senseless(format!("there is no radio {id}"));
            let model = RadioModel::built_in(id).ok_or_else(unknown)?;
            values.extend(simulate(&model, Bound::Value, trace)?.value(EnergySide::Client));
        }
        let processor = self.processor.into_iter();
        let of_sides =
            processor.flat_map(|one| self.cpu_seconds.iter().map(|(side, cpu)| one.energy(*side, *cpu)));
        values.extend(of_sides);
        Ok(values)
    }
}
