//! The way between a store and its database: as long as a case wants, and cut off when it wants.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::postgres_server::PostgresServer;

/// Passes bytes on late, or not at all.
pub(crate) struct Way {
    pub(crate) port: u16,
    state: Arc<WayState>,
}

#[derive(Default)]
struct WayState {
    one_way_ms: AtomicU64,
    connections: AtomicU64,
    /// Connections up to this one get nothing through in either direction.
    frozen: Mutex<u64>,
    thawed: Condvar,
    freezes_all: AtomicBool,
}

impl Way {
    /// Creates a path to a server with a delay in each direction.
    pub(crate) fn to(server: &PostgresServer, one_way: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(WayState::default());
        state.one_way_ms.store(one_way.as_millis().try_into().expect("short"), Ordering::SeqCst);
        let (shared, socket) = (Arc::clone(&state), server.socket());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let number = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
                let Ok(server) = UnixStream::connect(&socket) else { return };
                client.set_nodelay(true).expect("set");
                let (client_back, server_back) =
                    (client.try_clone().expect("two"), server.try_clone().expect("two"));
                let end = Arc::new(End(client.try_clone().expect("two"), server.try_clone().expect("two")));
                shared.pass_on(number, client, server, Arc::clone(&end));
                shared.pass_on(number, server_back, client_back, end);
            }
        });
        Self { port, state }
    }

    /// Sets the delay of each direction from now on.
    pub(crate) fn set_length(&self, one_way: Duration) {
        self.state.one_way_ms.store(one_way.as_millis().try_into().expect("short"), Ordering::SeqCst);
    }

    /// Blocks the present connections; new ones pass.
    pub(crate) fn freeze(&self) {
        *self.state.frozen.lock().expect("no panic") = self.state.connections.load(Ordering::SeqCst);
    }

    /// Blocks all connections.
    pub(crate) fn freeze_all(&self) {
        self.state.freezes_all.store(true, Ordering::SeqCst);
    }

    /// Unblocks all connections.
    pub(crate) fn thaw(&self) {
        self.state.freezes_all.store(false, Ordering::SeqCst);
        *self.state.frozen.lock().expect("no panic") = 0;
        self.state.thawed.notify_all();
    }
}

/// Both ends of a connection, which end together.
struct End(TcpStream, UnixStream);

impl End {
    fn end(&self) {
        let _ = (self.0.shutdown(Shutdown::Both), self.1.shutdown(Shutdown::Both));
    }
}

impl WayState {
    fn pass_on(
        self: &Arc<Self>,
        number: u64,
        mut from: impl Read + Send + 'static,
        mut to: impl Write + Send + 'static,
        end: Arc<End>,
    ) {
        let (sender, receiver): (Sender<(Instant, Vec<u8>)>, Receiver<_>) = channel();
        let state = Arc::clone(self);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                let late = Duration::from_millis(state.one_way_ms.load(Ordering::SeqCst));
                if sender.send((Instant::now() + late, buffer[..length].to_vec())).is_err() {
                    return;
                }
            }
        });
        let state = Arc::clone(self);
        std::thread::spawn(move || {
            while let Ok((due, bytes)) = receiver.recv() {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                state.wait_while_frozen(number);
                if to.write_all(&bytes).is_err() {
                    break;
                }
            }
            end.end();
        });
    }

    fn wait_while_frozen(&self, number: u64) {
        let mut frozen = self.frozen.lock().expect("no panic");
        while number <= *frozen || self.freezes_all.load(Ordering::SeqCst) {
            frozen = self.thawed.wait_timeout(frozen, Duration::from_millis(50)).expect("no panic").0;
        }
    }
}
