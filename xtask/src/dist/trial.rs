//! A trial of a binary: its version, a server that is found by name, and a small demo.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

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

/// Tries the binary; the first failure is the error.
pub(super) fn run(binary: &Path) -> anyhow::Result<()> {
    println!("dist: {}", succeed(binary, &["--version"])?.trim());
    let folder = scratch()?;
    let answered = be_found_by_name(binary, &folder);
    std::fs::remove_dir_all(&folder)?;
    answered?;
    println!("dist: a server was found as localhost, and its doctor found nothing broken");
    succeed(binary, &["demo", "--devices", DEMO_DEVICES])?;
    println!("dist: a demo with {DEMO_DEVICES} devices agreed for every token");
    Ok(())
}

fn be_found_by_name(binary: &Path, folder: &Path) -> anyhow::Result<()> {
    let data = folder.to_str().context("the scratch folder's path is not text")?;
    let server = start(binary, data)?;
    succeed(binary, &["doctor", "--data-dir", data, "--server", &server.url])?;
    Ok(())
}

fn start(binary: &Path, data: &str) -> anyhow::Result<TrialServer> {
    let mut command = Command::new(binary);
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--data-dir", data]);
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

fn succeed(binary: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(binary).args(arguments).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`stentor {}` failed:\n{text}\n{errors}", arguments.join(" "));
    Ok(text)
}

/// Makes an empty folder of this process.
fn scratch() -> anyhow::Result<std::path::PathBuf> {
    let folder = std::env::temp_dir().join(format!("stentor-dist-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}
