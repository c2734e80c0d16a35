//! The product: faces translate, services decide, the pipeline moves.
#![forbid(unsafe_code)]

pub mod api;
pub mod app;
pub mod board;
pub mod clock;
pub mod config;
pub mod keys;
mod listen;
pub mod metrics;
mod objects;
pub mod pipeline;
pub mod private;
mod prompt;
mod providers;
pub mod service;
pub mod shares;
mod wording;
pub mod words;
