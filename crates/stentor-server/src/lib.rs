//! The product: faces translate, services decide, the pipeline moves.
#![forbid(unsafe_code)]

pub mod api;
pub mod config;
pub mod pipeline;
pub mod service;
