//! Broadcast channels: one message to a channel reaches all devices that have subscribed to it at its push service.

use crate::word::words;

/// The messages that a channel keeps for devices that are away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChannelStorage {
    /// It keeps none, and may be written to more often.
    #[default]
    None,
    /// It keeps the latest one, for eight hours at most.
    Latest,
}

words! { ChannelStorage { None = "none"; Latest = "latest"; } }
