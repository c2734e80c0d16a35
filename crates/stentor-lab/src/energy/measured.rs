//! What this machine can measure of itself, read from sysfs: powercap counters, batteries, and power sensors such as INA219.

mod hwmon;
mod powercap;
mod supply;

use super::EnergyError;
use super::series::{CounterSeries, PowerReading, PowerSeries};
use super::value::{EnergyOrigin, EnergySource};
use std::path::{Path, PathBuf};

/// Where the kernel shows its devices.
pub const SYS: &str = "/sys";

/// One meter of this machine.
#[derive(Debug)]
pub struct Sensor {
    /// Where its figures come from.
    pub origin: EnergyOrigin,
    /// The part of the machine that it speaks of.
    pub component: String,
    source: CounterSource,
    counted: Vec<(i64, f64)>,
    powers: Vec<PowerReading>,
}

#[derive(Debug)]
enum CounterSource {
    Powercap(powercap::Zone),
    Supply(supply::Battery),
    Hwmon(hwmon::Chip),
}

/// A meter that is there and cannot be used.
#[derive(Debug)]
pub struct Unusable {
    /// Where it is.
    pub path: PathBuf,
    /// Why, and what to do.
    pub problem: String,
}

/// Looks for meters below a directory that is built like `/sys`.
#[must_use]
pub fn find(sys: &Path) -> (Vec<Sensor>, Vec<Unusable>) {
    let (mut sensors, mut unusable) = (Vec::new(), Vec::new());
    let mut file = |path: PathBuf, found: Result<Option<Sensor>, EnergyError>| match found {
        Ok(Some(sensor)) => sensors.push(sensor),
        Ok(None) => {}
        Err(error) => unusable.push(Unusable { path, problem: error.to_string() }),
    };
    for path in entries(&sys.join("class/powercap")) {
        let found = powercap::Zone::open(&path);
        file(
            path,
            found.map(|zone| zone.map(|zone| Sensor::new(zone.described(), CounterSource::Powercap(zone)))),
        );
    }
    for path in entries(&sys.join("class/power_supply")) {
        let found = supply::Battery::open(&path);
        file(path, found.map(|one| one.map(|one| Sensor::new(one.described(), CounterSource::Supply(one)))));
    }
    for path in entries(&sys.join("class/hwmon")) {
        let found = hwmon::Chip::open(&path);
        file(path, found.map(|one| one.map(|one| Sensor::new(one.described(), CounterSource::Hwmon(one)))));
    }
    (sensors, unusable)
}

impl Sensor {
    fn new((component, origin): (String, EnergyOrigin), source: CounterSource) -> Self {
        Self { origin, component, source, counted: Vec::new(), powers: Vec::new() }
    }

    /// Reads it at an instant of the clock and keeps what it says.
    ///
    /// A counter must be read at least once while it goes round; half a minute is safe for every processor known.
    pub fn read(&mut self, at_ns: i64) -> Result<(), EnergyError> {
        match &mut self.source {
            CounterSource::Powercap(zone) => self.counted.push((at_ns, zone.joules()?)),
            CounterSource::Supply(battery) => self.powers.push(PowerReading { at_ns, watt: battery.watt()? }),
            CounterSource::Hwmon(chip) => self.powers.push(PowerReading { at_ns, watt: chip.watt()? }),
        }
        Ok(())
    }

    /// Returns what was read as a source of energy.
    pub fn finish(self) -> Result<Box<dyn EnergySource>, EnergyError> {
        Ok(match self.source {
            CounterSource::Powercap(_) => {
                Box::new(CounterSeries::new(self.origin, self.component, self.counted)?)
            }
            CounterSource::Supply(_) | CounterSource::Hwmon(_) => {
                Box::new(PowerSeries::new(self.origin, self.component, self.powers)?)
            }
        })
    }
}

/// Lists a directory in the order of names; one that is not there is empty.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Reads a file of sysfs that holds one word or number.
fn word(path: &Path) -> Result<String, EnergyError> {
    let text = std::fs::read_to_string(path);
    Ok(text.map_err(EnergyError::io(path.display().to_string()))?.trim().to_owned())
}

/// Reads a word where there may be none.
fn word_if_any(path: &Path) -> Option<String> {
    word(path).ok().filter(|word| !word.is_empty())
}

/// Reads a whole number.
fn whole<N: std::str::FromStr>(path: &Path) -> Result<N, EnergyError> {
    let word = word(path)?;
    let problem = || EnergyError::Senseless(format!("{} holds {word:?}, not a number", path.display()));
    word.parse().map_err(|_| problem())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
