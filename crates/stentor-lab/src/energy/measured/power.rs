//! Devices that report power, or voltage and current: batteries while they are not charged, and chips such as INA219.

use super::super::value::{EnergyKind, EnergyOrigin};
use super::{EnergyError, name_of, whole, word_if_any};
use std::path::{Path, PathBuf};

/// Microwatts of a watt.
const MICRO: f64 = 1e6;

/// The files of a device class.
#[derive(Debug)]
struct PowerFiles {
    power: &'static str,
    volt: &'static str,
    ampere: &'static str,
    /// Units per volt and per ampere.
    units: f64,
}

const BATTERY: PowerFiles =
    PowerFiles { power: "power_now", volt: "voltage_now", ampere: "current_now", units: 1e6 };
const CHIP: PowerFiles =
    PowerFiles { power: "power1_input", volt: "in1_input", ampere: "curr1_input", units: 1e3 };

/// A device.
#[derive(Debug)]
pub(super) struct PowerDevice {
    path: PathBuf,
    files: &'static PowerFiles,
    /// True for a battery, which is read only while it discharges.
    is_battery: bool,
}

impl PowerDevice {
    /// Opens a battery; `None` for chargers and for devices that report neither power nor current.
    pub(super) fn battery(path: &Path) -> Result<Option<Self>, EnergyError> {
        let is_battery = word_if_any(&path.join("type")).is_some_and(|word| word == "Battery");
        let tells = [BATTERY.power, BATTERY.ampere].iter().any(|file| path.join(file).exists());
        let battery = Self { path: path.to_owned(), files: &BATTERY, is_battery };
        (is_battery && tells).then(|| battery.tried()).transpose()
    }

    /// Opens a chip; `None` for fans, thermometers and the like.
    pub(super) fn chip(path: &Path) -> Result<Option<Self>, EnergyError> {
        let has = |file: &str| path.join(file).exists();
        let tells = has(CHIP.power) || has(CHIP.volt) && has(CHIP.ampere);
        let chip = Self { path: path.to_owned(), files: &CHIP, is_battery: false };
        tells.then(|| chip.tried()).transpose()
    }

    fn tried(self) -> Result<Self, EnergyError> {
        self.watt().map(|_| self)
    }

    pub(super) fn described(&self) -> (String, EnergyOrigin) {
        let (path, PowerFiles { power, volt, ampere, .. }) = (&self.path, self.files);
        let file = if path.join(power).exists() { (*power).to_owned() } else { format!("{volt} x {ampere}") };
        let folder = name_of(path);
        let (component, model, scale) = if self.is_battery {
            ("battery", format!("power_supply {folder}"), "the kernel")
        } else {
            let name = word_if_any(&path.join("name")).unwrap_or_else(|| folder.clone());
            ("board", format!("hwmon {folder} {name}"), "the driver's shunt_resistor")
        };
        let scaled = format!("{file}, scaled by {scale}");
        (component.into(), EnergyOrigin::new(EnergyKind::Measured, model, scaled))
    }

    /// Returns the present power.
    pub(super) fn watt(&self) -> Result<f64, EnergyError> {
        if self.is_battery {
            self.refuse_charger()?;
        }
        let number = |file: &str| whole::<i64>(&self.path.join(file)).map(|number| number as f64);
        let PowerFiles { power, volt, ampere, units } = self.files;
        let watt = if self.path.join(power).exists() {
            number(power)? / MICRO
        } else {
            number(volt)? / units * (number(ampere)? / units)
        };
        // Battery drivers disagree on the sign of a discharge current.
        Ok(if self.is_battery { watt.abs() } else { watt })
    }

    fn refuse_charger(&self) -> Result<(), EnergyError> {
        let status = word_if_any(&self.path.join("status"));
        if status.as_deref() == Some("Discharging") {
            return Ok(());
        }
        let status = status.as_deref().unwrap_or("of unknown status");
        let problem = format!("{} is {status}: take the charger off", self.path.display());
        Err(EnergyError::Missing(problem))
    }
}
