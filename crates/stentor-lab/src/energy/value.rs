//! The common form of an energy value, and the trait implemented by every source of energy values.

use crate::word::words;
use serde::{Deserialize, Serialize};

words! {
    /// The method behind an energy value.
    pub enum EnergyKind {
        /// Measured by a meter that this program read.
        Measured = "measured",
        /// Imported from the file of an external meter.
        Imported = "imported",
        /// Computed by a model with cited coefficients; nothing was measured.
        Modelled = "modelled",
    }
}

/// The origin of energy values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyOrigin {
    /// The method.
    pub kind: EnergyKind,
    /// The meter or the model by name.
    pub model: String,
    /// The source of its coefficients; for a meter, of its scale.
    pub coefficients_ref: String,
}

impl EnergyOrigin {
    /// Makes an origin.
    pub fn new(kind: EnergyKind, model: impl Into<String>, coefficients_ref: impl Into<String>) -> Self {
        Self { kind, model: model.into(), coefficients_ref: coefficients_ref.into() }
    }
}

words! {
    /// The side that uses the energy.
    #[derive(Default)]
    pub enum EnergySide {
        /// The side that sends requests; in studies of phones, the phone.
        Client = "client",
        /// The side that responds.
        Server = "server",
        /// The whole machine, if the sides cannot be separated.
        #[default]
        Machine = "machine",
    }
}

words! {
    /// A phase of an exchange on one side.
    pub enum PhaseName {
        /// Serialization of values into bytes.
        Serialize = "serialize",
        /// Deserialization of bytes into values.
        Deserialize = "deserialize",
        /// The work; for a client, the time between its request and the last byte of the response.
        Service = "service",
        /// The time between exchanges.
        Others = "others",
        /// The time from the first instant to the last.
        Total = "total",
    }
}

/// One value of energy, as in records; `component` is a part of the machine, or a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyValue {
    /// The consumer: `radio`, `processor`, `board`, or a phase such as `serialize`.
    pub component: String,
    /// The side.
    #[serde(default)]
    pub side: EnergySide,
    /// Joules; absent if unresolved.
    #[serde(default)]
    pub joule: Option<f64>,
    /// Mean power in watts; absent if unresolved or if the duration is zero.
    #[serde(default)]
    pub watt: Option<f64>,
    /// The method.
    pub kind: EnergyKind,
    /// The meter or the model by name.
    pub model: String,
    /// The source of the coefficients.
    pub coefficients_ref: String,
    /// True if the meter was too slow or exchanges overlapped, so that there is no number.
    #[serde(default)]
    pub unresolved: bool,
}

impl EnergyValue {
    /// Returns the name of side and component.
    #[must_use]
    pub fn name(&self) -> String {
        match self.side {
            EnergySide::Machine => self.component.clone(),
            side => format!("{} {}", side.word(), self.component),
        }
    }

    /// Makes a value of joules used in `seconds`.
    pub fn of(
        component: impl Into<String>,
        side: EnergySide,
        joule: f64,
        seconds: f64,
        origin: &EnergyOrigin,
    ) -> Self {
        let watt = (seconds > 0.0).then(|| joule / seconds);
        Self { joule: Some(joule), watt, unresolved: false, ..Self::unresolved(component, side, origin) }
    }

    /// Makes an unresolved value, without a number.
    pub fn unresolved(component: impl Into<String>, side: EnergySide, origin: &EnergyOrigin) -> Self {
        Self {
            component: component.into(),
            side,
            joule: None,
            watt: None,
            kind: origin.kind,
            model: origin.model.clone(),
            coefficients_ref: origin.coefficients_ref.clone(),
            unresolved: true,
        }
    }
}

/// A source of the energy between two instants: a meter's readings or a model's timeline.
pub trait EnergySource {
    /// Returns the origin of its values.
    fn origin(&self) -> &EnergyOrigin;

    /// Returns the name of the measured part of the machine.
    fn component(&self) -> &str;

    /// Returns the first and the last known instant, in nanoseconds of its clock; `None` without any.
    fn span_ns(&self) -> Option<(i64, i64)>;

    /// Returns the interval between readings, in nanoseconds; zero if every instant is known, as in a model.
    fn period_ns(&self) -> i64;

    /// Returns the joules between two instants; `None` unless the whole time between them is known.
    fn joules(&self, from_ns: i64, to_ns: i64) -> Option<f64>;

    /// Returns the energy of its whole span as a value.
    fn value(&self, side: EnergySide) -> Option<EnergyValue> {
        let (from, to) = self.span_ns()?;
        let joules = self.joules(from, to)?;
        Some(EnergyValue::of(self.component(), side, joules, super::seconds(to - from), self.origin()))
    }
}
