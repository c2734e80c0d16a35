//! The laboratory: what produces load, what is made of the samples, and how it is told.
//!
//! It knows nothing of the server, which is one subject among others and is always started as a process. What is
//! measured here is printed with its spread and kept raw; what nobody measured is not printed.
#![forbid(unsafe_code)]

pub mod advise;
pub mod claims;
mod document;
pub mod energy;
pub mod load;
pub mod order;
pub mod plan;
mod plot;
pub mod probes;
pub mod rates;
pub mod record;
pub mod results;
pub mod runner;
pub mod statistics;
pub mod subject;
mod word;
