//! The states of a radio over time.

use super::super::seconds;
use super::super::value::{EnergyOrigin, EnergySource};
use super::{RadioSink, RadioState};
use serde::Serialize;
use std::collections::BTreeMap;

/// A state over a time span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RadioStretch {
    /// The state.
    pub state: RadioState,
    /// Start, in nanoseconds of the trace's clock.
    pub from_ns: i64,
    /// End.
    pub to_ns: i64,
    /// Its power.
    pub watt: f64,
}

/// Duration and energy of one state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StateShare {
    /// The radio's state.
    pub state: RadioState,
    /// Total duration.
    pub seconds: f64,
    /// Total energy, including the energy of bytes.
    pub joule: f64,
}

/// The consecutive states of a radio, and the energy of bytes.
#[derive(Debug, Clone)]
pub struct RadioTimeline {
    origin: EnergyOrigin,
    stretches: Vec<RadioStretch>,
    pulses: Vec<(i64, f64)>,
}

impl RadioTimeline {
    pub(super) const fn new(origin: EnergyOrigin) -> Self {
        Self { origin, stretches: Vec::new(), pulses: Vec::new() }
    }

    /// Lists the states in the order of time.
    #[must_use]
    pub fn stretches(&self) -> &[RadioStretch] {
        &self.stretches
    }

    /// Returns duration and energy by state.
    #[must_use]
    pub fn shares(&self) -> Vec<StateShare> {
        let mut shares: BTreeMap<RadioState, StateShare> = BTreeMap::new();
        let mut add = |state, seconds, joule| {
            let share = shares.entry(state).or_insert(StateShare { state, seconds: 0.0, joule: 0.0 });
            share.seconds += seconds;
            share.joule += joule;
        };
        for stretch in &self.stretches {
            let lasted = seconds(stretch.to_ns - stretch.from_ns);
            add(stretch.state, lasted, lasted * stretch.watt);
        }
        for (at_ns, joule) in &self.pulses {
            let place = self.stretches.partition_point(|stretch| stretch.to_ns <= *at_ns);
            let stretch = self.stretches.get(place).or(self.stretches.last());
            add(stretch.map_or(RadioState::Active, |stretch| stretch.state), 0.0, *joule);
        }
        shares.into_values().collect()
    }
}

impl RadioSink for RadioTimeline {
    fn stretch(&mut self, stretch: RadioStretch) {
        match self.stretches.last_mut() {
            Some(last) if last.state == stretch.state && last.watt == stretch.watt => {
                last.to_ns = stretch.to_ns
            }
            _ => self.stretches.push(stretch),
        }
    }

    fn pulse(&mut self, at_ns: i64, joule: f64) {
        self.pulses.push((at_ns, joule));
    }
}

impl EnergySource for RadioTimeline {
    fn origin(&self) -> &EnergyOrigin {
        &self.origin
    }

    fn component(&self) -> &'static str {
        "radio"
    }

    fn span_ns(&self) -> Option<(i64, i64)> {
        Some((self.stretches.first()?.from_ns, self.stretches.last()?.to_ns))
    }

    fn period_ns(&self) -> i64 {
        0
    }

    /// Includes bytes at the first instant and excludes those at the last, so that adjacent spans add up; the end of the timeline is
    /// included.
    fn joules(&self, from_ns: i64, to_ns: i64) -> Option<f64> {
        let (first, last) = self.span_ns()?;
        if from_ns < first || to_ns > last || from_ns > to_ns {
            return None;
        }
        let begin = self.stretches.partition_point(|stretch| stretch.to_ns <= from_ns);
        let within = self.stretches[begin..].iter().take_while(|stretch| stretch.from_ns < to_ns);
        let power = |stretch: &RadioStretch| {
            seconds(stretch.to_ns.min(to_ns) - stretch.from_ns.max(from_ns)) * stretch.watt
        };
        let states: f64 = within.map(power).sum();
        let at_end = to_ns == last;
        let counts = |at: i64| at >= from_ns && (at < to_ns || (at_end && at == to_ns));
        let bytes: f64 = self.pulses.iter().filter(|(at, _)| counts(*at)).map(|(_, joule)| joule).sum();
        Some(states + bytes)
    }
}

/// Reports the states of a machine as consecutive spans.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimelineCursor {
    /// The end of the reported time.
    pub(super) at_ns: i64,
}

impl TimelineCursor {
    /// Reports a state until an instant; does nothing if that instant is past.
    pub(super) fn until(&mut self, to_ns: i64, state: RadioState, watt: f64, sink: &mut dyn RadioSink) {
        if to_ns > self.at_ns {
            sink.stretch(RadioStretch { state, from_ns: self.at_ns, to_ns, watt });
            self.at_ns = to_ns;
        }
    }
}
