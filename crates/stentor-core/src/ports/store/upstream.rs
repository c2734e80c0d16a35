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
    /// Whose device it is.
    pub app: AppId,
    /// The device.
    pub device: DeviceId,
}

/// What a change of messages of devices that were named came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamChange {
    /// Messages that were changed.
    pub changed: u64,
    /// Messages that were as asked for before.
    pub unchanged: u64,
    /// Names of what is not there, or in no state from which it could be changed, in the order in which they were given.
    pub unknown: Vec<UpstreamId>,
}

impl UpstreamChange {
    /// Notes what became of one message: whether it changed, or nothing where it could not.
    pub fn note(&mut self, id: UpstreamId, changed: Option<bool>) {
        match changed {
            Some(true) => self.changed += 1,
            Some(false) => self.unchanged += 1,
            None => self.unknown.push(id),
        }
    }
}

/// What the gateway keeps beside the ledger.
#[async_trait]
pub trait UpstreamStore: Send + Sync {
    /// Keeps messages of devices, each unless the same device has sent one of the same kind and key; reply i says whether message i
    /// is new. LimitReached when more of one device would wait than may; then nothing is kept. Receipts do not count.
    async fn keep_upstream(&self, messages: Vec<UpstreamMessage>) -> Result<Vec<bool>, StoreError>;

    /// Lists messages of an app's devices that wait, in order, after the page's cursor.
    async fn waiting_upstream(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError>;

    /// Lists the same with receipts among them.
    async fn waiting_upstream_and_receipts(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError>;

    /// Counts one more attempt to hand these over.
    async fn note_upstream_attempt(&self, app: AppId, ids: &[UpstreamId]) -> Result<(), StoreError>;

    /// Lists messages that wait and that no other process holds, in order, after the page's cursor; receipts among them where asked for.
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

    /// Claims messages for this process, until it lets go of them or is gone, and counts one more attempt to hand them over. Returns
    /// those that it holds now; the others wait no more, or another process holds them.
    async fn claim_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Result<Vec<UpstreamId>, StoreError> {
        self.note_upstream_attempt(app, ids).await?;
        Ok(ids.to_vec())
    }

    /// Lets go of messages that this process has claimed: they are for whoever is next.
    async fn let_go_of_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Result<(), StoreError> {
        let _nobody_else = (app, ids);
        Ok(())
    }

    /// Notes that messages were taken over by whoever speaks for the app. One that was taken over before is unchanged; one that is
    /// not there or is a dead letter is unknown.
    async fn settle_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        now: Timestamp,
    ) -> Result<UpstreamChange, StoreError>;

    /// Puts a message on the list of dead letters, with the reason; it waits no more.
    async fn bury_upstream(&self, app: AppId, id: UpstreamId, reason: &str) -> Result<(), StoreError>;

    /// Lists dead letters with their reasons, in order, after the page's cursor.
    async fn dead_upstream(
        &self,
        app: AppId,
        page: Page,
    ) -> Result<Vec<(UpstreamMessage, String)>, StoreError>;

    /// Lets dead letters wait again, until `expires_at`. One that waits already is unchanged; one that is not there or was taken
    /// over is unknown.
    async fn revive_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        expires_at: Timestamp,
    ) -> Result<UpstreamChange, StoreError>;

    /// Forgets messages that were taken over or have expired, dead letters only when they expired before `dead_before`; at most
    /// `limit`. Returns how many went.
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

    /// Keeps a channel of a program; one of the same name is replaced. LimitReached when it would have too many.
    async fn put_channel(&self, agent: &str, channel: &Channel) -> Result<(), StoreError>;

    /// Lists the channels of a program, by name.
    async fn channels(&self, agent: &str) -> Result<Vec<Channel>, StoreError>;

    /// Forgets a channel; returns whether it was there.
    async fn remove_channel(&self, agent: &str, name: &str) -> Result<bool, StoreError>;

    /// Keeps a token that a device may take in place of the one it has; one that it was offered before counts no more.
    async fn offer_token(
        &self,
        app: AppId,
        device: DeviceId,
        token: &PushToken,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns the device that was offered this token: it has it from now on, and its former one counts as replaced. `None` for what
    /// is no offer: nobody was offered the token, the device is gone or retired, or has another token than when it was offered this.
    async fn take_offered_token(
        &self,
        app: AppId,
        token: &PushToken,
        now: Timestamp,
    ) -> Result<Option<DeviceId>, StoreError>;

    /// Finds the devices that once had these tokens; `None` where none did, or the device is gone.
    async fn replaced_tokens(
        &self,
        app: AppId,
        tokens: &[String],
    ) -> Result<Vec<Option<DeviceId>>, StoreError>;
}
