//! Battery discharge by a radio: the repeated exchanges of a trace, a cell, and a log in the form of a phone's.

mod cell;
mod traffic;

use super::EnergyError;
use super::coefficients::{Bound, RadioModel};
use super::exchanges::TraceExchanges;
use super::phone_log::LogLine;
use super::radio::{self, RadioSink, RadioStretch};
use super::{SECOND_NS, seconds};
use serde::Serialize;

pub use cell::{BatteryCell, MAH_OF_NEXUS_7};
pub use traffic::RepeatedTraffic;

/// Hours after which a simulation is abandoned if the battery is not empty: more than a month.
pub const HOURS_MAX: f64 = 1000.0;
/// Seconds between two lines of the log, as in albertengo-2020.
pub const LOG_EVERY_S: f64 = 180.0;
/// Temperature in every line of the log, in °C: the middle of albertengo-2020's 25 to 30. Temperature is not modelled.
pub const CELSIUS: f64 = 27.5;

/// Progress steps of one discharge.
pub const THOUSAND: u64 = 1000;

const HOUR_S: f64 = 3600.0;
/// Maximum time step after which the cell's voltage is recomputed.
const STEP_NS: i64 = SECOND_NS;

/// The parameters of a discharge.
#[derive(Debug, Clone)]
pub struct Discharge<'a> {
    /// The radio.
    pub model: &'a RadioModel,
    /// The exchanges, which are repeated one per period.
    pub exchanges: &'a TraceExchanges,
    /// Period of the exchanges.
    pub period_ns: i64,
    /// Maximum random delay of an exchange.
    pub jitter_ns: i64,
    /// The full cell.
    pub cell: BatteryCell,
    /// Constant power of the rest of the phone.
    pub base_w: f64,
}

/// One discharge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DischargeRun {
    /// The seed of the jitter.
    pub seed: u64,
    /// The bound of the coefficients.
    pub bound: Bound,
    /// Hours from full to empty.
    pub hours: f64,
    /// Exchanges started.
    pub exchanges: u64,
    /// Energy used by the radio.
    pub radio_joule: f64,
    /// Energy used by the rest of the phone.
    pub base_joule: f64,
    /// One line every three minutes, and one at the end.
    #[serde(skip)]
    pub log: Vec<LogLine>,
}

/// Several discharges: with the source's coefficients, with all coefficients low and with all high.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatteryEstimate {
    /// Mean hours of the runs with the source's coefficients.
    pub hours: f64,
    /// Hours of the shortest and of the longest of these runs.
    pub hours_of_runs: (f64, f64),
    /// The band between the runs with all coefficients low and all high: shorter and longer hours.
    pub hours_band: (f64, f64),
    /// All runs; the last two are those of the band.
    pub runs: Vec<DischargeRun>,
}

