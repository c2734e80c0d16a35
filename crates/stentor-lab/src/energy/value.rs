//! The one form in which energy is told, and the one trait that everything that knows energy implements.

use crate::word::words;
use serde::{Deserialize, Serialize};

words! {
    /// How a figure came about.
    pub enum EnergyKind {
        /// By a meter that this program read.
        Measured = "measured",
        /// By a meter that somebody else read, from a file.
        Imported = "imported",
        /// By a model with cited coefficients: nothing was measured.
        Modelled = "modelled",
    }
}

/// Where figures come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyOrigin {
    /// How they came about.
    pub kind: EnergyKind,
    /// The meter or the model by name.
    pub model: String,
    /// Where its coefficients stand; for a meter, where its scale is set.
    pub coefficients_ref: String,
}

impl EnergyOrigin {
    /// Makes one.
    pub fn new(kind: EnergyKind, model: impl Into<String>, coefficients_ref: impl Into<String>) -> Self {
        Self { kind, model: model.into(), coefficients_ref: coefficients_ref.into() }
    }
}

words! {
    /// Whose energy it is.
    #[derive(Default)]
    pub enum EnergySide {
        /// The one that asks; in studies of phones, the phone.
        Client = "client",
        /// The one that answers.
        Server = "server",
        /// The whole machine, where sides cannot be told apart.
        #[default]
        Machine = "machine",
    }
}

words! {
    /// What a side does at a time.
    pub enum PhaseName {
        /// Values become bytes.
        Serialize = "serialize",
        /// Bytes become values.
        Deserialize = "deserialize",
        /// The work; for a client, everything between its request and the last byte of its answer.
        Service = "service",
        /// What is left between exchanges.
        Others = "others",
        /// From the first instant to the last.
        Total = "total",
    }
}

/// One figure of energy, as it stands in records; `component` is a part of the machine, or a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyValue {
    /// What used it: `radio`, `processor`, `board`, or a phase such as `serialize`.
    pub component: String,
    /// Whose it is.
    #[serde(default)]
    pub side: EnergySide,
    /// Joules; absent when it is not resolved.
    #[serde(default)]
    pub joule: Option<f64>,
    /// Joules over the seconds in which they were used; absent when it is not resolved or took no time.
    #[serde(default)]
    pub watt: Option<f64>,
    /// How it came about.
    pub kind: EnergyKind,
    /// The meter or the model by name.
    pub model: String,
    /// Where the coefficients stand.
    pub coefficients_ref: String,
    /// True where the meter was too slow, or what happened overlapped: then there is no number.
    #[serde(default)]
    pub unresolved: bool,
}

impl EnergyValue {
    /// Names side and component together.
    #[must_use]
    pub fn name(&self) -> String {
        match self.side {
            EnergySide::Machine => self.component.clone(),
            side => format!("{} {}", side.word(), self.component),
        }
    }

    /// Makes one of joules that were used in so many seconds.
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

    /// Makes one that says that there is no number.
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

/// Something that knows the energy between two instants: a meter's readings or a model's timeline.
pub trait EnergySource {
    /// Returns where its figures come from.
    fn origin(&self) -> &EnergyOrigin;

    /// Names the part of the machine that it speaks of.
    fn component(&self) -> &str;

    /// Returns the first and the last instant that it knows, in nanoseconds of its clock; `None` when it knows nothing.
    fn span_ns(&self) -> Option<(i64, i64)>;

    /// Returns the nanoseconds between its readings; zero where every instant is known, as in a model.
    fn period_ns(&self) -> i64;

    /// Returns the joules between two instants; `None` unless it knows all of the time between them.
    fn joules(&self, from_ns: i64, to_ns: i64) -> Option<f64>;

    /// Returns everything that it knows, as a value.
    fn value(&self, side: EnergySide) -> Option<EnergyValue> {
        let (from, to) = self.span_ns()?;
        let joules = self.joules(from, to)?;
        Some(EnergyValue::of(self.component(), side, joules, super::seconds(to - from), self.origin()))
    }
}
