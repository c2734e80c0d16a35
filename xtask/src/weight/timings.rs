//! The crates that took the longest to compile, from the report that `cargo build --timings` leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

/// Text in the report before the list of all compiled units.
const LIST: &str = "const UNIT_DATA = ";

/// A crate, with the time of all its units together: its library, its build script and the run of that.
#[derive(Debug, PartialEq)]
pub(super) struct CrateTime {
    pub(super) name: String,
    pub(super) seconds: f64,
}

impl CrateTime {
    pub(super) fn json(&self) -> Value {
        json!({ "crate": self.name, "seconds": (self.seconds * 100.0).round() / 100.0 })
    }
}

/// Returns the crates of the newest report below the target folder, the slowest first; empty without a report.
pub(super) fn newest(target: &Path) -> anyhow::Result<Vec<CrateTime>> {
    let Some(report) = newest_report(&target.join("cargo-timings"))? else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(&report).with_context(|| report.display().to_string())?;
    slowest(&text).with_context(|| format!("{} cannot be read", report.display()))
}

/// Finds the report that was written last; cargo keeps those of earlier builds beside it.
fn newest_report(folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut newest = None;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            newest = newest.max(Some((entry.metadata()?.modified()?, path)));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// Reads the units of a report, and returns the crates with the slowest first.
pub(super) fn slowest(report: &str) -> anyhow::Result<Vec<CrateTime>> {
    let (_, rest) = report.split_once(LIST).context("it has no list of units")?;
    // The list is JSON within a script, which continues after it.
    let units = serde_json::Deserializer::from_str(rest).into_iter::<Vec<Value>>().next();
    let units = units.context("its list of units is empty")??;
    let mut seconds: BTreeMap<&str, f64> = BTreeMap::new();
    for unit in &units {
        let name = unit["name"].as_str().context("a unit has no name")?;
        *seconds.entry(name).or_default() += unit["duration"].as_f64().context("a unit has no duration")?;
    }
    ensure!(!seconds.is_empty(), "nothing was compiled in that build");
    let times = seconds.into_iter().map(|(name, seconds)| CrateTime { name: name.to_owned(), seconds });
    let mut times: Vec<CrateTime> = times.collect();
    times.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    Ok(times)
}
