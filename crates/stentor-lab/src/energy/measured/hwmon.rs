//! Chips that measure power (INA219 and its family): `power1_input`, or else voltage times current.

use super::super::value::{EnergyKind, EnergyOrigin};
use super::{EnergyError, name_of, whole, word_if_any};
use std::path::{Path, PathBuf};

/// Microwatts of a watt.
const MICRO: f64 = 1e6;
/// Millivolts of a volt, milliamperes of an ampere.
const MILLI: f64 = 1e3;

/// A chip.
#[derive(Debug)]
pub(super) struct Chip {
    path: PathBuf,
    name: String,
}

impl Chip {
    /// Opens it; fans, thermometers and the like are none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, EnergyError> {
        let has = |file: &str| path.join(file).exists();
        let has_both = has("in1_input") && has("curr1_input");
        if !has("power1_input") && !has_both {
            return Ok(None);
        }
        let name = word_if_any(&path.join("name")).unwrap_or_else(|| name_of(path));
        let chip = Self { path: path.to_owned(), name };
        chip.watt()?;
        Ok(Some(chip))
    }

    pub(super) fn described(&self) -> (String, EnergyOrigin) {
        let file =
            if self.path.join("power1_input").exists() { "power1_input" } else { "in1_input x curr1_input" };
        let model = format!("hwmon {} {}", name_of(&self.path), self.name);
        (
            "board".into(),
            EnergyOrigin::new(
                EnergyKind::Measured,
                model,
                format!("{file}, scaled by the driver's shunt_resistor"),
            ),
        )
    }

    /// Returns the power now.
    pub(super) fn watt(&self) -> Result<f64, EnergyError> {
        let power = self.path.join("power1_input");
        if power.exists() {
            return Ok(whole::<i64>(&power)? as f64 / MICRO);
        }
        let volt = whole::<i64>(&self.path.join("in1_input"))? as f64 / MILLI;
        let ampere = whole::<i64>(&self.path.join("curr1_input"))? as f64 / MILLI;
        Ok(volt * ampere)
    }
}
