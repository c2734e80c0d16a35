//! The result of a self-test: a measured value, the expected value, and the permitted difference.

use serde::Serialize;

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The measured quantity.
    pub name: String,
    /// The measured value.
    pub measured: f64,
    /// The expected value.
    pub wanted: f64,
    /// The permitted difference between the two.
    pub bound: f64,
    /// The unit of the three.
    pub unit: &'static str,
    /// True if the difference is permitted.
    pub ok: bool,
    /// A further remark, or nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Check {
    /// Compares; the bound is included.
    #[must_use]
    pub fn within(
        name: impl Into<String>,
        measured: f64,
        wanted: f64,
        bound: f64,
        unit: &'static str,
    ) -> Self {
        let ok = (measured - wanted).abs() <= bound;
        Self { name: name.into(), measured, wanted, bound, unit, ok, note: String::new() }
    }

    /// Compares counts that have to be equal.
    #[must_use]
    pub fn equal(name: impl Into<String>, measured: u64, wanted: u64, unit: &'static str) -> Self {
        Self::within(name, measured as f64, wanted as f64, 0.0, unit)
    }

    /// States that something was seen, as 1 against 1.
    #[must_use]
    pub fn seen(name: impl Into<String>, is_seen: bool) -> Self {
        Self::within(name, f64::from(u8::from(is_seen)), 1.0, 0.0, "seen")
    }

    /// Adds a further remark.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}
