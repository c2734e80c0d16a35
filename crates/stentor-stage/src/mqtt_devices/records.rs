//! The messages that each device received, as the device saw them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// The messages that one device received.
#[derive(Clone, Debug, Default)]
pub struct DeviceRecord {
    /// The number of receptions of each message, by the message's id.
    receptions: HashMap<String, u32>,
    /// The number of repeated messages within one connection.
    pub repeats_within_connection: u32,
    /// The input that it could not parse.
    pub faults: Vec<&'static str>,
    /// Connections that let it in.
    pub connections: u32,
    has_confirmed: bool,
}

impl DeviceRecord {
    /// Returns the number of receptions of a message.
    pub fn receptions(&self, message: &str) -> u32 {
        self.receptions.get(message).copied().unwrap_or(0)
    }

    /// Returns the number of receptions of all messages.
    pub fn all_receptions(&self) -> u64 {
        self.receptions.values().map(|count| u64::from(*count)).sum()
    }

    /// Returns the record of a device with these numbers of receptions.
    #[cfg(test)]
    pub fn of(messages: &[(&str, u32)]) -> Self {
        let receptions = messages.iter().map(|(id, count)| ((*id).to_owned(), *count)).collect();
        Self { receptions, ..Self::default() }
    }

    /// Returns the number of different messages.
    pub fn messages(&self) -> usize {
        self.receptions.len()
    }
}

/// The records of all devices so far, and the number of connected ones.
#[derive(Debug)]
pub(super) struct DeviceRecords {
    devices: Vec<Mutex<DeviceRecord>>,
    connected: AtomicU64,
    connected_max: AtomicU64,
    having: AtomicU64,
    confirmed: AtomicU64,
}

impl DeviceRecords {
    pub(super) fn new(devices: usize) -> Self {
        let devices = (0..devices).map(|_| Mutex::default()).collect();
        let zero = AtomicU64::default;
        Self { devices, connected: zero(), connected_max: zero(), having: zero(), confirmed: zero() }
    }

    /// Records a message. `is_repeated_here` is true if it came through the same connection before.
    pub(super) fn note_message(&self, device: usize, message: &str, is_repeated_here: bool) {
        let mut record = self.lock(device);
        if record.receptions.is_empty() {
            self.having.fetch_add(1, Ordering::Relaxed);
        }
        *record.receptions.entry(message.to_owned()).or_default() += 1;
        record.repeats_within_connection += u32::from(is_repeated_here);
    }

    pub(super) fn note_confirmed(&self, device: usize) {
        let had_confirmed = std::mem::replace(&mut self.lock(device).has_confirmed, true);
        self.confirmed.fetch_add(u64::from(!had_confirmed), Ordering::Relaxed);
    }

    pub(super) fn note_fault(&self, device: usize, fault: &'static str) {
        self.lock(device).faults.push(fault);
    }

    pub(super) fn note_connected(&self, device: usize) {
        self.lock(device).connections += 1;
        let connected = self.connected.fetch_add(1, Ordering::Relaxed) + 1;
        self.connected_max.fetch_max(connected, Ordering::Relaxed);
    }

    pub(super) fn note_lost(&self) {
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of connected devices.
    pub(super) fn connected(&self) -> u64 {
        self.connected.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of connected devices so far.
    pub(super) fn connected_max(&self) -> u64 {
        self.connected_max.load(Ordering::Relaxed)
    }

    /// Returns the number of devices that have received a message.
    pub(super) fn having(&self) -> u64 {
        self.having.load(Ordering::Relaxed)
    }

    /// Returns the number of devices that have confirmed a message.
    pub(super) fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// Returns the number of devices.
    pub(super) const fn count(&self) -> usize {
        self.devices.len()
    }

    /// Copies the records of all devices.
    pub(super) fn all(&self) -> Vec<DeviceRecord> {
        (0..self.devices.len()).map(|device| self.lock(device).clone()).collect()
    }

    fn lock(&self, device: usize) -> MutexGuard<'_, DeviceRecord> {
        self.devices[device].lock()
    }
}
