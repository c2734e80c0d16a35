//! A separate file system for the data directory, small enough to be filled.

use crate::reporter::Reporter;
use anyhow::Context;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Room that a server needs, however few its devices are.
const BASE_BYTES: u64 = 48 << 20;
/// Room for each device: its rows, the write-ahead log beside them, its share of the chunks.
const BYTES_PER_DEVICE: u64 = 3_000;
const BLOCK_BYTES: usize = 64 << 10;
const SMALL_BLOCK_BYTES: usize = 512;

/// Returns why no file system can be made here.
pub fn obstacle(reporter: &Arc<dyn Reporter>) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("a tmpfs is needed, which only Linux has".to_owned());
    }
    if !geteuid().is_root() {
        return Some("mounting a small tmpfs takes root: run it as root".to_owned());
    }
    let probe = tempfile::tempdir().ok()?;
    match SmallDisk::mount(probe.path(), 0, reporter) {
        Ok(_) => None,
        Err(error) => {
            Some(format!("a small tmpfs cannot be mounted ({error:#}): allow mounts (CAP_SYS_ADMIN)"))
        }
    }
}

/// A mounted tmpfs; unmounted when dropped.
pub struct SmallDisk {
    at: PathBuf,
    /// Receives a line when the disk stays mounted.
    reporter: Arc<dyn Reporter>,
}

impl SmallDisk {
    /// Mounts the disk on a directory, which is created if necessary, with room for a number of devices.
    pub(super) fn mount(at: &Path, devices: u64, reporter: &Arc<dyn Reporter>) -> anyhow::Result<Self> {
        Self::mount_bytes(at, BASE_BYTES + devices * BYTES_PER_DEVICE, reporter)
    }

    /// Mounts the disk on a directory, which is created if necessary, with this size.
    pub fn mount_bytes(at: &Path, bytes: u64, reporter: &Arc<dyn Reporter>) -> anyhow::Result<Self> {
        std::fs::create_dir_all(at).with_context(|| format!("{} cannot be made", at.display()))?;
        let size = format!("size={bytes},mode=0700");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at))?;
        Ok(Self { at: at.to_owned(), reporter: reporter.clone() })
    }

    /// Fills the remaining space.
    pub fn fill(&self) -> anyhow::Result<()> {
        let ballast = File::options().create(true).append(true).open(self.ballast());
        let mut ballast = match ballast {
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
            other => other.context("the ballast cannot be opened")?,
        };
        let zeros = [0; BLOCK_BYTES];
        // Large blocks fill it fast, small ones take the rest, in which the server could still write a page.
        for block_bytes in [BLOCK_BYTES, SMALL_BLOCK_BYTES] {
            while write(&mut ballast, &zeros[..block_bytes])? {}
        }
        Ok(())
    }

    /// Frees the room again.
    pub fn empty(&self) -> anyhow::Result<()> {
        std::fs::remove_file(self.ballast()).context("the ballast cannot be removed")
    }

    fn ballast(&self) -> PathBuf {
        self.at.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Processes with an open file keep it until they end; the directory is free at once.
        if let Err(error) = run(Command::new("umount").arg("--lazy").arg(&self.at)) {
            self.reporter.line(&format!("{} is still mounted: {error:#}", self.at.display()));
        }
    }
}

/// Writes a block. Returns true if there was room for it.
fn write(ballast: &mut File, block: &[u8]) -> anyhow::Result<bool> {
    match ballast.write_all(block) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::StorageFull => Ok(false),
        Err(error) => Err(error).context("the ballast cannot be written"),
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{name} cannot be run"))?;
    if output.status.success() {
        return Ok(());
    }
    anyhow::bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())
}
