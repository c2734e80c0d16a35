//! Moves messages.
pub mod calendar;
pub mod config;
pub mod settle;
pub use config::PipelineConfig;
