//! Radios by model: state machines driven by packets. Each state has a power; energy is power times time.

mod channels;
mod tail;
mod timeline;
mod umts;
mod umts_box;
mod wifi;

use super::EnergyError;
use super::coefficients::{Bound, MachineName, RadioModel};
use super::trace::{PacketTrace, TracePacket};
use super::value::{EnergyKind, EnergyOrigin};
use crate::word::words;

pub use timeline::{RadioStretch, RadioTimeline, StateShare};

words! {
    /// The state of a radio.
    #[derive(PartialOrd, Ord)]
    pub enum RadioState {
        /// Idle, with occasional paging.
        Idle = "idle",
        /// Transition to a state that can send.
        Promotion = "promotion",
        /// Packets are transferred.
        Active = "active",
        /// No transfer, and no power saving yet.
        Tail = "tail",
        /// LTE's first, short DRX.
        ShortDrx = "short-drx",
        /// LTE's long DRX, before idle.
        LongDrx = "long-drx",
        /// 3G's shared channel.
        Fach = "fach",
        /// 3G's dedicated channel.
        Dch = "dch",
        /// Wi-Fi asleep (PSM).
        Sleep = "sleep",
        /// Wi-Fi awake (CAM).
        Awake = "awake",
        /// Wi-Fi awake at a high rate.
        High = "high",
    }
}

/// Receives the states of a radio as they become known.
pub trait RadioSink {
    /// Receives a state with its power over a time span. Spans follow each other without a gap.
    fn stretch(&mut self, stretch: RadioStretch);

    /// Receives the energy that bytes cost at an instant, in addition to the power of the state.
    fn pulse(&mut self, at_ns: i64, joule: f64);
}

/// A radio that is driven by packets, in the order of time.
pub trait Machine {
    /// Processes the next packet, and reports the states before it to the sink.
    fn packet(&mut self, packet: TracePacket, sink: &mut dyn RadioSink);

    /// Reports the states until an instant, after which no packet follows.
    fn finish(&mut self, to_ns: i64, sink: &mut dyn RadioSink);

    /// Returns the maximum time before a packet in which the radio already uses power for it, in nanoseconds.
    fn lead_ns(&self) -> i64;

    /// Returns the time after the last packet until the radio is certainly at rest, in nanoseconds.
    fn rest_ns(&self) -> i64;
}

/// Makes a radio that is at rest since an instant.
pub fn machine(model: &RadioModel, bound: Bound, since_ns: i64) -> Result<Box<dyn Machine>, EnergyError> {
    Ok(match model.machine {
        MachineName::Lte => Box::new(tail::TailRadio::lte(&model.fields(bound)?, since_ns)?),
        MachineName::Umts => Box::new(umts::Umts::new(model.fields(bound)?, since_ns)),
        MachineName::UmtsBox => Box::new(umts_box::UmtsBox::new(model.fields(bound)?, since_ns)),
        MachineName::WifiAdaptive => Box::new(wifi::Adaptive::new(model.fields(bound)?, since_ns)?),
        MachineName::Wifi => Box::new(tail::TailRadio::plain_wifi(&model.fields(bound)?, since_ns)),
    })
}

/// Simulates a radio over a trace, from its first promotion until it is at rest after the last packet.
pub fn simulate(model: &RadioModel, bound: Bound, trace: &PacketTrace) -> Result<RadioTimeline, EnergyError> {
    let (first, last) = trace.span_ns().unwrap_or_default();
    let timing = machine(model, bound, 0)?;
    simulate_between(model, bound, trace, first - timing.lead_ns(), last + timing.rest_ns())
}

/// Simulates a radio over a trace between two instants; the radio is at rest at the first.
pub fn simulate_between(
    model: &RadioModel,
    bound: Bound,
    trace: &PacketTrace,
    from_ns: i64,
    to_ns: i64,
) -> Result<RadioTimeline, EnergyError> {
    let outside = |(first, last)| first < from_ns || last > to_ns;
    if trace.span_ns().is_some_and(outside) || from_ns > to_ns {
        return Err(EnergyError::Senseless("packets outside of the requested time".into()));
    }
    let mut machine = machine(model, bound, from_ns)?;
    let mut timeline = RadioTimeline::new(origin(model));
    for packet in trace.packets() {
        machine.packet(*packet, &mut timeline);
    }
    machine.finish(to_ns, &mut timeline);
    Ok(timeline)
}

/// Returns the origin of this model's figures.
#[must_use]
pub fn origin(model: &RadioModel) -> EnergyOrigin {
    EnergyOrigin::new(EnergyKind::Modelled, model.name.clone(), model.source.clone())
}
