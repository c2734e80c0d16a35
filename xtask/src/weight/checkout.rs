//! The bytes that `git clone --depth 1` puts on a disk.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::workspace::Workspace;

/// The bytes of a clone without history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CloneBytes {
    /// The files of the project.
    pub(super) files: u64,
    /// The folder of git, which has them once more, compressed.
    pub(super) git: u64,
}

/// Makes a clone without history of the last commit and returns its bytes.
pub(super) fn bytes(workspace: &Workspace) -> anyhow::Result<CloneBytes> {
    let folder = workspace.metadata.target_directory.join("weight").into_std_path_buf();
    remove(&folder)?;
    clone(&workspace.root, &folder)?;
    let (all, git) = (bytes_below(&folder)?, bytes_below(&folder.join(".git"))?);
    remove(&folder)?;
    Ok(CloneBytes { files: all - git, git })
}

/// Clones the last commit of `from` alone; git takes no shortcut past the network's protocol for an address with a scheme.
pub(super) fn clone(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("git");
    command.args(["clone", "--quiet", "--depth", "1"]).arg(format!("file://{}", from.display())).arg(to);
    let output = command.output().context("git could not be started: is it installed?")?;
    ensure!(output.status.success(), "git clone: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// Adds up the bytes of all files below a folder.
pub(super) fn bytes_below(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        // A link counts as itself.
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    Ok(())
}
