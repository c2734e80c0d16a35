//! The product: faces translate, services decide, the pipeline moves.
#![forbid(unsafe_code)]

pub mod app;
pub mod arrival_limiter;
pub mod clock;
pub mod config;
pub mod contract;
mod decode;
pub mod dns_sd;
pub mod face;
mod front;
mod gateway;
pub mod keys;
mod listen;
pub mod metrics;
pub mod node;
mod oidc;
pub mod operation_meter;
pub mod owner;
pub mod owner_rates;
pub mod pipeline;
pub mod private;
mod providers;
pub mod service;
pub mod shares;
pub mod status;
pub mod trace;
mod upstream;
pub mod words;
