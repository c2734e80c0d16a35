//! The port for upstream messages, webhooks, channels and offered tokens.

use async_trait::async_trait;

use super::{Page, StoreError};
use crate::device::PushToken;
use crate::id::{AppId, DeviceId, UpstreamId};
use crate::time::Timestamp;
use crate::upstream::{UpstreamMessage, UpstreamWebhook};

/// One registration of a program that holds several through one connection, as a browser does for its sites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Its name within the program.
    pub name: String,
    /// The app of the device.
    pub app: AppId,
    /// The device.
    pub device: DeviceId,
}

/// The result of a change of named upstream messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamChange {
    /// Messages that were changed.
    pub changed: u64,
    /// Messages that already were in the requested state.
    pub unchanged: u64,
    /// Ids of messages that do not exist, or are in a state that forbids the change, in the order of the request.
    pub unknown: Vec<UpstreamId>,
}

impl UpstreamChange {
    /// Records the result for one message: changed or not, or `None` if it could not be changed.
    pub fn note(&mut self, id: UpstreamId, changed: Option<bool>) {
        match changed {
            Some(true) => self.changed += 1,
            Some(false) => self.unchanged += 1,
            None => self.unknown.push(id),
        }
    }
}

/// Data of the gateway beside the ledger.
#[async_trait]
pub trait UpstreamStore: Send + Sync {
    /// Stores messages of devices, except those repeated by the same device with the same kind and key; reply i is true if message i is
    /// new. LimitReached if a device would exceed its limit of waiting messages; then nothing is stored. Receipts do not count.
    async fn keep_upstream(&self, messages: Vec<UpstreamMessage>) -> Result<Vec<bool>, StoreError>;

    /// Lists waiting messages of an app's devices, in order, after the page's cursor.
    async fn waiting_upstream(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError>;

    /// Lists the same messages, including receipts.
    async fn waiting_upstream_and_receipts(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError>;

    /// Counts one more handover of these messages.
    async fn note_upstream_attempt(&self, app: AppId, ids: &[UpstreamId]) -> Result<(), StoreError>;

    /// Lists waiting messages that no other process holds, in order, after the page's cursor; includes receipts if requested.
    async fn free_upstream(
        &self,
        app: AppId,
        page: Page,
        with_receipts: bool,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError> {
        match with_receipts {
            true => self.waiting_upstream_and_receipts(app, page, now).await,
            false => self.waiting_upstream(app, page, now).await,
        }
    }

    /// Claims messages for this process, until it releases them or dies, and counts one more handover. Returns the messages that it now
    /// holds; the others no longer wait, or another process holds them.
    async fn claim_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Result<Vec<UpstreamId>, StoreError> {
        self.note_upstream_attempt(app, ids).await?;
        Ok(ids.to_vec())
    }

    /// Releases messages claimed by this process, so that another one can claim them.
    async fn let_go_of_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Result<(), StoreError> {
        let _nobody_else = (app, ids);
        Ok(())
    }

    /// Marks messages as taken over by the upstream consumer. A message taken over before is unchanged; a missing message or a dead letter
    /// is unknown.
    async fn settle_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        now: Timestamp,
    ) -> Result<UpstreamChange, StoreError>;

    /// Turns a message into a dead letter, with the reason; it no longer waits.
    async fn bury_upstream(&self, app: AppId, id: UpstreamId, reason: &str) -> Result<(), StoreError>;

    /// Lists dead letters with their reasons, in order, after the page's cursor.
    async fn dead_upstream(
        &self,
        app: AppId,
        page: Page,
    ) -> Result<Vec<(UpstreamMessage, String)>, StoreError>;

    /// Returns dead letters to waiting, until `expires_at`. A message that waits already is unchanged; a missing one or one taken over is
    /// unknown.
    async fn revive_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        expires_at: Timestamp,
    ) -> Result<UpstreamChange, StoreError>;

    /// Deletes messages that were taken over or have expired, and dead letters that expired before `dead_before`; at most `limit`. Returns
    /// the number of deleted messages.
    async fn prune_upstream(
        &self,
        now: Timestamp,
        dead_before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError>;

    /// Returns an app's webhook.
    async fn upstream_webhook(&self, app: AppId) -> Result<UpstreamWebhook, StoreError>;

    /// Returns the webhooks of all apps in order of app.
    async fn upstream_webhooks(&self) -> Result<Vec<UpstreamWebhook>, StoreError>;

    /// Stores a channel of a program and replaces one of the same name. LimitReached if the program would have too many.
    async fn put_channel(&self, agent: &str, channel: &Channel) -> Result<(), StoreError>;

    /// Lists the channels of a program, by name.
    async fn channels(&self, agent: &str) -> Result<Vec<Channel>, StoreError>;

    /// Deletes a channel; returns true if it existed.
    async fn remove_channel(&self, agent: &str, name: &str) -> Result<bool, StoreError>;

    /// Stores a token that a device may take in place of its current one; an earlier offer becomes void.
    async fn offer_token(
        &self,
        app: AppId,
        device: DeviceId,
        token: &PushToken,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Accepts an offered token: the device has it from now on, and its former token counts as replaced. Returns the device, or `None` if
    /// the offer is not valid: the token was not offered, the device is gone or retired, or its token has changed since the offer.
    async fn take_offered_token(
        &self,
        app: AppId,
        token: &PushToken,
        now: Timestamp,
    ) -> Result<Option<DeviceId>, StoreError>;

    /// Finds the devices that once had these tokens; `None` if no device did, or it is gone.
    async fn replaced_tokens(
        &self,
        app: AppId,
        tokens: &[String],
    ) -> Result<Vec<Option<DeviceId>>, StoreError>;
}
