//! The requirements on every engine: one suite per port, one line per engine.
//!
//! A case is an ordinary async function over the port, and its name is the sentence that it proves. [`store_suite!`] and [`queue_suite!`]
//! turn the cases into named tests of one engine, [`model_suite!`] adds random sequences. Cases set the time themselves, so nothing here
//! waits. Hidden from the documentation, because it is for engines, not for the product; it needs no crate that the product does not need.
//!
//! [`store_suite!`]: crate::store_suite
//! [`queue_suite!`]: crate::queue_suite
//! [`model_suite!`]: crate::model_suite
#![doc(hidden)]

mod benchmark;
mod home;
pub mod model;
mod model_suite;
mod plain_changes;
pub mod queue;
pub mod scene;
pub mod store;
mod suites;
pub mod value_damage;

pub use benchmark::{BenchmarkFigures, BenchmarkLoad, benchmark};
pub use home::{QueueHome, StoreHome};
pub use plain_changes::PlainChanges;

#[cfg(test)]
mod tests;
