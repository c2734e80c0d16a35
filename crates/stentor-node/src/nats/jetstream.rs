//! The queue on a stream of NATS JetStream.

use std::sync::Arc;

use secrecy::ExposeSecret;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::Queue;
use stentor_server::app::AppError;
use stentor_server::config::Config;
use stentor_storage::held::HeldQueue;
use stentor_storage::nats::{NatsAddress, NatsQueue, NatsSettings};

use crate::engines::engine;

/// Checks the address of NATS servers.
pub(crate) fn check(url: &str) -> Result<(), String> {
    url.parse::<NatsAddress>().map(drop).map_err(|error| error.to_string())
}

/// Opens the queue on a stream of NATS. A stream does not delay chunks until they are due, so that this process does.
pub(crate) fn queue(config: &Config, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Queue>, AppError> {
    let address: NatsAddress =
        config.queue.url.expose_secret().parse().map_err(|error| engine("the queue", &error))?;
    let settings = NatsSettings {
        stream: config.queue.stream.clone(),
        replicas_count: config.queue.replicas_count,
        ack_wait: config.pipeline.lease_for(),
        ..NatsSettings::default()
    };
    tracing::info!(queue = %address.shown(), stream = settings.stream, "the queue is a stream of NATS JetStream");
    Ok(Arc::new(HeldQueue::over(NatsQueue::new(address, settings), clock.clone())))
}
