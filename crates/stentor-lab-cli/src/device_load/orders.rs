//! What the bench asks of a process of devices, and what that answers: lines of JSON over a connection of their own.

use super::arrivals::ArrivalRow;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// What a process of devices is given at its start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeviceSettings {
    /// Where the bench waits for it.
    pub(crate) control: SocketAddr,
    /// Where the devices connect.
    pub(crate) server: SocketAddr,
    /// The address from which they do.
    pub(crate) source: IpAddr,
    /// Who vouches for the server; without it there is no TLS.
    pub(crate) authority: Option<PathBuf>,
    /// Connections that are made at the same time.
    pub(crate) connecting_max_count: usize,
    /// The devices.
    pub(crate) devices: Vec<DeviceLogin>,
}

/// One device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeviceLogin {
    /// Its client id.
    pub(crate) client_id: String,
    /// Its user name.
    pub(crate) user: String,
    /// Its password.
    pub(crate) password: String,
    /// What it subscribes to.
    pub(crate) filter: String,
}

/// What is asked.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeviceOrder {
    /// To connect every device, and from then on whenever a connection breaks.
    Connect,
    /// How far it is.
    Status,
    /// What came of the messages with these numbers.
    Arrivals {
        /// The first.
        first: u64,
        /// The last.
        last: u64,
    },
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeviceAnswer {
    /// To `Connect` and `Status`.
    Status(DeviceStatus),
    /// To `Arrivals`.
    Arrivals(Vec<ArrivalRow>),
}

/// How far a process of devices is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct DeviceStatus {
    /// Devices that are connected and subscribed.
    pub(crate) ready: u64,
    /// When the last one became so, in microseconds since 1970.
    pub(crate) ready_us: u64,
    /// Connections that broke after they were ready.
    pub(crate) broken: u64,
    /// Logins and subscriptions that were refused, and connections that broke before they were ready.
    pub(crate) refused: u64,
    /// Deliveries, repeats apart.
    pub(crate) distinct: u64,
    /// Deliveries that came again.
    pub(crate) repeats: u64,
    /// Deliveries of messages that are none of ours.
    pub(crate) unnumbered: u64,
}
