//! The rig itself: raised from a plan, used, and taken down without a trace.

mod side_host;

use crate::capture::Capture;
use crate::cgroup::{CgroupError, CgroupLimits};
use crate::engine::{LinkEngine, Traffic};
use crate::lateness::Lateness;
use crate::level::{RigLevel, Wanted};
use crate::link::Link;
use crate::namespace::{INTERFACES, InterfaceCounters, Namespace};
use crate::side::Side;
use crate::usage::Usage;
use side_host::SideHost;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interface name and the addresses of a link's ends, if they have addresses of their own.
#[derive(Clone, Copy, Debug)]
struct LinkEnds {
    interface: &'static str,
    /// The device's address, and the server's.
    addresses: [Ipv4Addr; 2],
}

/// The ends of a link, and of a second link behind it.
const ENDS: LinkEnds = LinkEnds {
    interface: INTERFACES[0],
    addresses: [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)],
};
const ENDS_BEHIND: LinkEnds = LinkEnds {
    interface: INTERFACES[1],
    addresses: [Ipv4Addr::new(10, 77, 1, 1), Ipv4Addr::new(10, 77, 1, 2)],
};

const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The plan of a rig.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The link between the sides.
    pub link: Link,
    /// The level, or the best available.
    pub level: Wanted,
    /// The seed that decides which packets are lost, and the delay of each.
    pub seed: u64,
    /// The limits of the device.
    pub device: CgroupLimits,
    /// The limits of the server.
    pub server: CgroupLimits,
}

impl Plan {
    /// A plan for a link, at the best level, without limits.
    #[must_use]
    pub fn new(link: Link) -> Self {
        Self {
            link,
            level: Wanted::Best,
            seed: 1,
            device: CgroupLimits::default(),
            server: CgroupLimits::default(),
        }
    }
}

/// The reason why there is no rig.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// The machine does not allow this level.
    #[error("this machine has no {level}: {reason}")]
    NoLevel {
        /// The requested level.
        level: RigLevel,
        /// The missing requirement, and a remedy.
        reason: String,
    },
    /// A requested limit cannot be set.
    #[error("the limits of the {} cannot be set: {source}", side.word())]
    NoLimits {
        /// The side of the limits.
        side: Side,
        /// The error of the control group.
        source: CgroupError,
    },
    /// Something else went wrong.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Two sides and the link between them. Dropping it takes everything down, and ends the processes left in its control groups.
#[derive(Debug)]
pub struct Rig {
    level: RigLevel,
    ends: LinkEnds,
    notes: Vec<String>,
    // Stopped before the sides are dropped, because it holds their interfaces.
    engine: Option<LinkEngine>,
    /// The device's, and the server's.
    hosts: [SideHost; 2],
}

impl Rig {
    /// Raises a rig from a plan. At [`Wanted::Best`] a lower level is taken if a higher one is not available; `notes` gives the reasons.
    pub fn raise(plan: &Plan) -> Result<Self, RigError> {
        let mut notes = Vec::new();
        let candidates = plan.level.candidates();
        for level in &candidates {
            match Self::raise_at(*level, plan) {
                Err(RigError::NoLevel { level, reason }) => notes.push(no_level(level, &reason)),
                Err(error) => return Err(error),
                Ok(mut rig) => {
                    notes.append(&mut rig.notes);
                    return Ok(Self { notes, ..rig });
                }
            }
        }
        let level = candidates[0];
        Err(RigError::NoLevel { level, reason: notes.join("; ") })
    }

    fn raise_at(level: RigLevel, plan: &Plan) -> Result<Self, RigError> {
        let refused = |error: io::Error| RigError::NoLevel { level, reason: what_to_do(&error) };
        let place = |side: Side| match level {
            RigLevel::Loopback => Namespace::shared(side.word()),
            RigLevel::Netns | RigLevel::Veth => Namespace::fresh(side.word()),
        };
        let places = [place(Side::Device).map_err(refused)?, place(Side::Server).map_err(refused)?];
        Self::join(level, plan, ENDS, places)
    }

    /// Raises a link behind the server of another rig, at the level of that: its server is the device of this one. The plan's level
    /// means nothing here.
    pub fn raise_behind(plan: &Plan, front: &Self) -> Result<Self, RigError> {
        let level = front.level;
        let refused = |error: io::Error| RigError::NoLevel { level, reason: what_to_do(&error) };
        // A thread is born in the namespace of the one that starts it.
        let middle = &front.hosts[Side::Server.index()].place;
        let middle = middle.run(|| Namespace::shared("middle")).map_err(refused)?;
        let behind = match level {
            RigLevel::Loopback => Namespace::shared("behind"),
            RigLevel::Netns | RigLevel::Veth => Namespace::fresh("behind"),
        };
        Self::join(level, plan, ENDS_BEHIND, [middle, behind.map_err(refused)?])
    }

    fn join(level: RigLevel, plan: &Plan, ends: LinkEnds, places: [Namespace; 2]) -> Result<Self, RigError> {
        let refused = |error: io::Error| RigError::NoLevel { level, reason: what_to_do(&error) };
        let engine = join(level, plan, ends, &places).map_err(refused)?;
        let mut notes = Vec::new();
        let [device, server] = places;
        let device = SideHost::take(Side::Device, device, plan.device, &mut notes)?;
        let server = SideHost::take(Side::Server, server, plan.server, &mut notes)?;
        Ok(Self { level, ends, notes, engine, hosts: [device, server] })
    }

    /// Returns the kind of connection between the sides.
    #[must_use]
    pub const fn level(&self) -> RigLevel {
        self.level
    }

