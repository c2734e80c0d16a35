//! Energy of a fork by the models of its study; nothing is measured here.

use crate::energy::battery::{BatteryCell, Discharge, MAH_OF_NEXUS_7};
use crate::energy::coefficients::{Bound, RadioModel};
use crate::energy::exchanges::{ExchangeTimes, ReplyTimes, TraceExchanges};
use crate::energy::pcap::CaptureContents;
use crate::energy::processor::Processor;
use crate::energy::radio::simulate;
use crate::energy::trace::PacketTrace;
use crate::energy::{EnergyError, EnergySide, EnergySource, EnergyValue};
use crate::record::modelled::of_fork;
use crate::record::{BATTERY_BY_EXCHANGE, ForkRecord};
use crate::subject::sample::ClientSample;
use std::net::IpAddr;
use std::path::Path;

/// Maximum delay of an exchange in the paper's battery test, which prevents synchronization.
const JITTER_NS: i64 = 20_000_000;
const MILLISECOND_NS: i64 = 1_000_000;

/// The energy models of a study, by name; empty for none.
#[derive(Debug, Clone, Default)]
pub struct Models {
    /// The processor model, applied to CPU time.
    pub processor: String,
    /// The radio model, applied to captured packets.
    pub radio: String,
    /// Interval between exchanges while the battery empties; see [`crate::plan::StudyPlan::battery_period_ms`].
    pub battery_period_ms: Option<u32>,
}

/// The capture of a fork, with the times of its exchanges.
pub(super) struct TimedCapture<'a> {
    pub(super) file: &'a Path,
    pub(super) device: IpAddr,
    /// The client's samples.
    pub(super) samples: &'a [ClientSample],
    /// The offset from the clock of the samples to that of the capture.
    pub(super) epoch_ns: i64,
}

impl TimedCapture<'_> {
    /// Returns the times of the exchanges in the clock of the capture.
    fn times(&self) -> Vec<ExchangeTimes> {
        let at = |time_ns: i64| time_ns + self.epoch_ns;
        let times = self.samples.iter().map(|sample| {
            // Some clients do not note when an exchange began that failed.
            let start_ns = at(if sample.t_start > 0 { sample.t_start } else { sample.t_intended });
            let reply = ReplyTimes { first_ns: at(sample.t_first_byte), last_ns: at(sample.t_end) };
            ExchangeTimes { start_ns, reply: (sample.status == 0).then_some(reply) }
        });
        times.collect()
    }
}

/// Adds energy to a record: of both processors, and of the radio if packets were kept.
pub(super) fn add(record: &mut ForkRecord, models: &Models, capture: &TimedCapture<'_>) {
    let processor = Processor::all().into_iter().find(|one| one.id == models.processor);
    let sides = processor.map(|processor| of_fork(record, &processor)).unwrap_or_default();
    let client = sides.iter().find(|one| one.side == EnergySide::Client).and_then(|one| one.joule);
    let trace = trace_of(capture.file, capture.device);
    // A failing model leaves this fork without the energy of its radio.
    record.energy = trace.as_ref().and_then(|trace| radio_energy(models, trace).ok()).unwrap_or_default();
    record.energy.extend(sides);
    let exchanges = trace.and_then(|trace| TraceExchanges::timed(&trace, &capture.times()).ok());
    let hours = exchanges.as_ref().zip(client).and_then(|(exchanges, joule)| {
        battery_hours(models, exchanges, joule / capture.samples.len().max(1) as f64, record.seed)
    });
    record.battery_cut = hours.map(|_| BATTERY_BY_EXCHANGE.to_owned()).unwrap_or_default();
    record.battery_hours = hours;
}

/// Reads the packets of a device from a capture; `None` if there are none.
fn trace_of(capture: &Path, device: IpAddr) -> Option<PacketTrace> {
    let bytes = std::fs::read(capture).ok()?;
    CaptureContents::read(&bytes).ok()?.trace(device).not_empty().ok()
}

/// Returns the energy of the radio for the packets; nothing without a model of it.
fn radio_energy(models: &Models, trace: &PacketTrace) -> Result<Vec<EnergyValue>, EnergyError> {
    if models.radio.is_empty() {
        return Ok(Vec::new());
    }
    let unknown = || EnergyError::Senseless(format!("there is no radio {}", models.radio));
    let model = RadioModel::built_in(&models.radio).ok_or_else(unknown)?;
    Ok(simulate(&model, Bound::Value, trace)?.value(EnergySide::Client).into_iter().collect())
}

/// Discharges the paper's battery with these exchanges, each of which costs the client's processor `joule`. The seed decides
/// the delays of the exchanges.
fn battery_hours(models: &Models, exchanges: &TraceExchanges, joule: f64, seed: u64) -> Option<f64> {
    let period_ms = models.battery_period_ms.filter(|period| *period > 0)?;
    let discharge = Discharge {
        model: &RadioModel::built_in(&models.radio)?,
        exchanges,
        period_ns: i64::from(period_ms) * MILLISECOND_NS,
        jitter_ns: JITTER_NS,
        cell: BatteryCell::full(MAH_OF_NEXUS_7).ok()?,
        base_w: joule * 1000.0 / f64::from(period_ms),
    };
    Some(discharge.run(seed, Bound::Value, |_| {}).ok()?.hours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::trace::{Direction, TracePacket};

    #[test]
    fn times_of_samples_are_in_the_clock_of_the_capture_and_a_failed_exchange_has_no_reply() {
        let answered = ClientSample {
            t_intended: 90,
            t_start: 100,
            t_first_byte: 300,
            t_end: 400,
            ..Default::default()
        };
        let failed = ClientSample { t_intended: 500, status: 1, ..Default::default() };
        let capture = TimedCapture {
            file: Path::new("/nowhere.pcap"),
            device: std::net::Ipv4Addr::LOCALHOST.into(),
            samples: &[answered, failed],
            epoch_ns: 1_000,
        };
        let reply = Some(ReplyTimes { first_ns: 1_300, last_ns: 1_400 });
        let expected =
            [ExchangeTimes { start_ns: 1_100, reply }, ExchangeTimes { start_ns: 1_500, reply: None }];
        assert_eq!(capture.times(), expected);
    }

    #[test]
    fn what_was_captured_and_computed_becomes_values_and_what_was_not_becomes_none() {
        let trace = PacketTrace::new(vec![TracePacket::new(0, Direction::Up, 300)]);
        let by = |radio: &str| {
            let models = Models { radio: radio.to_owned(), ..Models::default() };
            radio_energy(&models, &trace)
        };
        for radio in ["wifi-s2", "lte"] {
            let values = by(radio).expect("values");
            let labels: Vec<String> =
                values.iter().map(|one| format!("{} {}", one.kind.word(), one.name())).collect();
            assert_eq!(labels, ["modelled client radio"]);
            assert!(values.iter().all(|one| one.joule.is_some() && !one.coefficients_ref.is_empty()));
        }
        assert!(by("5g").is_err());
        assert!(by("").expect("nothing").is_empty());
        assert_eq!(trace_of(Path::new("/nowhere.pcap"), std::net::Ipv4Addr::LOCALHOST.into()), None);
    }
}
