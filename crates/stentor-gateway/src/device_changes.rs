//! Counts of the changes that devices have made today.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::DeviceId;
use stentor_core::ports::store::StoreError;
use stentor_core::time::Timestamp;

use crate::limits::{DEVICE_CHANGES_KNOWN_MAX_COUNT, DEVICE_CHANGES_PER_DAY_MAX_COUNT};

const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// Counts of the changes that devices have made today.
#[derive(Default)]
pub(crate) struct DeviceChanges(Mutex<ChangesOfDay>);

#[derive(Default)]
struct ChangesOfDay {
    day: i64,
    counts: HashMap<DeviceId, u32>,
}

impl DeviceChanges {
    /// Counts one change; fails with LimitReached if it exceeds the limit.
    pub(crate) fn note(&self, device: DeviceId, now: Timestamp) -> Result<(), StoreError> {
        self.check(device, now)?;
        let mut changes = self.of(now);
        let counts = &mut changes.counts;
        if counts.len() >= DEVICE_CHANGES_KNOWN_MAX_COUNT && !counts.contains_key(&device) {
            // Keeps only the devices with many changes.
            counts.retain(|_, count| *count >= DEVICE_CHANGES_PER_DAY_MAX_COUNT / 8);
        }
        *counts.entry(device).or_default() += 1;
        Ok(())
    }

    /// Fails if a device has used up its changes of the day.
    pub(crate) fn check(&self, device: DeviceId, now: Timestamp) -> Result<(), StoreError> {
        let count = self.of(now).counts.get(&device).copied().unwrap_or_default();
        if count < DEVICE_CHANGES_PER_DAY_MAX_COUNT {
            return Ok(());
        }
        let most = DEVICE_CHANGES_PER_DAY_MAX_COUNT;
        Err(StoreError::LimitReached(format!(
            "a device may change its own properties at most {most} times a day"
        )))
    }

    /// Returns the counts of the current day, which begin at zero.
    fn of(&self, now: Timestamp) -> MutexGuard<'_, ChangesOfDay> {
        let today = now.as_millis().div_euclid(DAY_MS);
        let mut changes = self.0.lock();
        if changes.day != today {
            *changes = ChangesOfDay { day: today, counts: HashMap::new() };
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_changes_only_so_much_a_day_and_another_is_not_affected() {
        let changes = DeviceChanges::default();
        let (one, other) = (DeviceId::from_raw(1), DeviceId::from_raw(2));
        let now = Timestamp::from_millis(DAY_MS * 7);
        (0..DEVICE_CHANGES_PER_DAY_MAX_COUNT).for_each(|_| assert_eq!(changes.note(one, now), Ok(())));
        assert!(matches!(changes.note(one, now), Err(StoreError::LimitReached(_))));
        assert_eq!(changes.note(other, now), Ok(()));
        assert_eq!(changes.note(one, Timestamp::from_millis(DAY_MS * 8)), Ok(()), "tomorrow");
    }

    #[test]
    fn of_many_devices_those_are_remembered_that_change_much() {
        let changes = DeviceChanges::default();
        let (busy, now) = (DeviceId::from_raw(u64::MAX >> 24), Timestamp::from_millis(0));
        (0..DEVICE_CHANGES_PER_DAY_MAX_COUNT).for_each(|_| assert_eq!(changes.note(busy, now), Ok(())));
        for number in 0..=DEVICE_CHANGES_KNOWN_MAX_COUNT as u64 {
            assert_eq!(changes.note(DeviceId::from_raw(number), now), Ok(()));
        }
        assert!(changes.0.lock().counts.len() <= DEVICE_CHANGES_KNOWN_MAX_COUNT);
        assert!(changes.note(busy, now).is_err());
    }
}
