//! `cargo xtask arm`: builds the binary for a Raspberry Pi, and tries it here on an emulated processor.

mod emulator;
mod smoke;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;
use emulator::ArmEmulator;

use crate::workspace::Workspace;

/// Raspberry Pi 3 and later with a system of 64 bits.
const TARGET: &str = "aarch64-unknown-linux-gnu";
/// The C compiler that the C parts (SQLite, aws-lc, mimalloc) need for that machine, and that links for it.
const C_COMPILER: &str = "aarch64-linux-gnu-gcc";
/// Debian's folder with that machine's C library, and the loader in it.
const SYSTEM: &str = "/usr/aarch64-linux-gnu";
const LOADER: &str = "lib/ld-linux-aarch64.so.1";
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Tools that were found on this machine.
struct Tools {
    rust: bool,
    compiler: bool,
    system: bool,
    /// The emulator's program.
    emulator: Option<PathBuf>,
}

/// Builds the binary and tries it, or with a binary only tries that; returns whether all is well.
pub(crate) fn run(workspace: &Workspace, binary: Option<PathBuf>, jobs: Option<u32>) -> anyhow::Result<bool> {
    ensure!(
        std::env::consts::ARCH != "aarch64",
        "this machine is ARM itself: `cargo build --profile dist --workspace` builds for it, and `stentor lab run` times there"
    );
    let tools = Tools::find();
    let missing = tools.missing(binary.is_none());
    ensure!(missing.is_empty(), "{}", missing.join("\n"));
    let binary = match binary {
        Some(binary) => std::path::absolute(binary)?,
        None => build(workspace, jobs)?,
    };
    let bytes = std::fs::metadata(&binary)?.len();
    println!("path    {}", binary.display());
    println!("size    {bytes} bytes ({:.1} MiB)", bytes as f64 / MEBIBYTE);
    let emulator = ArmEmulator::find(&tools.emulator.unwrap_or_default(), &binary)?;
    println!("arm: {}", emulator.description());
    smoke::run(&emulator)?;
    println!("arm: everything answered rightly; nothing was timed, which needs the board itself");
    Ok(true)
}

impl Tools {
    fn find() -> Self {
        let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
        let libraries = libraries.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        let emulators = ["qemu-aarch64-static", "qemu-aarch64"];
        Self {
            rust: libraries.is_ok_and(|folder| Path::new(&folder).is_dir()),
            compiler: on_path(C_COMPILER).is_some(),
            system: Path::new(SYSTEM).join(LOADER).exists(),
            emulator: emulators.into_iter().find_map(on_path),
        }
    }

    /// Returns the missing tools with the commands that install them, one a line; an existing binary needs no compilers.
    fn missing(&self, builds: bool) -> Vec<String> {
        let mut missing = Vec::new();
        if builds && !self.rust {
            missing.push(format!("Rust's library for {TARGET} is missing: `rustup target add {TARGET}`"));
        }
        let packages = [
            ("gcc-aarch64-linux-gnu", !builds || self.compiler),
            ("libc6-dev-arm64-cross", self.system),
            ("qemu-user-static", self.emulator.is_some()),
        ];
        let absent: Vec<&str> =
            packages.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name).collect();
        if !absent.is_empty() {
            let names = absent.join(" ");
            missing.push(format!("missing: {names}: on Debian `apt-get install -y {names}`"));
        }
        missing
    }
}

/// Finds a program in the search path.
fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn build(workspace: &Workspace, jobs: Option<u32>) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["build", "--locked", "--profile", "dist", "--target", TARGET]);
    command.args(["--package", "stentor", "--package", "stentor-lab-cli"]);
    if let Some(jobs) = jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", C_COMPILER);
    command.env("CC_aarch64_unknown_linux_gnu", C_COMPILER);
    let status = command.current_dir(&workspace.root).status()?;
    ensure!(status.success(), "the binary does not build for {TARGET}");
    let binary = workspace.metadata.target_directory.join(TARGET).join("dist/stentor");
    Ok(binary.into_std_path_buf())
}

#[cfg(test)]
mod tests;
