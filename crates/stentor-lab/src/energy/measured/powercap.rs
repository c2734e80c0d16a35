//! Processor counters (RAPL): microjoules that wrap around at a limit given by the kernel.

use super::super::value::{EnergyKind, EnergyOrigin};
use super::{EnergyError, name_of, whole, word_if_any};
use std::path::{Path, PathBuf};

/// Microjoules of a joule.
const MICRO: f64 = 1e6;

/// One zone: a package, its cores, its memory.
#[derive(Debug)]
pub(super) struct Zone {
    name: String,
    folder: String,
    counter: PathBuf,
    /// The highest value of the counter, followed by zero.
    range_uj: u64,
    last_uj: u64,
    sum_uj: u128,
}

impl Zone {
    /// Opens a zone; `None` if it has no counter.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, EnergyError> {
        let counter = path.join("energy_uj");
        if !counter.exists() {
            return Ok(None);
        }
        let folder = name_of(path);
        let name = word_if_any(&path.join("name")).unwrap_or_else(|| folder.clone());
        let range_uj = whole(&path.join("max_energy_range_uj"))?;
        let last_uj = readable(&counter)?;
        Ok(Some(Self { name, folder, counter, range_uj, last_uj, sum_uj: 0 }))
    }

    pub(super) fn described(&self) -> (String, EnergyOrigin) {
        let model = format!("powercap {} {}", self.folder, self.name);
        (self.name.clone(), EnergyOrigin::new(EnergyKind::Measured, model, "energy_uj, scaled by the kernel"))
    }

    /// Returns the joules since the zone was opened.
    pub(super) fn joules(&mut self) -> Result<f64, EnergyError> {
        let now = readable(&self.counter)?;
        self.sum_uj += u128::from(advance(self.last_uj, now, self.range_uj));
        self.last_uj = now;
        Ok(self.sum_uj as f64 / MICRO)
    }
}

/// Returns the advance of a counter between two values, across a wrap-around if necessary.
pub(super) fn advance(before: u64, now: u64, highest: u64) -> u64 {
    if now >= before {
        now - before
    } else {
        highest.saturating_sub(before).saturating_add(now).saturating_add(1)
    }
}

fn readable(counter: &Path) -> Result<u64, EnergyError> {
    whole(counter).map_err(|error| match error {
        EnergyError::Io { what, source } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            EnergyError::Missing(format!("{what} is for root only (since Linux 5.10): run as root"))
        }
        other => other,
    })
}
