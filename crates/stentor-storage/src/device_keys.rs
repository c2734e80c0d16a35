//! Keys of devices as engines with tables keep them: each device has them as the only channel of an agent of its own.

use stentor_core::device::DeviceKeys;
use stentor_core::error::Invalid;
use stentor_core::id::DeviceId;

/// Between both keys.
const SEPARATOR: char = ' ';

/// A column with the stored keys of the device of a row `d`.
pub(crate) const COLUMN: &str = "(SELECT c.name FROM channels c WHERE c.device = (d.key & 1099511627775)
    AND substr(c.agent, 1, 5) = 'keys/' ORDER BY c.name LIMIT 1)";

/// Returns the agent whose only channel holds the keys of a device.
pub(crate) fn agent_of(device: DeviceId) -> String {
    format!("keys/{device}")
}

/// Writes keys as the name of a channel.
pub(crate) fn name_of(keys: &DeviceKeys) -> String {
    format!("{}{SEPARATOR}{}", keys.p256dh, keys.auth)
}

/// Reads keys from the name of a channel.
pub(crate) fn read(name: String) -> Result<DeviceKeys, Invalid> {
    let keys = name.split_once(SEPARATOR);
    let keys = keys.map(|(p256dh, auth)| DeviceKeys { p256dh: p256dh.to_owned(), auth: auth.to_owned() });
    keys.ok_or_else(|| Invalid::new("keys", "are not two"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written_and_nothing_else_is_taken_for_any() {
        let keys = DeviceKeys { p256dh: "BCVx".to_owned(), auth: "BTBZ".to_owned() };
        assert_eq!(read(name_of(&keys)), Ok(keys));
        assert!(read("BCVx".to_owned()).is_err());
    }

    #[test]
    fn the_column_masks_a_key_by_the_bits_of_a_device() {
        assert!(COLUMN.contains(&format!("& {})", (1_u64 << 40) - 1)));
        assert!(agent_of(DeviceId::from_raw(7)).starts_with("keys/"));
    }
}
