//! A clock that can be shifted: libfaketime changes the server's time of day, but not the length of time spans.

use anyhow::Context;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The offsets of the clock from the true time, one after the other.
pub(super) const JUMPS_SECONDS: [i64; 3] = [3_600, -3_600, 0];

const LIBRARY: &str = "libfaketimeMT.so.1";
const FOLDERS: [&str; 3] = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];

/// Returns why no clock can be shifted here.
pub fn obstacle() -> Option<String> {
    if library().is_none() {
        return Some("libfaketime is missing: install faketime".to_owned());
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let is_dynamic = maps.lines().any(|line| line.contains("/ld-linux") || line.contains("/libc.so"));
    (!is_dynamic).then(|| {
        "this binary is linked statically, so nothing can stand between it and the clock: use a build against glibc"
            .to_owned()
    })
}

/// Finds the library, in a folder of its own or in that of an architecture.
fn library() -> Option<PathBuf> {
    let folders = FOLDERS.iter().map(PathBuf::from).flat_map(|folder| {
        let below = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        std::iter::once(folder).chain(below).collect::<Vec<_>>()
    });
    folders.map(|folder| folder.join("faketime").join(LIBRARY)).find(|library| library.is_file())
}

/// The clock of one server.
pub struct ShiftedClock {
    library: PathBuf,
    offset: PathBuf,
}

impl ShiftedClock {
    /// Sets the clock up with the right time at first. Its offset is kept in a file.
    pub fn set_up(offset: &Path) -> anyhow::Result<Self> {
        let library = library().context("libfaketime is missing")?;
        let clock = Self { library, offset: offset.to_owned() };
        clock.shift(0)?;
        Ok(clock)
    }

    /// The environment variables that make a server use this clock.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("LD_PRELOAD", self.library.clone().into()),
            ("FAKETIME_TIMESTAMP_FILE", self.offset.clone().into()),
            // The file is read again each second: a clock shifts without a restart.
            ("FAKETIME_CACHE_DURATION", "1".into()),
            // As when a time service sets the clock: timers are unaffected.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("FAKETIME_NO_CACHE", "0".into()),
            ("NO_FAKE_STAT", "1".into()),
        ]
    }

    /// Sets the offset from the true time.
    pub fn shift(&self, offset_seconds: i64) -> anyhow::Result<()> {
        crate::files::publish(&self.offset, &format!("{offset_seconds:+}s\n"))
    }
}
