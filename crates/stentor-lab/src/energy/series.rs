//! Readings over time: power that is integrated by trapezoids, and counters of energy that only have to be subtracted.

use super::value::{EnergyOrigin, EnergySource};
use super::{EnergyError, seconds};

/// Power at one instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerReading {
    /// When, in nanoseconds of some clock.
    pub at_ns: i64,
    /// Volt times ampere.
    pub watt: f64,
}

/// Power over time; energy is the area below the straight lines between its readings.
#[derive(Debug, Clone)]
pub struct PowerSeries {
    origin: EnergyOrigin,
    component: String,
    readings: Vec<PowerReading>,
    /// Joules from the first reading to each.
    sums: Vec<f64>,
    period_ns: i64,
}

/// A counter of energy over time, in joules since some beginning, that never goes back.
#[derive(Debug, Clone)]
pub struct CounterSeries {
    origin: EnergyOrigin,
    component: String,
    readings: Vec<(i64, f64)>,
    period_ns: i64,
}

impl PowerSeries {
    /// Makes one of readings whose times rise strictly; two are the least.
    pub fn new(
        origin: EnergyOrigin,
        component: impl Into<String>,
        readings: Vec<PowerReading>,
    ) -> Result<Self, EnergyError> {
        if readings.len() < 2 {
            return Err(EnergyError::Missing("fewer than two readings: no energy follows from them".into()));
        }
        if readings.windows(2).any(|pair| pair[1].at_ns <= pair[0].at_ns) {
            return Err(EnergyError::Senseless("readings whose time does not rise".into()));
        }
        let mut sum = 0.0;
        let sums = std::iter::once(0.0).chain(readings.windows(2).map(|pair| {
            sum += area(pair[0], pair[1]);
            sum
        }));
        let sums = sums.collect();
        let period_ns = median_gap(readings.iter().map(|reading| reading.at_ns));
        Ok(Self { origin, component: component.into(), readings, sums, period_ns })
    }

    /// Lists the readings.
    #[must_use]
    pub fn readings(&self) -> &[PowerReading] {
        &self.readings
    }

    /// Returns the same readings on another clock, so many nanoseconds ahead.
    #[must_use]
    pub fn shifted(mut self, by_ns: i64) -> Self {
        for reading in &mut self.readings {
            reading.at_ns = reading.at_ns.saturating_add(by_ns);
        }
        self
    }

    /// Returns the joules from the first reading to an instant within the series.
    fn until(&self, at_ns: i64) -> Option<f64> {
        let next = self.readings.partition_point(|reading| reading.at_ns <= at_ns);
        let before = *self.readings.get(next.checked_sub(1)?)?;
        if before.at_ns == at_ns {
            return self.sums.get(next - 1).copied();
        }
        let after = *self.readings.get(next)?;
        let part = (at_ns - before.at_ns) as f64 / (after.at_ns - before.at_ns) as f64;
        let here = PowerReading { at_ns, watt: before.watt + (after.watt - before.watt) * part };
        Some(self.sums[next - 1] + area(before, here))
    }
}

impl EnergySource for PowerSeries {
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

impl CounterSeries {
    /// Makes one of pairs of nanoseconds and joules, both rising.
    pub fn new(
        origin: EnergyOrigin,
        component: impl Into<String>,
        readings: Vec<(i64, f64)>,
    ) -> Result<Self, EnergyError> {
        let falls = |pair: &[(i64, f64)]| pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1;
        if readings.windows(2).any(falls) {
            return Err(EnergyError::Senseless("a counter of energy that goes back".into()));
        }
        let period_ns = median_gap(readings.iter().map(|reading| reading.0));
        Ok(Self { origin, component: component.into(), readings, period_ns })
    }

    fn until(&self, at_ns: i64) -> Option<f64> {
        let next = self.readings.partition_point(|reading| reading.0 <= at_ns);
        let before = *self.readings.get(next.checked_sub(1)?)?;
        if before.0 == at_ns {
            return Some(before.1);
        }
        let after = *self.readings.get(next)?;
        let part = (at_ns - before.0) as f64 / (after.0 - before.0) as f64;
        Some(before.1 + (after.1 - before.1) * part)
    }
}

impl EnergySource for CounterSeries {
    fn origin(&self) -> &EnergyOrigin {
        &self.origin
    }

    fn component(&self) -> &str {
        &self.component
    }

    fn span_ns(&self) -> Option<(i64, i64)> {
        Some((self.readings.first()?.0, self.readings.last()?.0))
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

/// Returns the middle one of the gaps between rising instants; zero when there is none.
fn median_gap(instants: impl Iterator<Item = i64> + Clone) -> i64 {
    let mut gaps: Vec<i64> = instants.clone().zip(instants.skip(1)).map(|(one, next)| next - one).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().unwrap_or_default()
}
