//! Persistent ids, by which a device acknowledges messages: the message's id, and also the device's if a program has several.

use std::fmt;

use stentor_core::id::{DeviceId, MessageId};

const SEPARATOR: char = ':';

/// The id by which a delivery is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct McsPersistentId {
    pub(super) message: MessageId,
    /// The device of the registration; `None` if the program had only one.
    pub(super) device: Option<DeviceId>,
}

impl McsPersistentId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let Some((message, device)) = text.split_once(SEPARATOR) else {
            return Some(Self { message: text.parse().ok()?, device: None });
        };
        Some(Self { message: message.parse().ok()?, device: Some(device.parse().ok()?) })
    }
}

impl fmt::Display for McsPersistentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device {
            Some(device) => write!(f, "{}{SEPARATOR}{device}", self.message),
            None => self.message.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persistent_id_is_read_as_it_was_written_and_others_are_nobodys() {
        let message = MessageId::from_raw(77);
        for device in [None, Some(DeviceId::from_raw(5))] {
            let id = McsPersistentId { message, device };
            assert_eq!(McsPersistentId::parse(&id.to_string()), Some(id));
        }
        for text in ["", ":", "0:1638 6", "msg_", "dev_0000000000005"] {
            assert_eq!(McsPersistentId::parse(text), None, "{text}");
        }
    }
}
