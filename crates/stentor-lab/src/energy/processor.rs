//! Processors by model: CPU seconds times watts, for machines without a meter for the processor.

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
    /// Power while it computes.
    pub watt: Coefficient,
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
        Ok(Self { id, name, source: "stated by the user".into(), watt: watt_only })
    }

    /// Returns the energy of `cpu_seconds`.
    pub fn energy(&self, side: EnergySide, cpu_seconds: f64) -> EnergyValue {
        let model = format!("CPU seconds x {} W ({})", self.watt.value, self.name);
        let origin = EnergyOrigin::new(EnergyKind::Modelled, model, self.source.clone());
        EnergyValue::of("processor", side, cpu_seconds * self.watt.value, cpu_seconds, &origin)
    }
}
