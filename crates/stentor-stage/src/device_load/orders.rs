//! What the bench asks of a process of devices, and what that answers: lines of JSON over a connection of their own.

use super::arrivals::ArrivalRow;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// What a process of devices is given at its start.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeviceSettings {
    /// Where the bench waits for it.
    pub control: SocketAddr,
    /// Where the devices connect.
    pub server: SocketAddr,
    /// The address from which they do.
    pub source: IpAddr,
    /// Who vouches for the server; without it there is no TLS.
    pub authority: Option<PathBuf>,
    /// Connections that are made at the same time.
    pub connecting_max_count: usize,
    /// The devices.
    pub devices: Vec<DeviceLogin>,
}

/// One device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeviceLogin {
    /// Its client id.
    pub client_id: String,
    /// Its user name.
    pub user: String,
    /// Its password.
    pub password: String,
    /// What it subscribes to.
    pub filter: String,
}

/// What is asked.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceOrder {
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
pub enum DeviceAnswer {
    /// To `Connect` and `Status`.
    Status(DeviceStatus),
    /// To `Arrivals`.
    Arrivals(Vec<ArrivalRow>),
}

/// How far a process of devices is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Devices that are connected and subscribed.
    pub ready: u64,
    /// When the last one became so, in microseconds since 1970.
    pub ready_us: u64,
    /// Connections that broke after they were ready.
    pub broken: u64,
    /// Logins and subscriptions that were refused, and connections that broke before they were ready.
    pub refused: u64,
    /// Deliveries, repeats apart.
    pub distinct: u64,
    /// Deliveries that came again.
    pub repeats: u64,
    /// Deliveries of messages that are none of ours.
    pub unnumbered: u64,
}
