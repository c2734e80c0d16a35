//! This machine as a device of the gateway: what it must not forget, and what it does while it runs.

pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod opening;
pub(crate) mod outbox;
pub(crate) mod run;
pub(crate) mod service;
