//! Meters of this machine, read from sysfs: powercap counters, batteries, and power sensors such as INA219.

mod power;
mod powercap;

use super::EnergyError;
use super::series::{EnergySeries, PowerReading};
use super::value::EnergyOrigin;
use power::PowerDevice;
use powercap::Zone;
use std::path::{Path, PathBuf};

/// The mount point of sysfs.
pub const SYS: &str = "/sys";

/// One meter of this machine.
#[derive(Debug)]
pub struct Sensor {
    /// The origin of its figures.
    pub origin: EnergyOrigin,
    /// The measured part of the machine.
    pub component: String,
    readings: SensorReadings,
}

/// The meter, with its readings.
#[derive(Debug)]
enum SensorReadings {
    Counter(Zone, Vec<(i64, f64)>),
    Power(PowerDevice, Vec<PowerReading>),
}

/// A meter that exists but cannot be used.
#[derive(Debug)]
pub struct Unusable {
    /// Its path.
    pub path: PathBuf,
    /// The reason and a remedy.
    pub problem: String,
}

/// Opens the meter in a device folder; `None` if the device is no meter.
type OpenSensor = fn(&Path) -> Result<Option<Sensor>, EnergyError>;

const CLASSES: [(&str, OpenSensor); 3] = [
    ("class/powercap", |path| Ok(Zone::open(path)?.map(Sensor::counter))),
    ("class/power_supply", |path| Ok(PowerDevice::battery(path)?.map(Sensor::power))),
    ("class/hwmon", |path| Ok(PowerDevice::chip(path)?.map(Sensor::power))),
];

/// Finds the meters below a directory with the layout of `/sys`.
#[must_use]
pub fn find(sys: &Path) -> (Vec<Sensor>, Vec<Unusable>) {
    let (mut sensors, mut unusable) = (Vec::new(), Vec::new());
    for (class, open) in CLASSES {
        for path in entries(&sys.join(class)) {
            match open(&path) {
                Ok(found) => sensors.extend(found),
                Err(error) => unusable.push(Unusable { path, problem: error.to_string() }),
            }
        }
    }
    (sensors, unusable)
}

impl Sensor {
    fn counter(zone: Zone) -> Self {
        let (component, origin) = zone.described();
        Self { origin, component, readings: SensorReadings::Counter(zone, Vec::new()) }
    }

    fn power(device: PowerDevice) -> Self {
        let (component, origin) = device.described();
        Self { origin, component, readings: SensorReadings::Power(device, Vec::new()) }
    }

    /// Takes a reading at the given time.
    ///
    /// A counter must be read at least once per wrap-around; half a minute is safe for every known processor.
    pub fn read(&mut self, at_ns: i64) -> Result<(), EnergyError> {
        match &mut self.readings {
            SensorReadings::Counter(zone, counted) => counted.push((at_ns, zone.joules()?)),
            SensorReadings::Power(device, powers) => {
                powers.push(PowerReading { at_ns, watt: device.watt()? });
            }
        }
        Ok(())
    }

    /// Returns the readings as a series.
    pub fn finish(self) -> Result<EnergySeries, EnergyError> {
        match self.readings {
            SensorReadings::Counter(_, counted) => {
                EnergySeries::of_counter(self.origin, self.component, &counted)
            }
            SensorReadings::Power(_, powers) => EnergySeries::of_power(self.origin, self.component, &powers),
        }
    }
}

/// Lists a directory in the order of names; a missing directory counts as empty.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Reads a sysfs file that holds one word or number.
fn word(path: &Path) -> Result<String, EnergyError> {
    let text = std::fs::read_to_string(path);
    Ok(text.map_err(EnergyError::io(path.display().to_string()))?.trim().to_owned())
}

/// Reads a word from a file that may be missing.
fn word_if_any(path: &Path) -> Option<String> {
    word(path).ok().filter(|word| !word.is_empty())
}

/// Reads an integer.
fn whole<N: std::str::FromStr>(path: &Path) -> Result<N, EnergyError> {
    let word = word(path)?;
    let problem = || EnergyError::Senseless(format!("{} holds {word:?}, not a number", path.display()));
    word.parse().map_err(|_| problem())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
