//! Compares the ledger with the messages that each device received, as the device saw them.

use super::super::comparison::Comparison;
use super::super::histories;
use crate::client::ApiClient;
use crate::ledger::CampaignLedger;
use crate::mqtt_devices::{DeviceRecord, RegisteredDevice};
use std::collections::BTreeSet;

const MAX_EXAMPLES: usize = 5;
/// The number of devices that are queried although nothing is odd about them.
const SAMPLE: usize = 1_000;
/// The maximum number of devices that are queried because of an oddity.
const ODD_MAX_COUNT: usize = 10_000;

/// Compares ledger and devices, device by device.
pub(super) async fn run(
    client: &ApiClient,
    registered: &[RegisteredDevice],
    records: &[DeviceRecord],
    ledger: &CampaignLedger,
) -> anyhow::Result<Comparison> {
    let mut comparison = Comparison::default();
    let mut sampled: BTreeSet<usize> =
        (0..records.len()).step_by((records.len() / SAMPLE).max(1)).take(SAMPLE).collect();
    for (place, record) in records.iter().enumerate() {
        if comparison.note(place, record, &ledger.message) && sampled.len() < SAMPLE + ODD_MAX_COUNT {
            sampled.insert(place);
        }
    }
    for place in &sampled {
        let history = histories::fetch_one(client, &ledger.message, &registered[*place].id).await?;
        let got = records[*place].receptions(&ledger.message);
        // A device that never got it is lost already.
        if got > 0 && history.state.as_deref() != Some("delivered") {
            comparison.disagreeing += 1;
            comparison.give_example(|| format!("device {place} got it {got} times, ledger says {history:?}"));
        }
    }
    comparison.asked = sampled.len() as u64;
    comparison.lost += (records.len() as u64).saturating_sub(ledger.audience);
    Ok(comparison)
}

impl Comparison {
    /// Judges the messages that one device received. Returns true if anything is odd about it.
    fn note(&mut self, place: usize, record: &DeviceRecord, message: &str) -> bool {
        let got = record.receptions(message);
        let strange = record.messages() > usize::from(got > 0) || !record.faults.is_empty();
        self.lost += u64::from(got == 0);
        self.disagreeing += u64::from(strange);
        self.duplicates += u64::from(got.saturating_sub(1));
        // A repetition within one connection is unexplained: the device did not lose its connection.
        let is_unmarked = record.repeats_within_connection > 0;
        self.unmarked_duplicates += u64::from(is_unmarked);
        let is_odd = got != 1 || strange || is_unmarked;
        if got == 0 || strange || is_unmarked {
            self.give_example(|| format!("device {place}: {record:?}"));
        }
        is_odd
    }

    fn give_example(&mut self, example: impl FnOnce() -> String) {
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(example());
        }
    }
}

#[cfg(test)]
mod tests;
