//! What each device got, as the device saw it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// What one device got.
#[derive(Clone, Debug, Default)]
pub struct DeviceRecord {
    /// How often it got each message, by the message's id.
    receptions: HashMap<String, u32>,
    /// How often a message came twice through one connection.
    pub repeats_within_connection: u32,
    /// What it could not understand.
    pub faults: Vec<&'static str>,
    /// Connections that let it in.
    pub connections: u32,
    has_confirmed: bool,
}

impl DeviceRecord {
    /// Returns how often it got a message.
    pub fn receptions(&self, message: &str) -> u32 {
        self.receptions.get(message).copied().unwrap_or(0)
    }

    /// Returns how often it got anything.
    pub fn all_receptions(&self) -> u64 {
        self.receptions.values().map(|count| u64::from(*count)).sum()
    }

    /// Returns the record of a device that got these messages so often.
    #[cfg(test)]
    pub fn of(messages: &[(&str, u32)]) -> Self {
        let receptions = messages.iter().map(|(id, count)| ((*id).to_owned(), *count)).collect();
        Self { receptions, ..Self::default() }
    }

    /// Returns how many messages it got, each counted once.
    pub fn messages(&self) -> usize {
        self.receptions.len()
    }
}

/// What all devices got so far, and how many are connected.
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

    /// Notes a message, and whether it came through the same connection before.
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

    /// Returns how many devices are connected.
    pub(super) fn connected(&self) -> u64 {
        self.connected.load(Ordering::Relaxed)
    }

    /// Returns how many were connected at most.
    pub(super) fn connected_max(&self) -> u64 {
        self.connected_max.load(Ordering::Relaxed)
    }

    /// Returns how many devices have got anything.
    pub(super) fn having(&self) -> u64 {
        self.having.load(Ordering::Relaxed)
    }

    /// Returns how many devices have confirmed anything.
    pub(super) fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// Returns how many devices there are.
    pub(super) const fn count(&self) -> usize {
        self.devices.len()
    }

    /// Copies what every device got.
    pub(super) fn all(&self) -> Vec<DeviceRecord> {
        (0..self.devices.len()).map(|device| self.lock(device).clone()).collect()
    }

    fn lock(&self, device: usize) -> MutexGuard<'_, DeviceRecord> {
        self.devices[device].lock()
    }
}
