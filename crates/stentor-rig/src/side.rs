//! The two sides of an experiment.

use serde::{Deserialize, Serialize};

/// One of the two ends of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The phone: where requests begin.
    Device,
    /// The service that answers.
    Server,
}

impl Side {
    /// Both, the device first.
    pub const BOTH: [Self; 2] = [Self::Device, Self::Server];

    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Device => Self::Server,
            Self::Server => Self::Device,
        }
    }

    /// Its name in files and messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Server => "server",
        }
    }

    /// Its place in arrays over both sides.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}
