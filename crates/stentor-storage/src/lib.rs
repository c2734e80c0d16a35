//! The Store and Queue ports on real engines, and the suites that judge them.
//!
//! SQL appears in this crate only. An engine is a folder; it is done when `conformance` passes for it.
#![forbid(unsafe_code)]

mod awaiting;
mod commit_queue;
#[cfg(feature = "conformance")]
pub mod conformance;
mod device_keys;
mod failure;
pub mod held;
#[cfg(feature = "nats")]
pub mod nats;
pub mod postgres;
pub mod schema;
pub mod seal;
mod sql;
pub mod sqlite;
pub mod store_copy;
pub mod store_place;
mod texts;
mod transfer;
mod turns;
mod vault;
