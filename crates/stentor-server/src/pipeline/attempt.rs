//! Attempts: the deliveries of one leased chunk on their way through a provider.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use stentor_core::chunk::TokenList;
use stentor_core::id::DeviceId;
use stentor_core::message::Message;
use stentor_core::outcome::Outcome;
use stentor_core::ports::provider::{Batch, Early};
use stentor_core::ports::store::{LeasedChunk, SendDecision};

use tracing::Instrument as _;

use super::provider_table::{ProviderHandle, ProviderKey};
use super::settle::kind::fill_unanswered;
use super::settle::{answered_before, health_of, is_foreign, is_weak};
use super::shared::PipelineContext;
use crate::trace::OpenSpan;

/// The provider of an attempt, and whether the attempt is the probe of a half-open breaker.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) key: ProviderKey,
    pub(super) handle: Arc<ProviderHandle>,
    pub(super) is_probe: bool,
}

/// The deliveries of a chunk that are to be sent, with their message and tokens.
pub(super) struct Attempt {
    source: Source,
    message: Arc<Message>,
    devices: Vec<DeviceId>,
    tokens: TokenList,
    repeated: bool,
    answered_before: bool,
}

impl Attempt {
    /// Moves the push tokens out of a chunk.
    pub(super) fn of(chunk: &mut LeasedChunk, source: Source) -> Self {
        Self {
            source,
            message: chunk.message.clone(),
            devices: to_send(chunk),
            tokens: std::mem::take(&mut chunk.tokens),
            repeated: is_weak(chunk, false),
            answered_before: answered_before(chunk),
        }
    }

    /// Sends the batch. A probe sends one delivery first, and the rest only if the push service answered it.
    pub(super) async fn send(mut self, shared: &PipelineContext, early: Early<'_>) -> Vec<Outcome> {
        if self.devices.is_empty() || self.message.is_expired(shared.now()) {
            return Vec::new();
        }
        let (devices, tokens) = (std::mem::take(&mut self.devices), std::mem::take(&mut self.tokens));
        if !self.source.is_probe || devices.len() == 1 {
            return self.call(shared, devices, tokens, early).await;
        }
        let (first, rest) = (vec![devices[0]], devices[1..].to_vec());
        let mut outcomes = self.call(shared, first, part(&tokens, 0, 1), Box::new(drop)).await;
        let provider = self.source.key.1;
        let is_well = health_of(&outcomes, false).answered > 0;
        if is_well && !outcomes.iter().any(|outcome| is_foreign(provider, outcome)) {
            let tokens = part(&tokens, 1, devices.len());
            outcomes.extend(self.call(shared, rest, tokens, Box::new(drop)).await);
        }
        outcomes
    }

    /// Sends one batch through the provider. Deliveries without an outcome after a timeout or a panic count as unanswered.
    async fn call(
        &self,
        shared: &PipelineContext,
        devices: Vec<DeviceId>,
        tokens: TokenList,
        early: Early<'_>,
    ) -> Vec<Outcome> {
        let (count, message) = (devices.len(), self.message.clone());
        let Self { repeated, answered_before, .. } = *self;
        let batch = Batch { message, now: shared.now(), devices, tokens, repeated, answered_before };
        // Held until the batch is over: when a credential is replaced, its former provider is closed only then.
        let (provider, _in_use) = self.source.handle.enter();
        let open = OpenSpan::of_campaign(self.message.id);
        let began = tokio::time::Instant::now();
        let longest = Duration::from_millis(shared.config.batch_timeout_ms);
        let cut = Box::pin(async {
            let _ = tokio::time::timeout(longest, shared.cut.cancelled()).await;
        });
        let span = self.source.handle.span();
        let sent =
            AssertUnwindSafe(provider.send_until(batch, early, cut)).catch_unwind().instrument(span).await;
        let mut outcomes = sent.unwrap_or_default();
        // Also after a panic: a delivery without an outcome would be settled as never sent.
        let unknown = fill_unanswered(&mut outcomes, count);
        if unknown > 0 {
            tracing::warn!(provider = %provider.kind(), count, unknown, "a batch was not answered completely");
        }
        if let Some(open) = open {
            let answered = health_of(&outcomes, false).answered;
            open.end_attempt(self.message.id, provider.kind(), count, answered);
        }
        shared.meter(provider.kind()).note_batch(&outcomes, began.elapsed());
        outcomes
    }
}

fn to_send(chunk: &LeasedChunk) -> Vec<DeviceId> {
    if chunk.decisions.len() == chunk.devices.len()
        && chunk.decisions.iter().all(|decision| *decision == SendDecision::Send)
    {
        return chunk.devices.clone();
    }
    let decisions = chunk.devices.iter().zip(&chunk.decisions);
    decisions.filter(|(_, decision)| **decision == SendDecision::Send).map(|(device, _)| *device).collect()
}

fn part(tokens: &TokenList, from: usize, to: usize) -> TokenList {
    let mut list = TokenList::default();
    (from..to).filter_map(|index| tokens.get(index)).for_each(|token| list.push(token));
    list
}
