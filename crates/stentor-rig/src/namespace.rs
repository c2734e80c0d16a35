//! A network namespace, held by a thread that lives there: processes started by the thread are born there too.

use crate::kernel;
use crate::netlink::Netlink;
use rustix::net::{AddressFamily, SocketType, netdevice::name_to_index, socket};
use rustix::thread::gettid;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// The maximum size of all packets, with their IP header, as on Ethernet.
pub const MTU_BYTES: u32 = 1500;
const TUN: &str = "/dev/net/tun";
/// The names of our interfaces: at both ends of a link, and at both ends of one behind it.
pub(crate) const INTERFACES: [&str; 2] = ["stentor0", "stentor1"];
const NETWORK_PREFIX: u8 = 24;
/// `O_NONBLOCK`.
const NONBLOCKING: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

type NamespaceJob = Box<dyn FnOnce() + Send>;

/// A thread in a network namespace, or without one, that executes jobs.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// The thread's number, under which others find its namespace.
    pub(crate) thread_id: u32,
    jobs: Option<Sender<NamespaceJob>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    /// Starts a thread that stays where it is.
    pub(crate) fn shared(name: &str) -> io::Result<Self> {
        Self::start(name, || Ok(()))
    }

    /// Starts a thread in a new network namespace with its loopback up.
    pub(crate) fn fresh(name: &str) -> io::Result<Self> {
        Self::start(name, || {
            kernel::leave_network()?;
            // Neighbour discovery would mix packets of its own with those of an experiment.
            let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
            let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
            Netlink::open()?.switch_on(index_of("lo")?, 0)
        })
    }

    fn start(name: &str, prepare: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let (jobs, todo) = channel::<NamespaceJob>();
        let (ready, prepared) = channel();
        let work = move || {
            let outcome = prepare().map(|()| gettid().as_raw_nonzero().get());
            let is_ready = outcome.is_ok();
            // Fails only if the caller no longer waits.
            let _ = ready.send(outcome);
            if is_ready {
                todo.into_iter().for_each(|job| job());
            }
        };
        let thread = thread::Builder::new().name(format!("rig-{name}")).spawn(work)?;
        let outcome = prepared.recv().unwrap_or_else(|_| Err(gone()));
        let thread_id = outcome?.cast_unsigned();
        Ok(Self { thread_id, jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs a job there, and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, outcome) = channel();
        let job: NamespaceJob = Box::new(move || {
            let _ = done.send(job());
        });
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        outcome.recv().map_err(|_| gone())?
    }

    /// Creates a TUN device there, with an address and all routes. Its reads and writes never block.
    pub(crate) fn add_tun(&self, interface: &'static str, address: Ipv4Addr) -> io::Result<File> {
        self.run(move || {
            let file = OpenOptions::new().read(true).write(true).custom_flags(NONBLOCKING).open(TUN)?;
            kernel::attach_tun(&file, interface)?;
            set_up(interface, address)?;
            Ok(file)
        })
    }

    /// Creates a pair of virtual Ethernet devices between this namespace and another.
    pub(crate) fn add_pair(
        &self,
        interface: &'static str,
        here: Ipv4Addr,
        other: &Self,
        there: Ipv4Addr,
    ) -> io::Result<()> {
        let other_thread = other.thread_id;
        self.run(move || {
            Netlink::open()?.add_pair(interface, other_thread)?;
            set_up(interface, here)
        })?;
        other.run(move || set_up(interface, there))
    }

    /// Returns true if a socket listens there at this TCP port, at any address.
    pub(crate) fn listens(&self, port: u16) -> io::Result<bool> {
        self.run(move || {
            let v4 = fs::read_to_string("/proc/thread-self/net/tcp")?;
            // Missing where IPv6 is.
            let v6 = fs::read_to_string("/proc/thread-self/net/tcp6").unwrap_or_default();
            Ok(v4.lines().chain(v6.lines()).any(|row| is_listener(row, port)))
        })
    }

    /// Reads an interface's own counters: bytes and packets received, then sent.
    pub(crate) fn counters(&self, interface: &'static str) -> io::Result<InterfaceCounters> {
        self.run(move || {
            // Not /proc/net, which is the namespace of the process' first thread.
            let table = fs::read_to_string("/proc/thread-self/net/dev")?;
            InterfaceCounters::parse(&table, interface)
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the interface has no counters"))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // The thread ends with its last job. A panic in it has been reported already.
            let _ = thread.join();
        }
    }
}

/// Counters of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Bytes that came in.
    pub received_bytes: u64,
    /// Packets that came in.
    pub received_packets: u64,
    /// Bytes that went out.
    pub sent_bytes: u64,
    /// Packets that went out.
    pub sent_packets: u64,
}

impl InterfaceCounters {
    fn parse(table: &str, interface: &str) -> Option<Self> {
        let row = table.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
        let fields: Vec<u64> = row.split_whitespace().map_while(|field| field.parse().ok()).collect();
        Some(Self {
            received_bytes: *fields.first()?,
            received_packets: *fields.get(1)?,
            sent_bytes: *fields.get(8)?,
            sent_packets: *fields.get(9)?,
        })
    }
}

/// Returns true if a row of the kernel's table of TCP sockets listens at a port.
fn is_listener(row: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let mut fields = row.split_whitespace().skip(1);
    let local = fields.next().and_then(|address| address.rsplit_once(':'));
    let is_port = local.is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port));
    is_port && fields.nth(1) == Some(LISTEN)
}

fn set_up(interface: &str, address: Ipv4Addr) -> io::Result<()> {
    let netlink = Netlink::open()?;
    let index = index_of(interface)?;
    netlink.add_address(index, address, NETWORK_PREFIX)?;
    netlink.switch_on(index, MTU_BYTES)?;
    match netlink.add_default_route(index) {
        // Between two links only the networks of both are known, which is all that is needed there.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        added => added,
    }
}

fn index_of(name: &str) -> io::Result<u32> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(name_to_index(&socket, name)?)
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the thread of this side has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_the_name_of_the_interface() {
        let table = "Inter-|   Receive\n face |bytes\n    lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\nstentor0:10 20 0 0 0 0 0 0 30 40 0 0 0 0 0 0\n";
        let expected =
            InterfaceCounters { received_bytes: 10, received_packets: 20, sent_bytes: 30, sent_packets: 40 };
        assert_eq!(InterfaceCounters::parse(table, INTERFACES[0]), Some(expected));
        assert_eq!(InterfaceCounters::parse(table, "eth0"), None);
        assert_eq!(InterfaceCounters::parse("stentor0: 1 x", INTERFACES[0]), None);
    }

    #[test]
    fn a_listener_is_told_from_a_connection_at_the_same_port() {
        assert!(is_listener("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000", 8080));
        assert!(!is_listener("   0: 0100007F:1F90 0100007F:C000 01 00000000:00000000", 8080));
        assert!(!is_listener("  sl  local_address rem_address   st", 8080));
    }

    #[test]
    fn what_is_run_there_is_run_by_its_thread() {
        let place = Namespace::shared("test").unwrap();
        let id = place.run(|| Ok(gettid().as_raw_nonzero().get())).unwrap();
        assert_eq!(id.cast_unsigned(), place.thread_id);
        assert_eq!(place.run(|| Err::<(), _>(io::Error::other("no"))).unwrap_err().to_string(), "no");
    }
}
