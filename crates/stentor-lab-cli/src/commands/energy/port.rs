//! Serial ports: opened raw, and read until they hang up or the recording is stopped.

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Timeout of one wait for a silent port, after which the stop flag is read.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A port, or a file or pipe in its place.
pub(super) struct SerialPort {
    file: File,
    stop: Arc<AtomicBool>,
}

impl SerialPort {
    /// Opens a port without making it the controlling terminal; a terminal is made raw and gets a speed.
    pub(super) fn open(path: &Path, baud: u32, stop: Arc<AtomicBool>) -> anyhow::Result<Self> {
        let flags = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = file.with_context(|| {
            format!(
                "{} cannot be opened: is the meter plugged in, and are you in the group that may read it?",
                path.display()
            )
        })?;
        if isatty(&file) {
            let raw = tcgetattr(&file).and_then(|mut settings| {
                settings.make_raw();
                settings.set_speed(baud)?;
                tcsetattr(&file, OptionalActions::Now, &settings)
            });
            raw.with_context(|| format!("{} cannot be set to {baud} baud", path.display()))?;
        }
        Ok(Self { file, stop })
    }
}

impl Read for SerialPort {
    /// Returns 0 if the other end hangs up or the stop flag is set.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            // Relaxed suffices: the flag guards no data, and a stop may be noticed one wait later.
            if self.stop.load(Ordering::Relaxed) {
                return Ok(0);
            }
            let mut ready = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut ready, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            return match self.file.read(bytes) {
                // The error of a port with its other end closed.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other,
            };
        }
    }
}