    /// Returns the reasons why the rig is less than planned, a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the address of a side, to which the other side connects.
    #[must_use]
    pub const fn address(&self, side: Side) -> IpAddr {
        match self.level {
            RigLevel::Netns | RigLevel::Veth => IpAddr::V4(self.ends.addresses[side.index()]),
            RigLevel::Loopback => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    /// Starts a process on a side, in its namespace and within its limits.
    pub fn spawn(&self, side: Side, command: Command) -> io::Result<Child> {
        self.hosts[side.index()].spawn(command)
    }

    /// Starts a process on a side with its `CLOCK_MONOTONIC` ahead of ours by a number of nanoseconds, in a time namespace.
    pub fn spawn_with_offset(&self, side: Side, offset_ns: i64, command: Command) -> io::Result<Child> {
        self.hosts[side.index()].spawn_with_offset(offset_ns, command)
    }

    /// Runs a job on a thread in a side's namespace, outside of its limits. Sockets created there belong to the side.
    pub fn within<T: Send + 'static>(
        &self,
        side: Side,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        // A thread is born in the namespace of the one that starts it.
        self.hosts[side.index()].place.run(move || std::thread::Builder::new().spawn(work))
    }

    /// Begins a capture and discards the previous one.
    pub fn begin_capture(&self) {
        if let Some(engine) = &self.engine {
            engine.begin_capture();
        }
    }

    /// Ends the capture and returns it. It is incomplete if there is no engine. Packets still on their way are in it at their first end
    /// only.
    #[must_use]
    pub fn end_capture(&self) -> Capture {
        self.engine.as_ref().map(LinkEngine::end_capture).unwrap_or_default()
    }

    /// Returns the usage of all processes of a side so far.
    pub fn usage(&self, side: Side) -> io::Result<Usage> {
        self.hosts[side.index()].usage()
    }

    /// Limits the processor time of a side from now on (100 is one core), or lifts the limit. Only a side with such a limit in its plan can
    /// be changed.
    pub fn hold_cpu(&self, side: Side, percent: Option<u32>) -> io::Result<()> {
        self.hosts[side.index()].hold_cpu(percent)
    }

    /// Returns the lateness of the link since the last call of [`Self::reset_lateness`], or since it was raised; no packets if there is no
    /// engine.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        self.engine.as_ref().map(LinkEngine::lateness).unwrap_or_default()
    }

    /// Resets the lateness.
    pub fn reset_lateness(&self) {
        if let Some(engine) = &self.engine {
            engine.reset_lateness();
        }
    }

    /// Returns the engine's counts of the packets that a side sent; zero if there is no engine.
    #[must_use]
    pub fn traffic(&self, from: Side) -> Traffic {
        self.engine.as_ref().map(|engine| engine.traffic(from)).unwrap_or_default()
    }

    /// Waits until, for a time of `quiet`, no packet has been on its way and none has entered. Returns `false` if that did not happen
    /// within `at_most`.
    #[must_use]
    pub fn settle(&self, quiet: Duration, at_most: Duration) -> bool {
        let Some(engine) = &self.engine else { return true };
        let traffic = || Side::BOTH.map(|side| engine.traffic(side));
        let (started, mut since, mut last) = (Instant::now(), Instant::now(), traffic());
        while started.elapsed() < at_most {
            std::thread::sleep(LOOK_EVERY);
            let now = traffic();
            if now != last || now.iter().any(|way| way.on_the_way() > 0) {
                (since, last) = (Instant::now(), now);
            } else if since.elapsed() >= quiet {
                return true;
            }
        }
        false
    }

    /// Returns the kernel's counters of a side's interface.
    pub fn counters(&self, side: Side) -> io::Result<InterfaceCounters> {
        self.hosts[side.index()].place.counters(self.ends.interface)
    }

    /// Returns true if a socket on a side listens at this TCP port.
    pub fn listens(&self, side: Side, port: u16) -> io::Result<bool> {
        self.hosts[side.index()].place.listens(port)
    }

    /// Cuts the link, so that every packet that enters it from now on is lost, or joins it again. Returns `false` if there is no engine.
    pub fn cut(&self, is_cut: bool) -> bool {
        self.engine.as_ref().inspect(|engine| engine.cut(is_cut)).is_some()
    }

    /// Makes the engine late on purpose, by a pause before each of its rounds; zero ends that.
    pub fn hinder(&self, pause: Duration) {
        if let Some(engine) = &self.engine {
            engine.hinder(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
        }
    }
}

/// Connects the sides as the level requires.
fn join(
    level: RigLevel,
    plan: &Plan,
    LinkEnds { interface, addresses: [here, there] }: LinkEnds,
    [device, server]: &[Namespace; 2],
) -> io::Result<Option<LinkEngine>> {
    match level {
        RigLevel::Netns => {
            let tuns = [device.add_tun(interface, here)?, server.add_tun(interface, there)?];
            LinkEngine::start(&plan.link, plan.seed, tuns).map(Some)
        }
        RigLevel::Veth => device.add_pair(interface, here, server, there).map(|()| None),
        RigLevel::Loopback => Ok(None),
    }
}

fn no_level(level: RigLevel, reason: &str) -> String {
    format!("no {level}: {reason}")
}

/// Returns advice for the user on an error.
fn what_to_do(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "namespaces and TUN devices need rights ({error}): run it as root, or as `unshare -Ur stentor …` where \
             /dev/net/tun may be written by all"
        ),
        io::ErrorKind::NotFound => format!("/dev/net/tun is missing ({error}): load the module `tun`"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
