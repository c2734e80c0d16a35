//! `cargo xtask dist`: builds the static binary, then proves that it is static and that it works. Descriptions for tools, and the
//! clients, come into a folder beside it.

mod archive;
mod elf;
mod trial;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::workspace::Workspace;

/// The target of released binaries. Its C library, musl, is linked in whole with its resolver. A statically linked glibc can still load the
/// modules that /etc/nsswitch.conf names, which must then be of its own version.
const TARGET: &str = "x86_64-unknown-linux-musl";
/// The C compiler that the C parts (SQLite, aws-lc, mimalloc) need for that machine.
const C_COMPILER: &str = "musl-gcc";
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Builds the binary and tries it, or with a binary only tries that; returns true if all is well.
pub(crate) fn run(workspace: &Workspace, binary: Option<PathBuf>, jobs: Option<u32>) -> anyhow::Result<bool> {
    let is_built_here = binary.is_none();
    let binary = match binary {
        Some(binary) => binary,
        None => build(workspace, jobs)?,
    };
    let bytes = std::fs::read(&binary).with_context(|| binary.display().to_string())?;
    let needs = elf::needs(&bytes).with_context(|| format!("{} cannot be judged", binary.display()))?;
    ensure!(needs.is_empty(), "{} is not static: it needs {}", binary.display(), needs.join(", "));
    println!("dist: static: no interpreter, no shared library");
    trial::run(&binary)?;
    if is_built_here {
        println!("archive {}", archive::write(workspace, &binary)?.display());
    }
    println!("path    {}", binary.display());
    println!("size    {} bytes ({:.1} MiB)", bytes.len(), bytes.len() as f64 / MEBIBYTE);
    println!("sha256  {}", sha256(&binary)?);
    Ok(true)
}

fn build(workspace: &Workspace, jobs: Option<u32>) -> anyhow::Result<PathBuf> {
    check_tools()?;
    let mut command = Command::new("cargo");
    command.args(["build", "--locked", "--profile", "dist", "--target", TARGET]);
    command.args(["--package", "stentor", "--package", "stentor-lab-cli", "--features", "stentor/nats"]);
    // Line tables are for profiles. A custom linker of the caller would not support this target.
    command.env("CARGO_PROFILE_DIST_STRIP", "true").env_remove("RUSTFLAGS");
    if let Some(jobs) = jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    let status = command.current_dir(&workspace.root).status()?;
    ensure!(status.success(), "the static binary does not build");
    let binary = workspace.metadata.target_directory.join(TARGET).join("dist/stentor");
    Ok(binary.into_std_path_buf())
}

/// Fails if a tool is missing, before a build of ten minutes.
fn check_tools() -> anyhow::Result<()> {
    let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output()?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&libraries.stdout).trim());
    ensure!(
        libraries.is_dir(),
        "Rust's library for {TARGET} is missing: run `rustup target add {TARGET}` in this folder"
    );
    let compiler = Command::new(C_COMPILER).arg("--version").output();
    ensure!(
        compiler.is_ok_and(|output| output.status.success()),
        "{C_COMPILER} is missing: on Debian `apt-get install musl-tools`"
    );
    Ok(())
}

fn sha256(path: &Path) -> anyhow::Result<String> {
    let output = Command::new("sha256sum").arg(path).output().context("sha256sum cannot be started")?;
    ensure!(output.status.success(), "sha256sum failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8(output.stdout)?;
    text.split_whitespace().next().map(str::to_owned).context("sha256sum printed nothing")
}

#[cfg(test)]
mod tests;
