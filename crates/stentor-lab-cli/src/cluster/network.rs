//! The network of a cluster: if the machine allows it, each group of processes has a network namespace of its own at a common bridge;
//! otherwise all are on this machine's loopback. Packets between two hosts in namespaces can be dropped.
//!
//! A namespace lasts as long as a helper program that waits for the end of its input. That input ends with this process, even if it
//! crashes.

use anyhow::{Context, ensure};
use std::ffi::OsString;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const START_LIMIT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Addresses of this process and of the emulators on the bridge.
const OWN_PLACE: u8 = 1;
const EMULATORS_PLACE: u8 = 2;
/// A hardware address of no interface: packets to it are dropped silently.
const NOBODY: &str = "02:00:00:00:00:01";

/// The hosts of one cluster.
pub(crate) struct ClusterNetwork {
    bridge: Option<Bridge>,
    next_place: u8,
}

struct Bridge {
    namespace: HostNamespace,
    network: [u8; 3],
}

/// A host with an address.
#[derive(Clone)]
pub(crate) struct ClusterHost {
    /// Its address.
    pub(crate) ip: Ipv4Addr,
    namespace: Option<Arc<HostNamespace>>,
}

/// A network namespace with the process that keeps it.
struct HostNamespace {
    keeper: Child,
}

impl ClusterNetwork {
    /// Makes a bridge, or returns the reason for which everything is on the loopback.
    pub(crate) fn make() -> (Self, Option<String>) {
        let bridge = Bridge::make();
        let why =
            bridge.as_ref().err().map(|error| format!("no network namespaces ({error:#}): run it as root"));
        (Self { bridge: bridge.ok(), next_place: EMULATORS_PLACE + 1 }, why)
    }

    /// Returns true if hosts can be cut off from each other.
    pub(crate) const fn can_cut(&self) -> bool {
        self.bridge.is_some()
    }

    /// Returns the network of all hosts, in the form of a server's configuration.
    pub(crate) fn allowed(&self) -> String {
        match &self.bridge {
            None => "loopback".to_owned(),
            Some(bridge) => format!("{}/24", bridge.address(0)),
        }
    }

    /// Returns the host of the emulators, which have no namespace of their own.
    pub(crate) fn emulators(&self) -> ClusterHost {
        let ip = self.bridge.as_ref().map_or(Ipv4Addr::LOCALHOST, |bridge| bridge.address(EMULATORS_PLACE));
        ClusterHost { ip, namespace: None }
    }

    /// Makes a host.
    pub(crate) fn add_host(&mut self) -> anyhow::Result<ClusterHost> {
        let Some(bridge) = &self.bridge else {
            return Ok(ClusterHost { ip: Ipv4Addr::LOCALHOST, namespace: None });
        };
        let (place, namespace) = (self.next_place, HostNamespace::make()?);
        self.next_place += 1;
        let (ip, port, process) = (bridge.address(place), format!("p{place}"), namespace.keeper.id());
        bridge.namespace.ip(&format!(
            "link add {port} type veth peer name eth0 netns {process}\nlink set {port} master br0 up\n"
        ))?;
        namespace.ip(&format!("link set lo up\naddr add {ip}/24 dev eth0\nlink set eth0 up\n"))?;
        Ok(ClusterHost { ip, namespace: Some(Arc::new(namespace)) })
    }
}

impl Bridge {
    fn make() -> anyhow::Result<Self> {
        let (namespace, process) = (HostNamespace::make()?, std::process::id());
        let [_, .., high, low] = process.to_be_bytes();
        // One of the networks for private use, and another one for each process.
        let bridge = Self { namespace, network: [10, 128 | (high & 0x3f), low] };
        let own = format!("st{process}");
        bridge.namespace.ip(&format!(
            "link add br0 type bridge\nlink set br0 up\nlink add p0 type veth peer name {own} netns {process}\n\
             link set p0 master br0 up\n"
        ))?;
        let (first, second) = (bridge.address(OWN_PLACE), bridge.address(EMULATORS_PLACE));
        let here =
            format!("addr add {first}/24 dev {own}\naddr add {second}/24 dev {own}\nlink set {own} up\n");
        batch(Command::new("ip"), &here)?;
        Ok(bridge)
    }

    const fn address(&self, place: u8) -> Ipv4Addr {
        let [a, b, c] = self.network;
        Ipv4Addr::new(a, b, c, place)
    }
}

impl ClusterHost {
    /// Returns the words that run a command on this host.
    pub(crate) fn before(&self) -> Vec<OsString> {
        self.namespace.as_ref().map(|namespace| namespace.before()).unwrap_or_default()
    }

    /// Returns a command that runs on this host.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut words = self.before();
        words.push(program.as_os_str().to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// Returns a port without a listener.
    pub(crate) fn free_port(&self) -> anyhow::Result<u16> {
        // It is free in a host's namespace as well, where no other process listens.
        Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
    }

    /// Drops packets between the two hosts, in both directions if both are in namespaces.
    pub(crate) fn cut(&self, other: &Self) -> anyhow::Result<()> {
        self.each_way(other, |ip| format!("neigh replace {ip} lladdr {NOBODY} dev eth0 nud permanent\n"))
    }

    /// Passes packets between the two hosts again.
    pub(crate) fn mend(&self, other: &Self) -> anyhow::Result<()> {
        self.each_way(other, |ip| format!("neigh del {ip} dev eth0\n"))
    }

    fn each_way(&self, other: &Self, commands: impl Fn(Ipv4Addr) -> String) -> anyhow::Result<()> {
        for (here, there) in [(self, other), (other, self)] {
            if let Some(namespace) = &here.namespace {
                namespace.ip(&commands(there.ip))?;
            }
        }
        Ok(())
    }
}

impl HostNamespace {
    fn make() -> anyhow::Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut namespace = Self { keeper: command.spawn().context("unshare cannot be run")? };
        let (started, ours) = (Instant::now(), std::fs::read_link("/proc/self/ns/net")?);
        let its = format!("/proc/{}/ns/net", namespace.keeper.id());
        while std::fs::read_link(&its).is_ok_and(|its| its == ours) {
            ensure!(namespace.keeper.try_wait()?.is_none(), "unshare --net is refused");
            ensure!(started.elapsed() < START_LIMIT, "unshare --net takes too long");
            std::thread::sleep(POLL_INTERVAL);
        }
        ensure!(namespace.keeper.try_wait()?.is_none(), "unshare --net is refused");
        Ok(namespace)
    }

    fn before(&self) -> Vec<OsString> {
        let process = self.keeper.id().to_string();
        ["nsenter", "--target", &process, "--net", "--"].map(OsString::from).to_vec()
    }

    fn ip(&self, commands: &str) -> anyhow::Result<()> {
        let before = self.before();
        let mut command = Command::new(&before[0]);
        command.args(&before[1..]).arg("ip");
        batch(command, commands)
    }
}

impl Drop for HostNamespace {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// Runs commands of `ip`, one a line.
fn batch(mut ip: Command, commands: &str) -> anyhow::Result<()> {
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = ip.spawn().context("ip cannot be run")?;
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(commands.as_bytes()));
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "ip: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(written?)
}
