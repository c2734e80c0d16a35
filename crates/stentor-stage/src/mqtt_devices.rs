//! Devices of the gateway that are connected over MQTT, with a record of the messages that each of them received.

mod device;
mod places;
mod records;
mod registration;

use device::{MqttDevice, MqttDeviceParts};
use places::ConnectionPlaces;
use records::DeviceRecords;
use rustix::process::{Resource, getrlimit};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

pub use records::DeviceRecord;
pub use registration::{RegisteredDevice, register};

/// Files that a process opens beside the connections of devices.
const OTHER_FILES: u64 = 1_000;

/// The behaviour of devices.
#[derive(Clone, Copy, Debug)]
pub struct MqttDeviceOptions {
    /// The MQTT address of the gateway.
    pub server: SocketAddr,
    /// A device confirms a message at some moment within this time.
    pub confirm_within: Duration,
    /// The seed of these moments.
    pub seed: u64,
}

/// Running devices. Dropping this ends them.
pub struct MqttDevices {
    shared: Arc<MqttDeviceParts>,
    _running: JoinSet<()>,
}

impl MqttDevices {
    /// Connects devices, as many at once as a process may open files.
    pub fn start(registered: &[RegisteredDevice], options: MqttDeviceOptions) -> Self {
        let MqttDeviceOptions { server, confirm_within, seed } = options;
        let count = registered.len();
        let places = ConnectionPlaces::new(places_for(count), count);
        let records = DeviceRecords::new(count);
        let shared = Arc::new(MqttDeviceParts { server, confirm_within, places, records, seed });
        let devices = registered.iter().cloned().enumerate();
        let running = devices.map(|(number, one)| MqttDevice::new(Arc::clone(&shared), number, one).run());
        Self { _running: running.collect(), shared }
    }

    /// Returns the number of devices that can be connected at once.
    pub fn places(&self) -> u64 {
        places_for(self.shared.records.count()) as u64
    }

    /// Returns the number of connected devices.
    pub fn connected(&self) -> u64 {
        self.shared.records.connected()
    }

    /// Returns the maximum number of connected devices so far.
    pub fn connected_max(&self) -> u64 {
        self.shared.records.connected_max()
    }

    /// Returns the number of devices that have received a message.
    pub fn having(&self) -> u64 {
        self.shared.records.having()
    }

    /// Returns the number of devices that have confirmed a message.
    pub fn confirmed(&self) -> u64 {
        self.shared.records.confirmed()
    }

    /// Returns the record of each device, in the order in which the devices were given.
    pub fn records(&self) -> Vec<DeviceRecord> {
        self.shared.records.all()
    }
}

/// The server holds a file for each connection as well, and has the same limit.
fn places_for(devices: usize) -> usize {
    let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    devices.min(usize::try_from(files.saturating_sub(OTHER_FILES).max(1)).unwrap_or(usize::MAX))
}
