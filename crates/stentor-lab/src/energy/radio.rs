//! Radios by model: machines of states that packets drive; each state has a power, and energy is power times time.

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
    /// What a radio is doing.
    #[derive(PartialOrd, Ord)]
    pub enum RadioState {
        /// Nothing; now and then it listens for a page.
        Idle = "idle",
        /// On the way to being able to send.
        Promotion = "promotion",
        /// Packets flow.
        Active = "active",
        /// Nothing flows and nothing is saved yet.
        Tail = "tail",
        /// LTE's first and short rest.
        ShortDrx = "short-drx",
        /// LTE's long rest, before idle.
        LongDrx = "long-drx",
        /// 3G's shared channel.
        Fach = "fach",
        /// 3G's own channel.
        Dch = "dch",
        /// Wi-Fi asleep (PSM).
        Sleep = "sleep",
        /// Wi-Fi awake (CAM).
        Awake = "awake",
        /// Wi-Fi awake at a high rate.
        High = "high",
    }
}

/// What takes a radio's states as they become known.
pub trait RadioSink {
    /// Takes a state and its watts from one instant to a later one; stretches follow each other without a gap.
    fn stretch(&mut self, stretch: RadioStretch);

    /// Takes joules that bytes cost at an instant, beside the power of the state.
    fn pulse(&mut self, at_ns: i64, joule: f64);
}

/// A radio that packets drive, in the order of time.
pub trait Machine {
    /// Takes the next packet; what the radio did until then is told to the sink.
    fn packet(&mut self, packet: TracePacket, sink: &mut dyn RadioSink);

    /// Reports what the radio does until an instant, after which no packet comes.
    fn finish(&mut self, to_ns: i64, sink: &mut dyn RadioSink);

    /// Returns the nanoseconds before a packet in which the radio may already use power for it.
    fn lead_ns(&self) -> i64;

    /// Returns the nanoseconds after a last packet after which the radio is surely at rest.
    fn rest_ns(&self) -> i64;
}

/// Makes a radio at rest since an instant.
pub fn machine(model: &RadioModel, bound: Bound, since_ns: i64) -> Result<Box<dyn Machine>, EnergyError> {
    Ok(match model.machine {
        MachineName::Lte => Box::new(tail::TailRadio::lte(&model.fields(bound)?, since_ns)?),
        MachineName::Umts => Box::new(umts::Umts::new(model.fields(bound)?, since_ns)),
        MachineName::UmtsBox => Box::new(umts_box::UmtsBox::new(model.fields(bound)?, since_ns)),
        MachineName::WifiAdaptive => Box::new(wifi::Adaptive::new(model.fields(bound)?, since_ns)?),
        MachineName::Wifi => Box::new(tail::TailRadio::plain_wifi(&model.fields(bound)?, since_ns)),
    })
}

/// Runs a radio over a trace, from its first promotion until it rests after its last packet.
pub fn simulate(model: &RadioModel, bound: Bound, trace: &PacketTrace) -> Result<RadioTimeline, EnergyError> {
    let (first, last) = trace.span_ns().unwrap_or_default();
    let timing = machine(model, bound, 0)?;
    simulate_between(model, bound, trace, first - timing.lead_ns(), last + timing.rest_ns())
}

/// Runs a radio over a trace and between two instants, at rest at the first.
pub fn simulate_between(
    model: &RadioModel,
    bound: Bound,
    trace: &PacketTrace,
    from_ns: i64,
    to_ns: i64,
) -> Result<RadioTimeline, EnergyError> {
    let outside = |(first, last)| first < from_ns || last > to_ns;
    if trace.span_ns().is_some_and(outside) || from_ns > to_ns {
        return Err(EnergyError::Senseless("packets outside of the time that is asked for".into()));
    }
    let mut machine = machine(model, bound, from_ns)?;
    let mut timeline = RadioTimeline::new(origin(model));
    for packet in trace.packets() {
        machine.packet(*packet, &mut timeline);
    }
    machine.finish(to_ns, &mut timeline);
    Ok(timeline)
}

/// Returns what figures of this model rest on.
#[must_use]
pub fn origin(model: &RadioModel) -> EnergyOrigin {
    EnergyOrigin::new(EnergyKind::Modelled, model.name.clone(), model.source.clone())
}
