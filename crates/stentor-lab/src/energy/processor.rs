//! Processors and boards by model: time times watts, for machines without a meter.

use super::EnergyError;
use super::coefficients::Coefficient;
use super::value::{EnergyKind, EnergyOrigin, EnergySide, EnergyValue};
use serde::Deserialize;

const TEXT: &str = include_str!("coefficients/processors.toml");

/// The power model of a processor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Its short name.
    pub id: String,
    /// Its name, and the components that the figure covers.
    pub name: String,
    /// The source of the coefficient.
    pub source: String,
    /// Power while it computes; of a whole board, while time passes.
    pub watt: Coefficient,
    /// True if the power is that of a whole board.
    #[serde(default)]
    pub is_whole_board: bool,
    /// The number of its seconds that the measuring machine does in one.
    #[serde(default)]
    pub slowness: Option<Coefficient>,
}

/// Seconds that one side of a measurement took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SideSeconds {
    /// Seconds of the measuring machine's processor.
    pub processor: Option<f64>,
    /// Seconds from the beginning of each exchange to its end.
    pub wall: Option<f64>,
}

#[derive(Deserialize)]
struct ProcessorsFile {
    processors: Vec<Processor>,
}

impl Processor {
    /// Returns the processors with built-in coefficients.
    #[must_use]
    pub fn all() -> Vec<Self> {
        toml::from_str::<ProcessorsFile>(TEXT).map(|file| file.processors).unwrap_or_default()
    }

    /// Makes a processor with a user-defined power.
    pub fn stated(watt: f64) -> Result<Self, EnergyError> {
        if !(watt.is_finite() && watt >= 0.0) {
            return Err(EnergyError::Senseless(format!("{watt} W is no power")));
        }
        let watt_only = Coefficient { value: watt, low: None, high: None };
        let (id, name) = ("stated".into(), format!("{watt} W"));
        let source = "stated by the user".into();
        Ok(Self { id, name, source, watt: watt_only, is_whole_board: false, slowness: None })
    }

    /// Returns the energy of one side of a measurement on another machine; `None` if its time is unknown.
    #[must_use]
    pub fn energy_of(&self, side: EnergySide, seconds: SideSeconds) -> Option<EnergyValue> {
        let watts = format!("{} W, {}", banded(&self.watt), self.name);
        let (component, seconds, model) = match &self.slowness {
            _ if self.is_whole_board => ("board", seconds.wall?, format!("wall time x {watts}")),
            None => ("processor", seconds.processor?, format!("CPU seconds x {watts}")),
            Some(times) => {
                let model = format!("CPU seconds x {} x {watts}", banded(times));
                ("processor", seconds.processor? * times.value, model)
            }
        };
        let origin = EnergyOrigin::new(EnergyKind::Modelled, model, self.source.clone());
        Some(EnergyValue::of(component, side, seconds * self.watt.value, seconds, &origin))
    }

    /// Returns the energy of `cpu_seconds` of its own.
    pub fn energy(&self, side: EnergySide, cpu_seconds: f64) -> EnergyValue {
        let model = format!("CPU seconds x {} W ({})", self.watt.value, self.name);
        let origin = EnergyOrigin::new(EnergyKind::Modelled, model, self.source.clone());
        EnergyValue::of("processor", side, cpu_seconds * self.watt.value, cpu_seconds, &origin)
    }
}

/// Writes a coefficient with its bounds, if it has some.
fn banded(coefficient: &Coefficient) -> String {
    match (coefficient.low, coefficient.high) {
        (Some(low), Some(high)) => format!("{} ({low} to {high})", coefficient.value),
        _ => coefficient.value.to_string(),
    }
}
