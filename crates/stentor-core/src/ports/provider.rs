//! The port to a push service: a batch of attempts in, one outcome for each out.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;

use crate::channel::ChannelStorage;
use crate::chunk::TokenList;
use crate::device::ProviderKind;
use crate::error::Invalid;
use crate::id::{DeviceId, MessageId};
use crate::message::Message;
use crate::name::ChannelId;
use crate::outcome::{Outcome, Reason};
use crate::time::Timestamp;

/// Attempts of one message to many devices of one app through one provider.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The message.
    pub message: std::sync::Arc<Message>,
    /// Start of the attempt; the remaining ttl counts from here.
    pub now: Timestamp,
    /// The recipients; position i has token i.
    pub devices: Vec<DeviceId>,
    /// Their tokens.
    pub tokens: TokenList,
    /// True if all of these deliveries failed before: another failure is weak evidence about the push service.
    pub repeated: bool,
    /// True if the push service answered one of these failures.
    pub answered_before: bool,
}

impl Batch {
    /// Returns the 128 bits that identify one delivery, the same at every attempt, for push services that detect duplicates.
    #[must_use]
    pub fn delivery_bits(message: MessageId, device: DeviceId) -> u128 {
        u128::from(message.raw()) << 64 | u128::from(device.raw())
    }
}

/// Completes when the caller no longer waits for a batch's outcomes.
pub type Cut<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Receives the outcomes of most attempts of a batch if no more arrived for a while: at most once, and before the batch is complete.
/// Outcome i belongs to device i, and `None` is still awaited.
pub type Early<'a> = Box<dyn FnOnce(Vec<Option<Outcome>>) + Send + 'a>;

/// The current activity of a provider, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderStats {
    /// Open connections.
    pub connections: u64,
    /// Requests written and not answered.
    pub inflight: u64,
    /// Current limit of requests in flight.
    pub inflight_limit: u64,
    /// The shortest recent response time; zero before the first response. The pipeline keeps twice the product of the rate and this time in
    /// work; an adapter that reports neither gets little at a time.
    pub latency_floor: Duration,
    /// The best recent rate of responses per second; zero before it is known. Multiplied by the shortest latency it is the amount of work
    /// that keeps the push service busy.
    pub delivery_rate: u64,
    /// Number of requests of the push service to open another connection for further requests.
    pub drains: u64,
    /// Number of requests that the push service aborted.
    pub aborts: u64,
    /// Number of connections that failed to open.
    pub connect_failures: u64,
}

impl ProviderStats {
    /// Adds the activity of another provider.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            inflight: self.inflight + other.inflight,
            inflight_limit: self.inflight_limit + other.inflight_limit,
            latency_floor: self.latency_floor.max(other.latency_floor),
            delivery_rate: self.delivery_rate + other.delivery_rate,
            drains: self.drains + other.drains,
            aborts: self.aborts + other.aborts,
            connect_failures: self.connect_failures + other.connect_failures,
        }
    }
}

/// The standing of one of several push services behind a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceStanding {
    /// Its origin, such as `https://push.example`.
    pub origin: String,
    /// Its learned limit in messages a minute.
    pub per_minute: Option<u32>,
    /// The reason of its rest, if it rests.
    pub resting: Option<Reason>,
    /// The time until every delivery that it deferred has had its place.
    pub backlog: Duration,
}

/// The obstacle between a provider and its push service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderTrouble {
    /// The address of the failed connection, as `host:port`.
    pub host: String,
    /// The cause, including the host.
    pub cause: String,
}

impl std::fmt::Display for ProviderTrouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.cause)
    }
}

/// A push service, as used with one credential.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns the kind of the adapter.
    fn kind(&self) -> ProviderKind;

    /// Sends every attempt and waits for all outcomes; outcome i belongs to device i, one for each device.
    ///
    /// It never retries a request that the push service may have processed: that decision is `settle`'s.
    async fn send(&self, batch: Batch) -> Vec<Outcome>;

    /// Sends like [`Provider::send`] until `cut`, then returns the known outcomes, with [`Outcome::Unknown`] for the rest. Outcomes passed
    /// to `early` are returned again at the end.
    ///
    /// The default implementation passes nothing to `early`, and knows no outcome when it is cut off.
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

    /// Prepares for sending: fetches a token, opens a connection. A failure is not an error, because it will recur when sending. Returns
    /// the reason if nothing can be sent with the current settings, as far as this is known already.
    async fn warm(&self) -> Option<Reason> {
        None
    }

    /// Checks the prerequisites of sending except the message: an access token if one is needed, and a connection with a valid certificate.
    async fn check(&self) -> Result<(), ProviderTrouble> {
        Ok(())
    }

    /// Returns the obstacle met by the last attempt to reach the push service; `None` after a success.
    fn trouble(&self) -> Option<ProviderTrouble> {
        None
    }

    /// Returns its current activity.
    fn stats(&self) -> ProviderStats;

    /// Lists the push services that limit it or rest, if it has several.
    fn services(&self) -> Vec<ServiceStanding> {
        Vec::new()
    }

    /// Returns the broadcast channels of the app, if the push service has any.
    fn channels(&self) -> Option<&dyn Channels> {
        None
    }

    /// Finishes requests in flight and closes its connections.
    async fn close(&self) {}
}

/// The broadcast channels of an app at its push service, which holds the list.
#[async_trait]
pub trait Channels: Send + Sync {
    /// Creates a channel and returns its name.
    async fn create(&self, storage: ChannelStorage) -> Result<ChannelId, ChannelRefusal>;

    /// Lists the names of all channels.
    async fn list(&self) -> Result<Vec<ChannelId>, ChannelRefusal>;

    /// Deletes a channel for good.
    async fn remove(&self, channel: &ChannelId) -> Result<(), ChannelRefusal>;
}

/// The reason why a push service did not manage a channel, with its own word for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelRefusal {
    /// There is no such channel.
    #[error("there is no such channel")]
    Unknown,
    /// The app has as many channels as it may have.
    #[error("the app has as many channels as it may have: {0}")]
    LimitReached(String),
    /// The push service refuses the credential or the request.
    #[error("the push service refuses it: {0}")]
    Refused(String),
    /// The push service cannot be reached or does not work now.
    #[error("the push service does not do it now: {0}")]
    Unavailable(String),
}

/// The reason why a credential's JSON cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// A field violates a rule of form.
    #[error("{0}")]
    Invalid(Invalid),
    /// No key or certificate can be read from a field, although its form is valid.
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
