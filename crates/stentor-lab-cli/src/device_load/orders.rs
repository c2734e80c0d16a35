//! Requests of the bench to a process of devices, and the responses: lines of JSON over a connection of their own.

use super::arrivals::ArrivalRow;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Settings of a process of devices at its start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeviceSettings {
    /// Address at which the bench waits for the process.
    pub(crate) control: SocketAddr,
    /// Address of the server for the devices.
    pub(crate) server: SocketAddr,
    /// Source address of the devices' connections.
    pub(crate) source: IpAddr,
    /// Certificate authority of the server; without it there is no TLS.
    pub(crate) authority: Option<PathBuf>,
    /// Limit of connections that are being made at the same time.
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
    /// Topic filter of its subscription.
    pub(crate) filter: String,
}

/// A request of the bench.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeviceOrder {
    /// Connects every device, and reconnects it whenever its connection breaks.
    Connect,
    /// Returns the status.
    Status,
    /// Returns the receptions of the messages with these numbers.
    Arrivals {
        /// The first.
        first: u64,
        /// The last.
        last: u64,
    },
}

/// A response of the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeviceAnswer {
    /// To `Connect` and `Status`.
    Status(DeviceStatus),
    /// To `Arrivals`.
    Arrivals(Vec<ArrivalRow>),
}

/// Status of a process of devices.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct DeviceStatus {
    /// Devices that are connected and subscribed.
    pub(crate) ready: u64,
    /// Time at which the last one became ready, in microseconds since 1970.
    pub(crate) ready_us: u64,
    /// Connections that broke after they were ready.
    pub(crate) broken: u64,
    /// Logins and subscriptions that were refused, and connections that broke before they were ready.
    pub(crate) refused: u64,
    /// Deliveries without repeats.
    pub(crate) distinct: u64,
    /// Repeated deliveries.
    pub(crate) repeats: u64,
    /// Deliveries of messages that are not from the bench.
    pub(crate) unnumbered: u64,
}
