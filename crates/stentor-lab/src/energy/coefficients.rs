//! Coefficients of models: values with their sources and bounds.

use super::EnergyError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The radios with built-in coefficients.
pub const RADIOS: [&str; 5] = ["lte", "3g", "3g-energybox", "wifi-s2", "wifi"];

const TEXTS: [&str; 5] = [
    include_str!("coefficients/lte.toml"),
    include_str!("coefficients/3g.toml"),
    include_str!("coefficients/3g-energybox.toml"),
    include_str!("coefficients/wifi-s2.toml"),
    include_str!("coefficients/wifi.toml"),
];

/// Percent of a whole.
const PERCENT: f64 = 100.0;

/// The bound of a coefficient's value to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The lower bound.
    Low,
    /// The value printed in the source.
    Value,
    /// The upper bound.
    High,
}

/// One coefficient of a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficient {
    /// The value printed in the source.
    pub value: f64,
    /// The lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// The state machine of a radio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineName {
    /// LTE with discontinuous reception.
    Lte,
    /// 3G with queues and a timer that small packets do not reset.
    Umts,
    /// 3G with thresholds.
    UmtsBox,
    /// Wi-Fi that sleeps after a timeout and draws more power at a high rate.
    WifiAdaptive,
    /// Wi-Fi that is either active or idle.
    Wifi,
}

/// A radio's coefficients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RadioModel {
    /// Its short name.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state machine.
    pub machine: MachineName,
    /// The source of the coefficients.
    pub source: String,
    /// Tolerance of a power without bounds of its own, in percent.
    pub band_percent: f64,
    /// Differences from the source.
    pub note: String,
    /// The numbers; `_w` are watts, `_s` seconds.
    pub coefficients: BTreeMap<String, Coefficient>,
}

impl RadioModel {
    /// Returns one of [`RADIOS`].
    #[must_use]
    pub fn built_in(id: &str) -> Option<Self> {
        let place = RADIOS.iter().position(|name| *name == id)?;
        Self::parse(TEXTS[place]).ok()
    }

    /// Parses a file of coefficients.
    pub fn parse(text: &str) -> Result<Self, EnergyError> {
        let model: Self = toml::from_str(text)
            .map_err(|error| EnergyError::Senseless(format!("the coefficients cannot be read: {error}")))?;
        for (name, coefficient) in &model.coefficients {
            let three =
                [Bound::Low, Bound::Value, Bound::High].map(|bound| model.bounded(name, *coefficient, bound));
            if three.iter().any(|value| !value.is_finite() || *value < 0.0 || *value > 1e6)
                || !three.is_sorted()
            {
                let problem = format!(
                    "coefficient {name}: low, value and high must be numbers from 0 on, in this order"
                );
                return Err(EnergyError::Senseless(problem));
            }
        }
        Ok(model)
    }

    /// Deserializes all coefficients into a struct, which must have the same names.
    pub(super) fn fields<T: DeserializeOwned>(&self, bound: Bound) -> Result<T, EnergyError> {
        let value = |(name, coefficient): (&String, &Coefficient)| {
            (name.clone(), toml::Value::Float(self.bounded(name, *coefficient, bound)))
        };
        let table: toml::Table = self.coefficients.iter().map(value).collect();
        let wrong = |error| EnergyError::Senseless(format!("coefficients of {}: {error}", self.id));
        table.try_into().map_err(wrong)
    }

    fn bounded(&self, name: &str, coefficient: Coefficient, bound: Bound) -> f64 {
        let is_power = name.ends_with("_w") || name.ends_with("_mw_per_mbps");
        let part = if is_power { self.band_percent / PERCENT } else { 0.0 };
        let Coefficient { value, low, high } = coefficient;
        match bound {
            Bound::Value => value,
            Bound::Low => low.unwrap_or(value * (1.0 - part)),
            Bound::High => high.unwrap_or(value * (1.0 + part)),
        }
    }
}
