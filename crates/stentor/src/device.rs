//! This machine as a device of the gateway: its stored state and its operation.

pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod opening;
pub(crate) mod outbox;
pub(crate) mod run;
pub(crate) mod service;
