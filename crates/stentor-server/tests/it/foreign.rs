//! Third-party servers that tests start: their files are in a temporary directory, and they end when the value is dropped.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The folder of Debian with PostgreSQL's programs by major version.
const POSTGRES_PROGRAMS: &str = "/usr/lib/postgresql";
/// The user for PostgreSQL if the tests run as root, which it refuses.
const POSTGRES_USER: &str = "postgres";
const START: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A server that was started here.
pub(crate) struct ForeignServer {
    url: String,
    child: Child,
    _folder: TempDir,
}

impl ForeignServer {
    /// Returns its address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for ForeignServer {
    fn drop(&mut self) {
        // A request first: a server with child processes ends them itself.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let started_at = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && started_at.elapsed() < START {
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts PostgreSQL with an empty database; `None` where it is not installed.
pub(crate) fn postgres() -> Option<ForeignServer> {
    let versions = std::fs::read_dir(POSTGRES_PROGRAMS).into_iter().flatten().flatten();
    let version = |path: PathBuf| Some((path.file_name()?.to_str()?.parse::<u32>().ok()?, path));
    let versions = versions.filter_map(|entry| version(entry.path()));
    let newest = versions.filter(|(version, _)| *version >= 15).max();
    let Some((_, programs)) = newest else { return missing("postgres", "no PostgreSQL 15 or newer") };
    let programs = programs.join("bin");
    let folder = tempfile::tempdir().expect("a folder");
    let is_root = std::fs::metadata("/proc/self").expect("this process").uid() == 0;
    if is_root {
        let id = |flag| {
            let output = Command::new("id").args([flag, POSTGRES_USER]).output().expect("id runs").stdout;
            String::from_utf8_lossy(&output).trim().parse().ok()
        };
        chown(folder.path(), id("-u"), id("-g")).expect("the folder is the server's");
    }
    let data = folder.path().join("data");
    let mut made = as_user(&programs.join("initdb"), is_root);
    made.args([
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
        "--username=postgres",
        "-D",
    ]);
    assert!(made.arg(&data).stdout(Stdio::null()).status().expect("initdb runs").success());
    let address = free_address();
    let mut command = as_user(&programs.join("postgres"), is_root);
    command.arg("-D").arg(data).arg("-k").arg(folder.path()).args(["-c", "fsync=off"]);
    command.args(["-c", "listen_addresses=127.0.0.1", "-p", &address.port().to_string()]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let begun = Instant::now();
    let is_ready = || {
        let mut probe = Command::new(programs.join("pg_isready"));
        probe.args(["-h", "127.0.0.1", "-p", &address.port().to_string()]).stdout(Stdio::null());
        probe.status().expect("pg_isready runs").success()
    };
    while !is_ready() {
        assert!(begun.elapsed() < START, "PostgreSQL does not answer");
        std::thread::sleep(LOOK_EVERY);
    }
    let url = format!("postgres://postgres@{address}/postgres?sslmode=disable");
    Some(ForeignServer { url, child, _folder: folder })
}

fn as_user(program: &Path, is_root: bool) -> Command {
    let mut command = if is_root { Command::new("setpriv") } else { Command::new(program) };
    if is_root {
        command.args(["--reuid", POSTGRES_USER, "--regid", POSTGRES_USER, "--clear-groups"]);
        command.args(["--pdeathsig", "INT"]).arg(program);
    }
    command.current_dir("/");
    command
}

/// Returns a free address of this machine.
fn free_address() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address")
}

/// Notes that something is not installed, which is a failure where it is required.
fn missing(name: &str, what: &str) -> Option<ForeignServer> {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|one| one == name), "{what} is installed");
    let _ = writeln!(std::io::stderr(), "skipped: {what} is installed");
    None
}

/// Starts nats-server with JetStream; `None` where `lab/brokers/install` was not run.
pub(crate) fn nats() -> Option<ForeignServer> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("brokers").join("nats-server");
    if !program.exists() {
        return missing("nats", "no nats-server (lab/brokers/install)");
    }
    let (folder, address) = (tempfile::tempdir().expect("a folder"), free_address());
    let mut command = Command::new(program);
    command.args([
        "--addr",
        "127.0.0.1",
        "--port",
        &address.port().to_string(),
        "--jetstream",
        "--store_dir",
    ]);
    let child = command.arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let (child, begun) = (child.expect("it starts"), Instant::now());
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < START, "nats-server does not answer");
        std::thread::sleep(LOOK_EVERY);
    }
    Some(ForeignServer { url: format!("nats://{address}"), child, _folder: folder })
}
