//! The port to a push service: a batch of attempts in, one outcome for each out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::chunk::TokenList;
use crate::device::ProviderKind;
use crate::error::Invalid;
use crate::id::{DeviceId, MessageId};
use crate::message::Message;
use crate::outcome::Outcome;
use crate::ports::clock::Timestamp;

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
}

impl Batch {
    /// Gives the 128 bits that name one delivery, the same at every attempt (used as apns-id).
    #[must_use]
    pub fn delivery_bits(message: MessageId, device: DeviceId) -> u128 {
        u128::from(message.raw()) << 64 | u128::from(device.raw())
    }
}

/// The outcomes of a batch as they come, so that one that is cut off forgets none of them.
#[derive(Debug, Default)]
pub struct Noted(Mutex<BTreeMap<usize, Outcome>>);

impl Noted {
    /// Notes what became of attempt i of the batch.
    pub fn note(&self, index: usize, outcome: Outcome) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(index, outcome);
    }

    /// Gives the outcomes of a batch of `count` that was cut off now: what was not noted is unknown.
    #[must_use]
    pub fn cut_off(&self, count: usize) -> Vec<Outcome> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (0..count).map(|index| noted.remove(&index).unwrap_or(Outcome::Unknown)).collect()
    }
}

/// What a provider is doing right now, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderStats {
    /// Open connections.
    pub connections: u64,
    /// Requests written and not answered.
    pub inflight: u64,
    /// Most requests it would have in flight now.
    pub inflight_limit: u64,
    /// GOAWAY frames seen so far.
    pub goaways: u64,
    /// Streams reset by the push service so far.
    pub resets: u64,
    /// Connections that failed to open so far.
    pub connect_failures: u64,
}

/// A push service seen through one credential.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Tells which adapter this is.
    fn kind(&self) -> ProviderKind;

    /// Sends every attempt and waits for all outcomes; outcome i belongs to device i, always as many as asked.
    ///
    /// It never tries a request again that the push service may have processed: that decision is `settle`'s.
    async fn send(&self, batch: Batch) -> Vec<Outcome>;

    /// Sends as [`Provider::send`] does and notes each outcome as soon as it is known, because the caller may stop waiting.
    ///
    /// An adapter that does not say otherwise notes nothing: what is cut off is unknown as a whole then.
    async fn send_noting(&self, batch: Batch, noted: &Noted) -> Vec<Outcome> {
        let _nothing_is_noted = noted;
        self.send(batch).await
    }

    /// Gets ready to send: a token fetched, a connection opened. Failing is not an error, sending will tell.
    async fn warm(&self) {}

    /// Tells what it is doing.
    fn stats(&self) -> ProviderStats;

    /// Finishes what is in flight and closes its connections.
    async fn close(&self) {}
}

/// Why a credential's JSON cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// A field of it is wrong.
    #[error("{0}")]
    Invalid(Invalid),
}
