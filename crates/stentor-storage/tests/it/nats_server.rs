//! A nats-server of the tests' own: its files lie in a temporary directory, it listens on a port of this machine, and it ends with the
//! process. `lab/brokers/install` puts its program under the target folder.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use stentor_storage::nats::{NatsAddress, NatsQueue, NatsSettings};

const START: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The prefix of the folders of all such servers; the id of their process follows.
const FOLDER: &str = "stentor-nats-";

/// A running server.
pub(crate) struct NatsServer {
    address: SocketAddr,
    process: Pid,
}

/// Returns the server of this process, which is started at the first call; `None` where its program is not installed.
///
/// # Panics
///
/// When `STENTOR_TEST_REQUIRE` names `nats` and there is none.
pub(crate) fn server() -> Option<&'static NatsServer> {
    static SERVER: OnceLock<Option<NatsServer>> = OnceLock::new();
    let server = SERVER.get_or_init(|| NatsServer::start("", &[]));
    if server.is_none() {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|one| one == "nats"), "no nats-server: run lab/brokers/install");
        let _ = writeln!(std::io::stderr(), "skipped: no nats-server (lab/brokers/install)");
    }
    server.as_ref()
}

fn program() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("brokers").join("nats-server");
    program.exists().then_some(program)
}

impl NatsServer {
    /// Starts one with files and arguments of its own, if its program is installed.
    pub(crate) fn start(name: &str, arguments: &[String]) -> Option<Self> {
        let program = program()?;
        remove_of_others();
        let folder =
            std::env::temp_dir().join(format!("{FOLDER}{}", std::process::id())).join(format!("js{name}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program).args(["--addr", "127.0.0.1"]).args(arguments);
        command.args(["--port", &address.port().to_string(), "--jetstream", "--store_dir"]).arg(&folder);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // The server is killed when the thread that started it ends: this thread lives as long as the process.
        let (sender, process) = std::sync::mpsc::channel();
        let life = move || {
            let mut child = command.spawn().expect("it starts");
            let _ = sender.send(Pid::from_child(&child));
            let _ = child.wait();
        };
        std::thread::Builder::new().name("nats".to_owned()).spawn(life).expect("a thread");
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < START, "the server does not answer");
            std::thread::sleep(LOOK_EVERY);
        }
        Some(Self { address, process: process.recv().expect("started") })
    }

    /// Kills it.
    pub(crate) fn kill(&self) {
        kill_process(self.process, Signal::KILL).expect("it runs");
    }

    /// Returns the port on which it listens.
    pub(crate) const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the settings of a stream that no other test uses.
    pub(crate) fn stream(&self) -> NatsSettings {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let stream = format!("case_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        NatsSettings { stream, ..NatsSettings::default() }
    }

    /// Returns a queue in a stream.
    pub(crate) fn queue(&self, settings: &NatsSettings) -> NatsQueue {
        NatsQueue::new(self.address(), settings.clone())
    }

    fn address(&self) -> NatsAddress {
        format!("nats://{}", self.address).parse().expect("an address")
    }
}

/// Removes the folders of processes that have ended.
fn remove_of_others() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
