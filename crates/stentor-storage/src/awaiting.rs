//! Helpers over the deliveries of the gateway: the devices of a chunk that await a receipt, and the pending deliveries of a device in order
//! of acceptance.

use stentor_core::delivery::Record;
use stentor_core::id::DeviceId;
use stentor_core::ports::store::PendingDelivery;

/// Returns the positions in `asked` of the devices that await a receipt in a chunk. Both `asked` and `devices` are in order of id.
pub(crate) fn awaiting(wanted: &[DeviceId], devices: &[DeviceId], records: &[Record]) -> Vec<usize> {
    let (Some(first), Some(last)) = (devices.first(), devices.last()) else { return Vec::new() };
    let begin = wanted.partition_point(|device| device < first);
    let within = wanted.iter().enumerate().skip(begin).take_while(|(_, device)| *device <= last);
    let awaits = |device: &DeviceId| {
        let record = devices.binary_search(device).ok().and_then(|position| records.get(position));
        record.is_some_and(|record| record.awaits_receipt())
    };
    within.filter(|(_, device)| awaits(device)).map(|(place, _)| place).collect()
}

/// Sorts the pending deliveries of a device, removes duplicates of a message, and keeps the oldest `limit`.
pub(crate) fn in_order(mut found: Vec<PendingDelivery>, limit: usize) -> Vec<PendingDelivery> {
    found.sort_unstable_by_key(|one| (one.message, one.chunk));
    found.dedup_by_key(|one| one.message);
    found.truncate(limit);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stentor_core::delivery::DeliveryState;
    use stentor_core::outcome::Reason;

    use super::*;

    fn ids(numbers: impl IntoIterator<Item = u64>) -> Vec<DeviceId> {
        numbers.into_iter().map(DeviceId::from_raw).collect()
    }

    #[test]
    fn devices_that_await_nothing_or_are_not_in_the_chunk_are_left_out() {
        let accepted = Record::new(DeliveryState::Accepted, Reason::None, false);
        let failed = Record::new(DeliveryState::Failed, Reason::None, false);
        let records = [accepted, failed, accepted, accepted.delivered().expect("accepted"), accepted];
        let found = awaiting(&ids([1, 2, 4, 5, 6, 8, 9]), &ids([2, 4, 5, 6, 8]), &records);
        assert_eq!(found, [1, 3, 5]);
        assert!(awaiting(&ids([1]), &[], &[]).is_empty());
    }

    proptest! {
        #[test]
        fn whoever_is_found_would_be_found_alone(
            wanted in prop::collection::btree_set(0..60_u64, 0..40),
            chunk in prop::collection::btree_map(0..60_u64, 0..3_u8, 0..40),
        ) {
            let accepted = Record::new(DeliveryState::Accepted, Reason::None, false);
            let of = |kind: u8| match kind {
                0 => accepted,
                1 => accepted.delivered().expect("accepted"),
                _ => Record::new(DeliveryState::Expired, Reason::None, false),
            };
            let records: Vec<Record> = chunk.values().map(|kind| of(*kind)).collect();
            let (wanted, devices) = (ids(wanted), ids(chunk.keys().copied()));
            let alone = |place: &usize| chunk.get(&wanted[*place].raw()) == Some(&0);
            let expected: Vec<usize> = (0..wanted.len()).filter(alone).collect();
            prop_assert_eq!(awaiting(&wanted, &devices, &records), expected);
        }
    }
}
