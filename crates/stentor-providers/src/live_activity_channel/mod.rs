//! Channels of Live Activities.

pub(crate) use crate::live_activity::channel::DESCRIPTOR;
