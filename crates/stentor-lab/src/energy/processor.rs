//! Processors by model: CPU seconds times watts, for machines whose processor nobody measures.

use super::EnergyError;
use super::coefficients::Coefficient;
use super::value::{EnergyKind, EnergyOrigin, EnergySide, EnergyValue};
use serde::Deserialize;

const TEXT: &str = include_str!("coefficients/processors.toml");

/// What a second of computing costs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Its short name.
    pub id: String,
    /// Its name, and what is in the figure.
    pub name: String,
    /// Where the coefficient stands.
    pub source: String,
    /// Watts while it computes.
    pub watt: Coefficient,
}

#[derive(Deserialize)]
struct ProcessorsFile {
    processors: Vec<Processor>,
}

impl Processor {
    /// Returns the processors whose coefficients come with this program.
    #[must_use]
    pub fn all() -> Vec<Self> {
        toml::from_str::<ProcessorsFile>(TEXT).map(|file| file.processors).unwrap_or_default()
    }

    /// Makes one whose watts somebody states.
    pub fn stated(watt: f64) -> Result<Self, EnergyError> {
        if !(watt.is_finite() && watt >= 0.0) {
            return Err(EnergyError::Senseless(format!("{watt} W is no power")));
        }
        let watt_only = Coefficient { value: watt, low: None, high: None };
        let (id, name) = ("stated".into(), format!("{watt} W"));
        Ok(Self { id, name, source: "stated by the user".into(), watt: watt_only })
    }

    /// Returns the joules of so many CPU seconds.
    pub fn energy(&self, side: EnergySide, cpu_seconds: f64) -> EnergyValue {
        let model = format!("CPU seconds x {} W ({})", self.watt.value, self.name);
        let origin = EnergyOrigin::new(EnergyKind::Modelled, model, self.source.clone());
        EnergyValue::of("processor", side, cpu_seconds * self.watt.value, cpu_seconds, &origin)
    }
}
