//! Energy of a fork by the models of its study; nothing is measured here.

use crate::energy::battery::{BatteryCell, BatteryEstimate, Discharge, MAH_OF_NEXUS_7};
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
/// A cell of this part of the charge is emptied; its hours are as many times longer.
const BATTERY_PART: f64 = 10.0;

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
    let trace = trace_of(capture.file, capture.device);
    // A failing model leaves this fork without the energy of its radio.
    record.energy = trace.as_ref().and_then(|trace| radio_energy(models, trace).ok()).unwrap_or_default();
    record.energy.extend(sides);
    let exchanges = trace.and_then(|trace| TraceExchanges::timed(&trace, &capture.times()).ok());
    if let Some(found) = exchanges.and_then(|exchanges| battery(models, &exchanges, record.seed)) {
        BATTERY_BY_EXCHANGE.clone_into(&mut record.battery_cut);
        record.battery_hours = Some(BATTERY_PART * found.hours);
        record.battery_band =
            Some([found.hours_band.0, found.hours_band.1].map(|hours| BATTERY_PART * hours));
    }
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

/// Discharges the paper's battery with these exchanges, by the radio alone. The client's processor is another one here, and ten or forty
/// exchanges of a Java machine that has just begun are not those of a day. The seed decides the delays of the exchanges.
fn battery(models: &Models, exchanges: &TraceExchanges, seed: u64) -> Option<BatteryEstimate> {
    let period_ms = models.battery_period_ms.filter(|period| *period > 0)?;
    let discharge = Discharge {
        model: &RadioModel::built_in(&models.radio)?,
        exchanges,
        period_ns: i64::from(period_ms) * MILLISECOND_NS,
        jitter_ns: JITTER_NS,
        cell: BatteryCell::full(MAH_OF_NEXUS_7 / BATTERY_PART).ok()?,
        base_w: 0.0,
    };
    discharge.answer(seed, 1, |_| {}).ok()
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
    fn a_battery_is_emptied_by_the_radio_alone_and_has_a_band() {
        let trace = PacketTrace::new(
            (0..2).map(|number| TracePacket::new(number * 50 * MILLISECOND_NS, Direction::Up, 300)).collect(),
        );
        let sent = |number: i64| ExchangeTimes { start_ns: number * 50 * MILLISECOND_NS, reply: None };
        let exchanges = TraceExchanges::timed(&trace, &[sent(0), sent(1)]).expect("exchanges");
        let of = |battery_period_ms| {
            let models = Models { radio: "wifi-s2".to_owned(), battery_period_ms, ..Models::default() };
            battery(&models, &exchanges, 1)
        };
        let found = of(Some(500)).expect("emptied");
        // A packet wakes the radio for 220 ms of 500: 0.25 W, and 0.03 W asleep; the cell has 59,926 J.
        let expected = 59_926.0 / 3600.0 / (0.44 * 0.25 + 0.56 * 0.03);
        let hours = BATTERY_PART * found.hours;
        assert!((hours / expected - 1.0).abs() < 0.02, "{hours} and {expected}");
        assert!(found.hours_band.0 < found.hours && found.hours < found.hours_band.1, "{found:?}");
        assert_eq!((of(None), of(Some(0))), (None, None));
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
