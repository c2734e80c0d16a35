//! The level of a rig that the machine allows.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of connection between the two sides, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RigLevel {
    /// Two network namespaces and the link engine between them.
    Netns,
    /// Two network namespaces, joined by a pair of virtual Ethernet devices without any shaping.
    Veth,
    /// The machine's own loopback.
    Loopback,
}

impl RigLevel {
    /// All of them, the best first.
    pub const ALL: [Self; 3] = [Self::Netns, Self::Veth, Self::Loopback];

    /// Its name in records: `netns`, `veth` or `loopback`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Netns => "netns",
            Self::Veth => "veth",
            Self::Loopback => "loopback",
        }
    }

    /// Lists the properties that cannot be tested at this level, one phrase each.
    #[must_use]
    pub const fn cannot_test(self) -> &'static [&'static str] {
        match self {
            Self::Netns => &[],
            Self::Veth => &[
                "delay, jitter, rate, loss and queues of a link: packets pass unshaped",
                "bytes on the wire: packets are not seen",
                "lateness of the link: there is no engine",
            ],
            Self::Loopback => &[
                "delay, jitter, rate, loss and queues of a link: packets pass unshaped",
                "bytes on the wire: packets are not seen",
                "lateness of the link: there is no engine",
                "addresses: both sides share 127.0.0.1 with everything else on the machine",
            ],
        }
    }

    /// Returns true if packets are delayed, slowed and lost as planned, and captured.
    #[must_use]
    pub const fn shapes(self) -> bool {
        matches!(self, Self::Netns)
    }
}

impl fmt::Display for RigLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The level that an experiment requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The best that the machine allows.
    #[default]
    Best,
    /// This one or none.
    Exactly(RigLevel),
}

impl Wanted {
    /// The levels that would do, the best first.
    pub(crate) fn candidates(self) -> Vec<RigLevel> {
        match self {
            Self::Best => RigLevel::ALL.to_vec(),
            Self::Exactly(level) => vec![level],
        }
    }
}
