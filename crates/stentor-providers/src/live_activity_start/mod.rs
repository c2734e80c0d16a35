//! Starts of Live Activities, by the tokens that phones have for them.

pub(crate) use crate::live_activity::STARTS as DESCRIPTOR;
