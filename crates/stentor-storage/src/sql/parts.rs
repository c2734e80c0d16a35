//! Parts of the store that each engine has of its own, and the shared parts call.

use stentor_core::campaign::{Campaign, CampaignAction};
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, CampaignId, DeviceId, UpstreamId};
use stentor_core::message::Message;
use stentor_core::ports::store::{Change, IdempotentReply, Page};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;
use stentor_core::upstream::UpstreamMessage;

use super::error::Done;
use super::portion::Portion;
use super::store::app_providers::AppProvider;

/// A thing that is removed at once for everybody, and whose rows go a few in each transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovedKind {
    Topic,
    Group,
    Person,
    App,
}

/// Parts of the store in which the engines differ.
pub(crate) trait EngineParts {
    /// Finds the key of the device that holds a token.
    fn holder(&self, fleet: AppProvider, token: &PushToken) -> Done<Option<i64>>;

    /// Forgets where the device with a token is found. PostgreSQL finds it by its row.
    fn forget_token(&self, _fleet: AppProvider, _token: &PushToken, _key: i64) -> Done<()> {
        Ok(())
    }

    /// Notes the fleets of an app, so that their devices are removed later. PostgreSQL finds them by the app.
    fn note_fleets(&self, _app: i64) -> Done<()> {
        Ok(())
    }

    /// Counts the next devices of an audience in a fleet; returns the device after which to go on, `None` at the end.
    fn count_stretch(
        &self,
        target: &Target,
        fleet: AppProvider,
        after: DeviceId,
    ) -> Done<(u64, Option<DeviceId>)>;

    /// Does what an owner of a campaign asks for.
    fn act(&self, app: AppId, id: CampaignId, action: CampaignAction, now: Timestamp) -> Done<Campaign>;

    /// Ends a part of the rest of a canceled campaign; returns whether there is more.
    fn wind_up(&self, id: CampaignId, now: Timestamp) -> Done<bool>;

    /// Writes another token into the row of a device, and where the device is found by it.
    fn set_token(&self, fleet: AppProvider, key: i64, former: &PushToken, token: &PushToken) -> Done<()>;

    /// Lets others that change a device wait until the transaction ends. SQLite has one that writes.
    fn lock_device(&self, _key: i64) -> Done<()> {
        Ok(())
    }

    /// Lets the other processes end the session of a device of the gateway, which may be connected to any of them.
    fn cut_off(&self, _app: AppId, _device: DeviceId, _provider: ProviderKind) {}

    /// Lists messages of devices that wait and that no other process has claimed.
    fn free_upstream(
        &self,
        app: AppId,
        page: Page,
        with_receipts: bool,
        now: Timestamp,
    ) -> Done<Vec<UpstreamMessage>>;

    /// Claims messages of devices, and counts an attempt; returns those that were claimed.
    fn claim_upstream(&self, _app: AppId, ids: &[UpstreamId]) -> Done<Vec<UpstreamId>> {
        Ok(ids.to_vec())
    }

    /// Drops the claim of messages of devices.
    fn let_go_of_upstream(&self, _app: AppId, _ids: &[UpstreamId]) -> Done<()> {
        Ok(())
    }

    /// Reports a change to the other processes. SQLite has no others.
    fn report_change(&self, _change: &Change) {}

    /// Returns the number of the next entry of the audit trail, if the engine does not number entries itself.
    fn next_audit_entry(&self) -> Done<Option<i64>> {
        Ok(None)
    }

    /// Returns whether commits wait for another server.
    fn has_standbys(&self) -> Done<bool> {
        Ok(false)
    }

    /// Keeps a message and its campaign, which waits for its due time.
    fn insert_message(&self, message: &Message) -> Done<()>;

    /// Keeps the reply to a request.
    fn keep_reply(&self, app: AppId, reply: &IdempotentReply, now: Timestamp) -> Done<()>;

    /// Lets the commit wait until a standby has everything before it. SQLite has none.
    fn await_standby(&self) {}

    /// Returns whether this process fires schedules. With SQLite it is the only one.
    fn is_firing(&self) -> Done<bool> {
        Ok(true)
    }

    /// Notes that the rows of a thing are to be removed.
    fn note_removal(&self, kind: RemovedKind, no: i64) -> Done<()>;

    /// Goes on with all that is to be removed, as far as the portion goes; returns whether there is more.
    fn go_on_removing(&self, portion: &Portion<'_>) -> Done<bool>;

    /// Begins to remove the rows of a thing; the rest is removed later.
    fn begin_removal(&self, kind: RemovedKind, no: i64, portion: &Portion<'_>) -> Done<()>;

    /// Lets the devices of a person follow whether the person is in a group. SQLite keeps a list of these devices; PostgreSQL reads them
    /// when it needs them.
    fn begin_following(&self, _group: i64, _person: i64, _portion: &Portion<'_>) -> Done<()> {
        Ok(())
    }

    /// Notes that the devices of a person are to follow.
    fn note_following(&self, _group: i64, _person: i64) -> Done<()> {
        Ok(())
    }

    /// Returns whether devices are still to follow people into or out of a group.
    fn is_following(&self, _group: i64) -> Done<bool> {
        Ok(false)
    }

    /// Does a portion of that; returns whether there is more.
    fn follow(&self, _group: i64) -> Done<bool> {
        Ok(false)
    }
}
