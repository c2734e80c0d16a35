//! The port to a push service: a batch of attempts in, one outcome for each out.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;

use crate::chunk::TokenList;
use crate::device::ProviderKind;
use crate::error::Invalid;
use crate::id::{DeviceId, MessageId};
use crate::message::Message;
use crate::outcome::{Outcome, Reason};
use crate::time::Timestamp;

/// Attempts of one message to many devices of one app through one provider.
#[derive(Debug, Clone)]
pub struct Batch {
    /// What to send.
    pub message: std::sync::Arc<Message>,
    /// When the attempt begins; the remaining ttl counts from here.
    pub now: Timestamp,
    /// To whom; position i has token i.
    pub devices: Vec<DeviceId>,
    /// Their addresses.
    pub tokens: TokenList,
    /// Whether all of these deliveries failed before: what fails again says little of the push service.
    pub repeated: bool,
}

impl Batch {
    /// Returns the 128 bits that name one delivery, the same at every attempt, for push services that can tell a repeat.
    #[must_use]
    pub fn delivery_bits(message: MessageId, device: DeviceId) -> u128 {
        u128::from(message.raw()) << 64 | u128::from(device.raw())
    }
}

/// Completes when nobody waits for a batch's outcomes any longer.
pub type Cut<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Is told, at most once and before the rest has come, the outcomes of most attempts of a batch, when no more has come
/// for a while: outcome i belongs to device i, and `None` is still awaited.
pub type Early<'a> = Box<dyn FnOnce(Vec<Option<Outcome>>) + Send + 'a>;

/// What a provider is doing right now, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderStats {
    /// Open connections.
    pub connections: u64,
    /// Requests written and not answered.
    pub inflight: u64,
    /// Most requests it would have in flight now.
    pub inflight_limit: u64,
    /// The shortest time that an answer took lately; zero before the first. The pipeline has twice the rate
    /// times this in work: an adapter that tells neither is given little at a time.
    pub latency_floor: Duration,
    /// The best rate at which answers came lately, a second; zero before it is known. Times the shortest latency it is
    /// the work that keeps the push service busy.
    pub delivery_rate: u64,
    /// Times so far that the push service asked to open another connection for what comes next.
    pub drains: u64,
    /// Requests so far that the push service broke off.
    pub aborts: u64,
    /// Connections that failed to open so far.
    pub connect_failures: u64,
}

/// The obstacle between a provider and its push service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderTrouble {
    /// The address that it wanted to reach, as `host:port`.
    pub host: String,
    /// The cause, in words that name the host.
    pub cause: String,
}

impl std::fmt::Display for ProviderTrouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.cause)
    }
}

/// A push service seen through one credential.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns which adapter this is.
    fn kind(&self) -> ProviderKind;

    /// Sends every attempt and waits for all outcomes; outcome i belongs to device i, always as many as asked.
    ///
    /// It never tries a request again that the push service may have processed: that decision is `settle`'s.
    async fn send(&self, batch: Batch) -> Vec<Outcome>;

    /// Sends as [`Provider::send`] does until `cut`, and then gives what is known: [`Outcome::Unknown`] is the rest. What was
    /// told early is told again at the end.
    ///
    /// An adapter that does not say otherwise tells nothing early, and knows nothing when it is cut off.
    async fn send_until(&self, batch: Batch, early: Early<'_>, mut cut: Cut<'_>) -> Vec<Outcome> {
        drop(early);
        let count = batch.devices.len();
        let mut sending = self.send(batch);
        std::future::poll_fn(|cx| match (sending.as_mut().poll(cx), cut.as_mut().poll(cx)) {
            (Poll::Ready(outcomes), _) => Poll::Ready(outcomes),
            (Poll::Pending, Poll::Ready(())) => Poll::Ready(vec![Outcome::Unknown; count]),
            (Poll::Pending, Poll::Pending) => Poll::Pending,
        })
        .await
    }

    /// Gets ready to send: a token fetched, a connection opened. Failing is not an error, sending will tell; returns why
    /// nothing can be sent as long as the settings are as they are, if that shows already.
    async fn warm(&self) -> Option<Reason> {
        None
    }

    /// Tries what sending needs beside the message: an access token where there is one, and a connection whose certificate is good.
    async fn check(&self) -> Result<(), ProviderTrouble> {
        Ok(())
    }

    /// Returns what kept it from its push service when it last tried to get there; `None` once it did.
    fn trouble(&self) -> Option<ProviderTrouble> {
        None
    }

    /// Returns what it is doing.
    fn stats(&self) -> ProviderStats;

    /// Finishes what is in flight and closes its connections.
    async fn close(&self) {}
}

/// Why a credential's JSON cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// A field of it breaks a rule of form.
    #[error("{0}")]
    Invalid(Invalid),
    /// No key or certificate can be read from a field of it: no rule of form finds that.
    #[error("{0}")]
    Unusable(Invalid),
}

impl CredentialError {
    /// Returns the field and its problem.
    #[must_use]
    pub fn into_invalid(self) -> Invalid {
        match self {
            Self::Invalid(invalid) | Self::Unusable(invalid) => invalid,
        }
    }
}