impl Discharge<'_> {
    /// Discharges the cell `runs` times with different seeds, then once with low and once with high coefficients.
    ///
    /// `progress` receives the thousandths of all charges taken so far.
    pub fn answer(
        &self,
        seed: u64,
        runs: u32,
        mut progress: impl FnMut(u64),
    ) -> Result<BatteryEstimate, EnergyError> {
        let seeds = (0..runs).map(|run| (seed.wrapping_add(u64::from(run)), Bound::Value));
        let bounds = [(seed, Bound::Low), (seed, Bound::High)];
        let all: Result<Vec<DischargeRun>, EnergyError> = seeds
            .chain(bounds)
            .enumerate()
            .map(|(place, (seed, bound))| {
                self.run(seed, bound, |taken| progress(place as u64 * THOUSAND + taken))
            })
            .collect();
        let all = all?;
        let (own, band) = all.split_at(all.len().saturating_sub(2));
        let hours = || own.iter().map(|run| run.hours);
        let extremes = (hours().fold(f64::INFINITY, f64::min), hours().fold(0.0, f64::max));
        let (low, high) = (band[0].hours, band[1].hours);
        Ok(BatteryEstimate {
            hours: hours().sum::<f64>() / own.len().max(1) as f64,
            hours_of_runs: extremes,
            hours_band: (high.min(low), high.max(low)),
            runs: all,
        })
    }

    /// Discharges the cell once.
    pub fn run(
        &self,
        seed: u64,
        bound: Bound,
        mut progress: impl FnMut(u64),
    ) -> Result<DischargeRun, EnergyError> {
        let mut traffic = RepeatedTraffic::new(self.exchanges, self.period_ns, self.jitter_ns, seed)?;
        let mut radio = radio::machine(self.model, bound, 0)?;
        let mut drain = Drain::new(self.cell.clone(), self.base_w, seed, bound);
        let (mut packets, mut reported) = (Vec::new(), 0);
        while !drain.is_empty() {
            packets.clear();
            traffic.next_period(&mut packets);
            for packet in &packets {
                radio.packet(*packet, &mut drain);
            }
            if drain.hours() > HOURS_MAX {
                return Err(EnergyError::Missing(format!(
                    "the battery is not empty after {HOURS_MAX} hours: nothing here uses it; see --base-watt"
                )));
            }
            let taken = drain.taken();
            if taken > reported {
                reported = taken;
                progress(taken);
            }
        }
        Ok(drain.finish(traffic.exchanges()))
    }
}

/// Discharges a cell with the energy that a radio reports, and writes the log.
struct Drain {
    cell: BatteryCell,
    base_w: f64,
    now_ns: i64,
    /// Energy of bytes not yet taken from the cell.
    owed: f64,
    next_log_ns: i64,
    run: DischargeRun,
}

impl Drain {
    fn new(cell: BatteryCell, base_w: f64, seed: u64, bound: Bound) -> Self {
        let (hours, exchanges, radio_joule, base_joule, log) = (0.0, 0, 0.0, 0.0, Vec::new());
        let run = DischargeRun { seed, bound, hours, exchanges, radio_joule, base_joule, log };
        Self { cell, base_w, now_ns: 0, owed: 0.0, next_log_ns: 0, run }
    }

    const fn is_empty(&self) -> bool {
        self.cell.is_empty()
    }

    /// Returns the charge taken so far, in thousandths.
    fn taken(&self) -> u64 {
        THOUSAND - (self.cell.percent() * 10.0).ceil() as u64
    }

    fn hours(&self) -> f64 {
        seconds(self.now_ns) / HOUR_S
    }

    /// Takes power until an instant close enough for the voltage to be constant.
    fn take(&mut self, radio_w: f64, to_ns: i64) {
        let lasts = seconds(to_ns - self.now_ns);
        let radio = radio_w * lasts + std::mem::take(&mut self.owed);
        let base = self.base_w * lasts;
        self.run.radio_joule += radio;
        self.run.base_joule += base;
        self.cell.take((radio + base) / lasts, lasts);
        self.now_ns = to_ns;
    }

    fn line(&mut self, at_ns: i64) {
        let (percent, volt) = (self.cell.percent(), Some(self.cell.volt()));
        self.run.log.push(LogLine { seconds: seconds(at_ns), percent, volt, celsius: Some(CELSIUS) });
    }

    fn finish(mut self, exchanges: u64) -> DischargeRun {
        self.line(self.now_ns);
        DischargeRun { hours: self.hours(), exchanges, ..self.run }
    }
}

impl RadioSink for Drain {
    fn stretch(&mut self, stretch: RadioStretch) {
        while self.now_ns < stretch.to_ns && !self.is_empty() {
            if self.now_ns >= self.next_log_ns {
                self.line(self.next_log_ns);
                self.next_log_ns += (LOG_EVERY_S * SECOND_NS as f64) as i64;
            }
            let step = stretch.to_ns.min(self.now_ns + STEP_NS).min(self.next_log_ns.max(self.now_ns + 1));
            self.take(stretch.watt, step);
        }
    }

    fn pulse(&mut self, _at_ns: i64, joule: f64) {
        self.owed += joule;
    }
}
