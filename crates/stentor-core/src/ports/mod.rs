//! External dependencies of the rules: a store, a queue, providers and a clock.

pub mod clock;
pub mod provider;
pub mod queue;
pub mod settled;
pub mod store;
