//! Records of messages received and sent by devices, and read by their app server.

use std::collections::{BTreeMap, HashMap, HashSet};

use parking_lot::{Mutex, MutexGuard};

/// Record of one device.
#[derive(Debug, Default)]
pub(super) struct GatewayDeviceRecord {
    /// Number of receptions of each message, by the message's id.
    got: HashMap<String, u32>,
    /// Messages with an answered receipt.
    confirmed: HashSet<String>,
    /// Receptions of a message after its receipt was answered.
    repeats_after_receipt: u64,
    /// Its messages that were answered with 202, by its own names for them.
    sent: HashSet<String>,
}

/// Record of the app server.
#[derive(Debug, Default)]
pub(super) struct UpstreamRecord {
    /// Number of receptions of each message, by its device and the device's own name for it.
    read: HashMap<(String, String), u32>,
    /// Messages with an answered acknowledgement, by the server's ids.
    acknowledged: HashSet<String>,
    /// Receptions of a message after its acknowledgement was answered.
    repeats_after_acknowledgement: u64,
}

/// Records of all devices and of their app server.
#[derive(Debug, Default)]
pub(super) struct GatewayRecords {
    devices: Vec<Mutex<GatewayDeviceRecord>>,
    upstream: Mutex<UpstreamRecord>,
    refused: Mutex<BTreeMap<String, u64>>,
    strange: Mutex<Vec<String>>,
}

/// Sums over all records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GatewaySums {
    pub(super) receptions: u64,
    pub(super) confirmed: u64,
    pub(super) repeats: u64,
    pub(super) repeats_after_receipt: u64,
    pub(super) upstream_sent: u64,
    pub(super) upstream_read: u64,
    pub(super) upstream_repeats: u64,
    pub(super) upstream_repeats_after_acknowledgement: u64,
}

impl GatewayRecords {
    pub(super) fn new(devices: usize) -> Self {
        Self { devices: (0..devices).map(|_| Mutex::default()).collect(), ..Self::default() }
    }

    /// Records that a device received a message.
    pub(super) fn note_got(&self, device: usize, message: &str) {
        let mut record = self.device(device);
        *record.got.entry(message.to_owned()).or_default() += 1;
        record.repeats_after_receipt += u64::from(record.confirmed.contains(message));
    }

    /// Records that receipts of a device were answered.
    pub(super) fn note_confirmed(&self, device: usize, messages: impl IntoIterator<Item = String>) {
        self.device(device).confirmed.extend(messages);
    }

    /// Records that a message of a device was answered with 202.
    pub(super) fn note_sent(&self, device: usize, name: String) {
        self.device(device).sent.insert(name);
    }

    /// Records that the app server read a message of a device.
    pub(super) fn note_read(&self, id: &str, device: String, name: String) {
        let mut upstream = lock(&self.upstream);
        *upstream.read.entry((device, name)).or_default() += 1;
        let is_repeat = upstream.acknowledged.contains(id);
        upstream.repeats_after_acknowledgement += u64::from(is_repeat);
    }

    /// Records that acknowledgements were answered.
    pub(super) fn note_acknowledged(&self, ids: Vec<String>) {
        lock(&self.upstream).acknowledged.extend(ids);
    }

    /// Records a temporary refusal.
    pub(super) fn note_refused(&self, word: &str) {
        *lock(&self.refused).entry(word.to_owned()).or_default() += 1;
    }

    /// Records an unexpected event.
    pub(super) fn note_strange(&self, what: String) {
        lock(&self.strange).push(what);
    }

    /// Returns true if a device received a message.
    pub(super) fn has_got(&self, device: usize, message: &str) -> bool {
        self.device(device).got.contains_key(message)
    }

    /// Counts messages of devices that were answered with 202 and never read; `ids` contains the ids of the devices in their order.
    pub(super) fn unread(&self, ids: &[String]) -> u64 {
        let upstream = lock(&self.upstream);
        let unread_of = |(device, id): (usize, &String)| {
            let sent = &self.device(device).sent;
            sent.iter().filter(|name| !upstream.read.contains_key(&(id.clone(), (*name).clone()))).count()
                as u64
        };
        ids.iter().enumerate().map(unread_of).sum()
    }

    /// Returns the number of temporary refusals by their code.
    pub(super) fn refused(&self) -> BTreeMap<String, u64> {
        lock(&self.refused).clone()
    }

    /// Lists unexpected events.
    pub(super) fn strange(&self) -> Vec<String> {
        lock(&self.strange).clone()
    }

    /// Adds everything up.
    pub(super) fn sums(&self) -> GatewaySums {
        let mut sums = GatewaySums::default();
        for record in &self.devices {
            let record = lock(record);
            let receptions = record.got.values().map(|count| u64::from(*count)).sum::<u64>();
            sums.receptions += receptions;
            sums.repeats += receptions - record.got.len() as u64;
            sums.confirmed += record.confirmed.len() as u64;
            sums.repeats_after_receipt += record.repeats_after_receipt;
            sums.upstream_sent += record.sent.len() as u64;
        }
        let upstream = lock(&self.upstream);
        sums.upstream_read = upstream.read.len() as u64;
        let all: u64 = upstream.read.values().map(|count| u64::from(*count)).sum();
        sums.upstream_repeats = all - sums.upstream_read;
        sums.upstream_repeats_after_acknowledgement = upstream.repeats_after_acknowledgement;
        sums
    }

    fn device(&self, device: usize) -> MutexGuard<'_, GatewayDeviceRecord> {
        lock(&self.devices[device])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_after_its_receipt_is_counted_apart_and_what_nobody_read_is_told() {
        let records = GatewayRecords::new(2);
        records.note_got(0, "msg_1");
        records.note_got(0, "msg_1");
        records.note_confirmed(0, ["msg_1".to_owned()]);
        records.note_got(0, "msg_1");
        records.note_sent(1, "m-1".to_owned());
        records.note_sent(1, "m-2".to_owned());
        records.note_read("ups_1", "dev_b".to_owned(), "m-2".to_owned());
        records.note_acknowledged(vec!["ups_1".to_owned()]);
        records.note_read("ups_1", "dev_b".to_owned(), "m-2".to_owned());
        assert_eq!(records.unread(&["dev_a".to_owned(), "dev_b".to_owned()]), 1);
        let sums = records.sums();
        assert_eq!((sums.receptions, sums.repeats, sums.repeats_after_receipt, sums.confirmed), (3, 2, 1, 1));
        let upstream = (sums.upstream_sent, sums.upstream_read, sums.upstream_repeats);
        assert_eq!((upstream, sums.upstream_repeats_after_acknowledgement), ((2, 1, 1), 1));
        assert!(records.has_got(0, "msg_1") && !records.has_got(1, "msg_1"));
    }
}
