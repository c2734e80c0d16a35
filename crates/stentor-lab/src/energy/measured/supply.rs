//! Batteries: what flows out of one while nothing charges it.

use super::super::value::{EnergyKind, EnergyOrigin};
use super::{EnergyError, name_of, whole, word_if_any};
use std::path::{Path, PathBuf};

/// Microwatts of a watt, microvolts of a volt, microamperes of an ampere.
const MICRO: f64 = 1e6;

/// A battery.
#[derive(Debug)]
pub(super) struct Battery {
    path: PathBuf,
}

impl Battery {
    /// Opens it; chargers and what tells neither power nor current are none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, EnergyError> {
        let is_battery = word_if_any(&path.join("type")).is_some_and(|word| word == "Battery");
        let battery = Self { path: path.to_owned() };
        let tells = ["power_now", "current_now"].iter().any(|file| path.join(file).exists());
        if !is_battery || !tells {
            return Ok(None);
        }
        battery.watt()?;
        Ok(Some(battery))
    }

    pub(super) fn described(&self) -> (String, EnergyOrigin) {
        let file =
            if self.path.join("power_now").exists() { "power_now" } else { "voltage_now x current_now" };
        let model = format!("power_supply {}", name_of(&self.path));
        (
            "battery".into(),
            EnergyOrigin::new(EnergyKind::Measured, model, format!("{file}, scaled by the kernel")),
        )
    }

    /// Returns what it gives now.
    pub(super) fn watt(&self) -> Result<f64, EnergyError> {
        let status = word_if_any(&self.path.join("status")).unwrap_or_default();
        if status != "Discharging" {
            let path = self.path.display();
            let told = if status.is_empty() { "of unknown status" } else { status.as_str() };
            return Err(EnergyError::Missing(format!("{path} is {told}: take the charger off")));
        }
        let power = self.path.join("power_now");
        if power.exists() {
            return Ok(whole::<i64>(&power)?.unsigned_abs() as f64 / MICRO);
        }
        // Drivers do not agree on the sign of a current that flows out.
        let ampere = whole::<i64>(&self.path.join("current_now"))?.unsigned_abs() as f64 / MICRO;
        let volt = whole::<i64>(&self.path.join("voltage_now"))? as f64 / MICRO;
        Ok(volt * ampere)
    }
}
