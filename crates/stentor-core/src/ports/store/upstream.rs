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

/// A change of a program's channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelChange {
    /// Stores a channel, in place of one of the same name.
    Put(Channel),
    /// Deletes the channel of this name.
    Remove(String),
}

/// The messages that a list contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamFilter {
    /// Waiting messages of devices.
    Waiting,
    /// Waiting messages of devices, and receipts.
    WaitingAndReceipts,
    /// Waiting messages that no other process holds.
    Free {
        /// True for receipts as well.
        with_receipts: bool,
    },
    /// Dead letters.
    Dead,
}

/// An action on upstream messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamAction {
    /// Counts one more handover.
    NoteAttempt,
    /// Releases messages that this process has claimed, so that another one can claim them.
    Release,
    /// Marks messages as taken over by the upstream consumer. A message taken over before is unchanged.
    Settle {
        /// The current time.
        now: Timestamp,
    },
    /// Turns waiting messages into dead letters; they no longer wait.
    Bury {
        /// The reason, which the dead letters show.
        reason: String,
    },
    /// Returns dead letters to waiting. A message that waits already is unchanged.
    Revive {
        /// Time from which they are obsolete.
        expires_at: Timestamp,
    },
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

    /// Lists messages of an app's devices, in order, after the page's cursor.
    async fn upstream(
        &self,
        app: AppId,
        filter: UpstreamFilter,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError>;

    /// Claims messages for this process, until it releases them or dies, and counts one more handover. Returns the messages that it now
    /// holds; the others no longer wait, or another process holds them.
    async fn claim_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Result<Vec<UpstreamId>, StoreError>;

    /// Performs an action on messages. A message that does not exist, or is in a state that forbids the action, is unknown.
    async fn change_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        action: UpstreamAction,
    ) -> Result<UpstreamChange, StoreError>;

    /// Returns an app's webhook.
    async fn upstream_webhook(&self, app: AppId) -> Result<UpstreamWebhook, StoreError>;

    /// Returns the webhooks of all apps in order of app.
    async fn upstream_webhooks(&self) -> Result<Vec<UpstreamWebhook>, StoreError>;

    /// Lists the channels of programs, each by name. Reply i belongs to program i.
    async fn channels(&self, agents: &[String]) -> Result<Vec<Vec<Channel>>, StoreError>;

    /// Stores or deletes a channel of a program; returns true if anything was stored or deleted. LimitReached if the program would have too
    /// many.
    async fn change_channel(&self, agent: &str, change: ChannelChange) -> Result<bool, StoreError>;

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
