//! The queue on NATS JetStream, if this build includes it.

#[cfg(not(feature = "nats"))]
mod absent;
#[cfg(feature = "nats")]
mod jetstream;

#[cfg(not(feature = "nats"))]
pub(crate) use absent::{check, queue};
#[cfg(feature = "nats")]
pub(crate) use jetstream::{check, queue};
