//! A nats-server of the stage's own, with JetStream in a temporary directory; it ends with the stage.

use crate::child_process::{ChildProcess, cpu_seconds};
use anyhow::{Context, ensure};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The directory into which the project's own script installs the program.
const BROKERS: &str = "target/brokers";
const PROGRAM: &str = "nats-server";
const START_LIMIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A running server.
pub struct PrivateNats {
    // Ended before its folder goes.
    server: ChildProcess,
    address: SocketAddr,
    _folder: TempDir,
}

impl PrivateNats {
    /// Starts one with the server's own defaults.
    pub fn start() -> anyhow::Result<Self> {
        let program = installed()?;
        let folder = tempfile::Builder::new().prefix("stentor-nats-").tempdir()?;
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let mut command = Command::new(program);
        command.args(["--addr", "127.0.0.1", "--port", &address.port().to_string()]);
        command.arg("--jetstream").arg("--store_dir").arg(folder.path().join("jetstream"));
        let mut server = ChildProcess::spawn(PROGRAM, command, &folder.path().join("log"))?;
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            server.check_alive()?;
            ensure!(started.elapsed() < START_LIMIT, "nats-server does not answer: {}", server.log_end());
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(Self { server, address, _folder: folder })
    }

    /// Returns where it is.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Returns its processor time so far.
    pub fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.server.id()).unwrap_or(0.0)
    }
}

/// Finds the program, or fails with instructions to install it.
pub fn installed() -> anyhow::Result<PathBuf> {
    program().context("no nats-server is installed: run lab/brokers/install")
}

/// Finds the program: in the script's directory, here or above this program, or in the search path.
fn program() -> Option<PathBuf> {
    let (here, program) = (std::env::current_dir().ok(), std::env::current_exe().ok());
    let above = here.iter().chain(&program).flat_map(|place| place.ancestors());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = above.map(|place| place.join(BROKERS)).chain(std::env::split_paths(&path));
    places.map(|folder| folder.join(PROGRAM)).find(|file| file.is_file())
}
