//! Readings over time: power, integrated by trapezoids, or the differences of an energy counter.

use super::value::{EnergyOrigin, EnergySource};
use super::{EnergyError, seconds};

/// Power at one instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerReading {
    /// Time of the reading, in nanoseconds of the meter's clock.
    pub at_ns: i64,
    /// Volt times ampere.
    pub watt: f64,
}

/// Energy over time, as joules that never decrease.
#[derive(Debug, Clone)]
pub struct EnergySeries {
    origin: EnergyOrigin,
    component: String,
    readings: Vec<EnergyReading>,
    period_ns: i64,
}

/// The cumulative energy at one instant.
#[derive(Debug, Clone, Copy)]
struct EnergyReading {
    at_ns: i64,
    /// Joules since the first reading, or since the counter's origin.
    joule: f64,
    /// The power, which changes linearly until the next reading; `None` for a counter.
    watt: Option<f64>,
}

impl EnergyReading {
    /// Returns the joules at an instant before the next reading.
    fn until(self, at_ns: i64, next: Self) -> f64 {
        let part = (at_ns - self.at_ns) as f64 / (next.at_ns - self.at_ns) as f64;
        match self.watt.zip(next.watt) {
            Some((watt, next)) => {
                let here = PowerReading { at_ns, watt: watt + (next - watt) * part };
                self.joule + area(PowerReading { at_ns: self.at_ns, watt }, here)
            }
            None => self.joule + (next.joule - self.joule) * part,
        }
    }
}

impl EnergySeries {
    /// Makes a series of power readings. Times must rise strictly, and at least two readings are needed.
    pub fn of_power(
        origin: EnergyOrigin,
        component: impl Into<String>,
        powers: &[PowerReading],
    ) -> Result<Self, EnergyError> {
        if powers.len() < 2 {
            return Err(EnergyError::Missing("fewer than two readings: no energy follows from them".into()));
        }
        if powers.windows(2).any(|pair| pair[1].at_ns <= pair[0].at_ns) {
            return Err(EnergyError::Senseless("the times of the readings do not increase".into()));
        }
        let (mut joule, mut last) = (0.0, powers[0]);
        let readings = powers.iter().map(|power| {
            joule += area(last, *power);
            last = *power;
            EnergyReading { at_ns: power.at_ns, joule, watt: Some(power.watt) }
        });
        Ok(Self::of(origin, component.into(), readings.collect()))
    }

    /// Makes a series from a counter: pairs of nanoseconds and joules. Times must rise, joules must not decrease.
    pub fn of_counter(
        origin: EnergyOrigin,
        component: impl Into<String>,
        counted: &[(i64, f64)],
    ) -> Result<Self, EnergyError> {
        let falls = |pair: &[(i64, f64)]| pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1;
        if counted.windows(2).any(falls) {
            return Err(EnergyError::Senseless("a counter of energy that goes back".into()));
        }
        let reading =
            |(at_ns, joule): &(i64, f64)| EnergyReading { at_ns: *at_ns, joule: *joule, watt: None };
        Ok(Self::of(origin, component.into(), counted.iter().map(reading).collect()))
    }

    fn of(origin: EnergyOrigin, component: String, readings: Vec<EnergyReading>) -> Self {
        let mut gaps: Vec<i64> = readings.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect();
        gaps.sort_unstable();
        let period_ns = gaps.get(gaps.len() / 2).copied().unwrap_or_default();
        Self { origin, component, readings, period_ns }
    }

    /// Returns the number of readings.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.readings.len()
    }

    /// Returns the same readings with all times shifted by `by_ns`.
    #[must_use]
    pub fn shifted(mut self, by_ns: i64) -> Self {
        for reading in &mut self.readings {
            reading.at_ns = reading.at_ns.saturating_add(by_ns);
        }
        self
    }

    /// Returns the joules until an instant within the series.
    fn until(&self, at_ns: i64) -> Option<f64> {
        let next = self.readings.partition_point(|reading| reading.at_ns <= at_ns);
        let before = *self.readings.get(next.checked_sub(1)?)?;
        if before.at_ns == at_ns {
            return Some(before.joule);
        }
        Some(before.until(at_ns, *self.readings.get(next)?))
    }
}

impl EnergySource for EnergySeries {
    fn origin(&self) -> &EnergyOrigin {
        &self.origin
    }

    fn component(&self) -> &str {
        &self.component
    }

    fn span_ns(&self) -> Option<(i64, i64)> {
        Some((self.readings.first()?.at_ns, self.readings.last()?.at_ns))
    }

    fn period_ns(&self) -> i64 {
        self.period_ns
    }

    fn joules(&self, from_ns: i64, to_ns: i64) -> Option<f64> {
        (from_ns <= to_ns).then(|| Some(self.until(to_ns)? - self.until(from_ns)?)).flatten()
    }
}

fn area(from: PowerReading, to: PowerReading) -> f64 {
    (from.watt + to.watt) / 2.0 * seconds(to.at_ns - from.at_ns)
}
