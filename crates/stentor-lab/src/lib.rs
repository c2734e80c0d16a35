//! The laboratory: load generation, statistics and reports.
//!
//! It is independent of the server, which is one subject among others and is always started as a process. Measured values are printed with
//! their spread and kept raw; values that were not measured are not printed.
#![forbid(unsafe_code)]

pub mod advise;
pub mod artifact;
pub mod claims;
pub mod comparison;
mod document;
pub mod energy;
pub mod load;
pub mod looks;
pub mod order;
pub mod plan;
mod plot;
pub mod power;
pub mod probes;
pub mod rates;
pub mod record;
pub mod results;
pub mod runner;
pub mod statistics;
pub mod subject;
mod word;
