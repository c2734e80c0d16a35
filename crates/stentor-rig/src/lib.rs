//! The rig: the environment of an experiment.
//!
//! Two sides, a device and a server, each in a network namespace of its own where the machine allows it, and a link between them that
//! delays, slows, loses and counts packets. Each side has its limits, and its usage is measured to the nanosecond. The rig knows nothing
//! about the programs on the sides.
#![deny(unsafe_code)]

pub mod anatomy;
pub mod capture;
pub mod cgroup;
pub mod check;
pub mod clock;
mod engine;
pub mod forward;
mod kernel;
pub mod lateness;
pub mod level;
pub mod link;
mod monotonic;
mod namespace;
mod netlink;
pub mod packet;
mod priority;
pub mod probe;
pub mod rig;
pub mod selftest;
pub mod side;
pub mod usage;
pub mod wakeful;

pub use capture::Capture;
pub use cgroup::CgroupLimits;
pub use engine::Traffic;
pub use level::{RigLevel, Wanted};
pub use link::Link;
pub use namespace::{InterfaceCounters, MTU_BYTES};
pub use rig::{Plan, Rig, RigError};
pub use side::Side;
pub use usage::Usage;
pub use wakeful::Wakeful;
