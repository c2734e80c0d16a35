//! The refusals of a build without NATS.

use std::sync::Arc;

use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::Queue;
use stentor_server::app::AppError;
use stentor_server::config::Config;

use crate::engines::engine;

const REFUSAL: &str = "this program is built without NATS: build it with `--features nats`";

/// Refuses every address.
pub(crate) fn check(_url: &str) -> Result<(), String> {
    Err(REFUSAL.to_owned())
}

/// Returns the error that names the missing feature.
pub(crate) fn queue(_config: &Config, _clock: &Arc<dyn Clock>) -> Result<Arc<dyn Queue>, AppError> {
    Err(engine("the queue", &REFUSAL))
}
