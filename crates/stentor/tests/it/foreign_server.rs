//! Servers of others beside ours, as an operator installs them from packages; they end with the test.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_MAX: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct ForeignServer(Child);

impl ForeignServer {
    /// Starts a server and waits until it listens at its address.
    pub(crate) fn start(command: &mut Command, address: SocketAddr) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let mut server = Self(child);
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < START_MAX, "{command:?} does not listen");
            assert_eq!(server.0.try_wait().unwrap(), None, "{command:?} has ended");
            std::thread::yield_now();
        }
        server
    }
}

impl Drop for ForeignServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns true if a program is installed; it must be if `STENTOR_TEST_REQUIRE` lists the word.
pub(crate) fn is_installed(program: &str, word: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        return true;
    }
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|one| one.trim() == word);
    assert!(!is_required, "{program} is not installed (STENTOR_TEST_REQUIRE wants it)");
    let _ = writeln!(std::io::stderr(), "skipped: {program} is not installed");
    false
}

/// Returns an unused address of this machine.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap()
}
