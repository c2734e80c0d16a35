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

/// What the ends of a link are called and where they are, where they have addresses of their own.
#[derive(Clone, Copy, Debug)]
struct LinkEnds {
    interface: &'static str,
    /// The device's address, and the server's.
    addresses: [Ipv4Addr; 2],
}

/// The ends of a link by itself, and of one behind it.
const ENDS: LinkEnds = LinkEnds {
    interface: INTERFACES[0],
    addresses: [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)],
};
const ENDS_BEHIND: LinkEnds = LinkEnds {
    interface: INTERFACES[1],
    addresses: [Ipv4Addr::new(10, 77, 1, 1), Ipv4Addr::new(10, 77, 1, 2)],
};

const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What is to be raised.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What packets meet between the sides.
    pub link: Link,
    /// Which level, or the best there is.
    pub level: Wanted,
    /// Decides which packets are lost and how much each is delayed.
    pub seed: u64,
    /// What the device may use.
    pub device: CgroupLimits,
    /// What the server may use.
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

/// Why there is no rig.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// The machine does not allow this level.
    #[error("this machine has no {level}: {reason}")]
    NoLevel {
        /// What was asked for.
        level: RigLevel,
        /// What is missing, and what to do.
        reason: String,
    },
    /// A limit was asked for that cannot be set.
    #[error("the limits of the {} cannot be set: {source}", side.word())]
    NoLimits {
        /// Whose limits.
        side: Side,
        /// The error of the control group.
        source: CgroupError,
    },
    /// Something else went wrong.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Two sides and what is between them. Dropping it takes everything down, and ends what still runs in its control groups.
#[derive(Debug)]
pub struct Rig {
    level: RigLevel,
    ends: LinkEnds,
    notes: Vec<String>,
    // Stopped before the sides go, whose interfaces it holds.
    engine: Option<LinkEngine>,
    /// The device's, and the server's.
    hosts: [SideHost; 2],
}

impl Rig {
    /// Raises what the plan says. At [`Wanted::Best`] a lower level is taken where a higher one cannot be had; `notes` say why.
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

    /// What stands between the sides.
    #[must_use]
    pub const fn level(&self) -> RigLevel {
        self.level
    }

    /// Why something is less than the plan asked for, a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The address of a side: what the other side connects to.
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

    /// Starts a process on a side whose `CLOCK_MONOTONIC` is ahead of ours by so many nanoseconds, in a time namespace.
    pub fn spawn_with_offset(&self, side: Side, offset_ns: i64, command: Command) -> io::Result<Child> {
        self.hosts[side.index()].spawn_with_offset(offset_ns, command)
    }

    /// Runs something on a thread in a side's namespace, outside of its limits: sockets made there belong to the side.
    pub fn within<T: Send + 'static>(
        &self,
        side: Side,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        // A thread is born in the namespace of the one that starts it.
        self.hosts[side.index()].place.run(move || std::thread::Builder::new().spawn(work))
    }

    /// Begins to keep packets; what was kept before is forgotten.
    pub fn begin_capture(&self) {
        if let Some(engine) = &self.engine {
            engine.begin_capture();
        }
    }

    /// Ends it and hands over what was kept, which is incomplete where there is no engine. Packets that are still on
    /// their way are in it at their first end only.
    #[must_use]
    pub fn end_capture(&self) -> Capture {
        self.engine.as_ref().map(LinkEngine::end_capture).unwrap_or_default()
    }

    /// What all processes of a side have used so far.
    pub fn usage(&self, side: Side) -> io::Result<Usage> {
        self.hosts[side.index()].usage()
    }

    /// Holds what runs on a side to so much processor time from now on (100 is one core), or to none; only a side whose plan
    /// has such a limit can be changed.
    pub fn hold_cpu(&self, side: Side, percent: Option<u32>) -> io::Result<()> {
        self.hosts[side.index()].hold_cpu(percent)
    }

    /// How late the link was since the last call of [`Self::reset_lateness`], or since it was raised; no packets where
    /// there is no engine.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        self.engine.as_ref().map(LinkEngine::lateness).unwrap_or_default()
    }

    /// Counts lateness anew.
    pub fn reset_lateness(&self) {
        if let Some(engine) = &self.engine {
            engine.reset_lateness();
        }
    }

    /// What the engine counted of the packets that a side sent; nothing where there is no engine.
    #[must_use]
    pub fn traffic(&self, from: Side) -> Traffic {
        self.engine.as_ref().map(|engine| engine.traffic(from)).unwrap_or_default()
    }

    /// Waits until no packet has been on its way and none has come for so long; `false` if that did not come to pass in time.
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

    /// What the kernel counted at a side's interface.
    pub fn counters(&self, side: Side) -> io::Result<InterfaceCounters> {
        self.hosts[side.index()].place.counters(self.ends.interface)
    }

    /// Whether something on a side listens at this TCP port.
    pub fn listens(&self, side: Side, port: u16) -> io::Result<bool> {
        self.hosts[side.index()].place.listens(port)
    }

    /// Cuts the link, so that whatever enters it from now on is lost, or joins it again; `false` where there is no engine.
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

/// Puts between the sides what belongs there.
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

/// Returns what a refusal means for whoever ran this.
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
