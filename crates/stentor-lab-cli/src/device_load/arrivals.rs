//! Receptions of messages at devices, message by message: a loss is a missing device, counted and not estimated.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The bytes before a message's number in its payload.
const BEFORE_NUMBER: &[u8] = br#""n":""#;

/// Receptions of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArrivalRow {
    /// Its number.
    pub(crate) number: u64,
    /// Number of devices that received it.
    pub(crate) devices: u64,
    /// Receptions by a device that already had it.
    pub(crate) repeats: u64,
    /// Index of the first device that received it.
    pub(crate) first_device: usize,
    /// Time of the last first reception at a device, in microseconds since 1970.
    pub(crate) last_us: u64,
}

/// Counts receptions at a number of devices.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    devices: usize,
    messages: HashMap<u64, MessageArrivals>,
    distinct: u64,
    repeats: u64,
    unnumbered: u64,
}

#[derive(Debug)]
struct MessageArrivals {
    /// One bit for each device.
    holders: Vec<u64>,
    row: ArrivalRow,
}

impl Arrivals {
    /// Creates empty counts for a number of devices.
    pub(crate) fn of(devices: usize) -> Self {
        Self { devices, ..Self::default() }
    }

    /// Counts a payload received by a device.
    pub(crate) fn note(&mut self, payload: &[u8], device: usize, at_us: u64) {
        let Some(number) = number_of(payload) else {
            self.unnumbered += 1;
            return;
        };
        let words = self.devices.div_ceil(64);
        let message = self.messages.entry(number).or_insert_with(|| MessageArrivals {
            holders: vec![0; words],
            row: ArrivalRow { number, devices: 0, repeats: 0, first_device: device, last_us: at_us },
        });
        let bit = 1_u64 << (device % 64);
        if message.holders[device / 64] & bit != 0 {
            message.row.repeats += 1;
            self.repeats += 1;
            return;
        }
        message.holders[device / 64] |= bit;
        message.row.devices += 1;
        message.row.last_us = at_us;
        self.distinct += 1;
    }

    /// Returns the number of deliveries without repeats.
    pub(crate) const fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Returns the number of repeats.
    pub(crate) const fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Returns the number of payloads without a number, which are not from the bench.
    pub(crate) const fn unnumbered(&self) -> u64 {
        self.unnumbered
    }

    /// Lists the receptions of the messages with these numbers.
    pub(crate) fn rows(&self, first: u64, last: u64) -> Vec<ArrivalRow> {
        (first..=last).filter_map(|number| self.messages.get(&number)).map(|one| one.row.clone()).collect()
    }
}

/// Reads the number of a message.
fn number_of(payload: &[u8]) -> Option<u64> {
    let at = payload.windows(BEFORE_NUMBER.len()).position(|window| window == BEFORE_NUMBER)?;
    let digits = payload[at + BEFORE_NUMBER.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let mut number = None;
    for digit in digits {
        number = Some(number.unwrap_or(0_u64).checked_mul(10)?.checked_add(u64::from(digit - b'0'))?);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_counts_once_for_a_message_and_what_comes_again_counts_apart() {
        let mut arrivals = Arrivals::of(100);
        let payload = br#"{"id":"msg_1","data":{"n":"7"}}"#;
        for (device, at_us) in [(99, 10), (0, 20), (99, 30)] {
            arrivals.note(payload, device, at_us);
        }
        arrivals.note(br#"{"data":{}}"#, 1, 40);
        let row = ArrivalRow { number: 7, devices: 2, repeats: 1, first_device: 99, last_us: 20 };
        assert_eq!(arrivals.rows(0, 9), [row]);
        assert_eq!((arrivals.distinct(), arrivals.repeats(), arrivals.unnumbered()), (2, 1, 1));
    }

    #[test]
    fn a_number_is_digits_behind_its_name() {
        assert_eq!(number_of(br#"{"n":"18446744073709551615"}"#), Some(u64::MAX));
        for payload in [&br#"{"n":""}"#[..], br#"{"n":7}"#, b"", br#"{"n":"18446744073709551616"}"#] {
            assert_eq!(number_of(payload), None);
        }
    }
}
