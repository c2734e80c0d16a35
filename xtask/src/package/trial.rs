//! A trial of a binary: its version, a server that is found by name, and a small demo.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

use super::Arch;
use super::tool::{self, note};

/// Devices of the demo: few, but both push services and every stage take part.
const DEMO_DEVICES: &str = "200";

/// A server that ends with the trial.
struct TrialServer {
    child: Child,
    /// Its URL, as `http://localhost:port`.
    url: String,
}

impl Drop for TrialServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A way to start a binary.
#[derive(Clone, Copy)]
pub(super) enum Start {
    Direct,
    /// Through an emulator of its processor, which cannot start further programs for that processor.
    Emulated(&'static str),
}

impl Start {
    /// Finds a way to start binaries for a processor on this machine.
    pub(super) fn find(arch: Arch) -> Option<Self> {
        if arch.is_native() {
            return Some(Self::Direct);
        }
        let emulators = ["qemu-aarch64-static", "qemu-aarch64"];
        let emulator =
            emulators.into_iter().find(|program| arch == Arch::Aarch64 && tool::is_installed(program));
        emulator.map(Self::Emulated)
    }

    fn command(self, binary: &Path) -> Command {
        match self {
            Self::Direct => Command::new(binary),
            Self::Emulated(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(binary);
                command
            }
        }
    }

    /// Runs the binary to its end.
    fn succeed(self, binary: &Path, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(binary).args(arguments).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`stentor {}` failed:\n{text}\n{errors}", arguments.join(" "));
        Ok(text)
    }
}

/// Tries the binary, and returns the judges; the first failure is the error.
pub(super) fn run(start: Start, binary: &Path) -> anyhow::Result<&'static [&'static str]> {
    note(start.succeed(binary, &["--version"])?.trim());
    let folder = scratch()?;
    let answered = be_found_by_name(start, binary, &folder);
    std::fs::remove_dir_all(&folder)?;
    answered?;
    note("a server was found as localhost, and its doctor found nothing broken");
    if let Start::Emulated(_) = start {
        return Ok(&["qemu", "doctor"]);
    }
    start.succeed(binary, &["demo", "--devices", DEMO_DEVICES])?;
    note(&format!("a demo with {DEMO_DEVICES} devices agreed for every token"));
    Ok(&["doctor", "demo"])
}

fn be_found_by_name(start: Start, binary: &Path, folder: &Path) -> anyhow::Result<()> {
    let data = folder.to_str().context("the scratch folder's path is not text")?;
    let server = serve(start.command(binary), data)?;
    start.succeed(binary, &["doctor", "--data-dir", data, "--server", &server.url])?;
    Ok(())
}

/// Starts a server; `command` is its program.
fn serve(mut command: Command, data: &str) -> anyhow::Result<TrialServer> {
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let output = child.stdout.take();
    let mut server = TrialServer { child, url: String::new() };
    let mut line = String::new();
    BufReader::new(output.context("the server has an output")?).read_line(&mut line)?;
    let port = line.split("127.0.0.1:").nth(1).unwrap_or_default();
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    ensure!(!port.is_empty(), "the server did not start: {line}");
    server.url = format!("http://localhost:{port}");
    Ok(server)
}

/// Makes an empty folder of this process.
fn scratch() -> anyhow::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("stentor-package-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}
