//! Parts of the store that each engine has of its own, and the shared parts call.

use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, DeviceId, UpstreamId};
use stentor_core::message::Message;
use stentor_core::ports::store::{Change, IdempotentReply};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::error::Done;
use super::portion::Portion;
use super::store::app_providers::AppProvider;

/// A kind of thing that is removed at once for all readers. Its rows are deleted in portions, one per transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovedKind {
    Topic,
    Group,
    Person,
    App,
}

impl RemovedKind {
    /// Returns the number in the table of leftovers.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Topic => 1,
            Self::Group => 2,
            Self::Person => 3,
            Self::App => 4,
        }
    }

    /// Returns the kind of a number.
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Topic),
            2 => Some(Self::Group),
            3 => Some(Self::Person),
            4 => Some(Self::App),
            _ => None,
        }
    }
}

/// Parts of the store in which the engines differ.
pub(crate) trait EngineParts {
    /// Finds the key of the device that holds a token.
    fn holder(&self, fleet: AppProvider, token: &PushToken) -> Done<Option<i64>>;

    /// Finds the keys of the devices that hold tokens. Key i belongs to token i.
    fn holders(&self, fleet: AppProvider, tokens: &[PushToken]) -> Done<Vec<Option<i64>>> {
        tokens.iter().map(|token| self.holder(fleet, token)).collect()
    }

    /// Removes the entry by which a device is found by its token. PostgreSQL finds it by its row.
    fn forget_token(&self, _fleet: AppProvider, _token: &PushToken, _key: i64) -> Done<()> {
        Ok(())
    }

    /// Records the fleets of an app, so that their devices are removed later. PostgreSQL finds them by the app.
    fn note_fleets(&self, _app: i64) -> Done<()> {
        Ok(())
    }

    /// Counts the next devices of an audience in a fleet; returns the device after which to continue, `None` at the end.
    fn count_stretch(
        &self,
        target: &Target,
        fleet: AppProvider,
        after: DeviceId,
    ) -> Done<(u64, Option<DeviceId>)>;

    /// Writes another token into the row of a device, and where the device is found by it.
    fn set_token(&self, fleet: AppProvider, key: i64, former: &PushToken, token: &PushToken) -> Done<()>;

    /// Locks a device until the transaction ends. SQLite has a single writer.
    fn lock_device(&self, _key: i64) -> Done<()> {
        Ok(())
    }

    /// Makes the other nodes end the session of a device of the gateway, which may be connected to any of them.
    fn cut_off(&self, _app: AppId, _device: DeviceId, _provider: ProviderKind) {}

    /// Returns the condition for messages of devices that no other process has claimed. SQLite has no other processes.
    fn is_free_upstream(&self) -> String {
        "TRUE".to_owned()
    }

    /// Claims messages of devices, and counts an attempt; returns the claimed ones.
    fn claim_upstream(&self, _app: AppId, ids: &[UpstreamId]) -> Done<Vec<UpstreamId>> {
        Ok(ids.to_vec())
    }

    /// Drops this process's claims of messages of devices; returns their number.
    fn release_upstream(&self, _app: AppId, _ids: &[UpstreamId]) -> Done<u64> {
        Ok(0)
    }

    /// Deletes the oldest events between processes and the unused levels of quotas; returns the number of deleted rows.
    fn prune_events(&self, _limit: usize) -> Done<u64> {
        Ok(0)
    }

    /// Returns true if there is such a row.
    fn has_old_events(&self) -> Done<bool> {
        Ok(false)
    }

    /// Reports a change to the other processes. SQLite has no others.
    fn report_change(&self, _change: &Change) {}

    /// Writes a row without meaning.
    fn probe(&self) -> Done<()>;

    /// Counts the rows that could not be read since the process began.
    fn damaged_rows(&self) -> u64;

    /// Wakes the other processes, of which one may expand or send a campaign. SQLite has no others.
    fn wake_others(&self) {}

    /// Returns the number of the next entry of the audit trail, if the engine does not number entries itself.
    fn next_audit_entry(&self) -> Done<Option<i64>> {
        Ok(None)
    }

    /// Returns true if commits wait for another server.
    fn has_standbys(&self) -> Done<bool> {
        Ok(false)
    }

    /// Stores a message and its campaign, which waits for its due time.
    fn insert_message(&self, message: &Message) -> Done<()>;

    /// Stores the reply to a request.
    fn keep_reply(&self, app: AppId, reply: &IdempotentReply, now: Timestamp) -> Done<()>;

    /// Makes the commit wait until a standby has everything before it. SQLite has no standby.
    fn await_standby(&self) {}

    /// Returns true if this process fires schedules. With SQLite it is the only one.
    fn is_firing(&self) -> Done<bool> {
        Ok(true)
    }

    /// Records that the rows of a thing are to be removed.
    fn note_removal(&self, kind: RemovedKind, no: i64) -> Done<()>;

    /// Deletes rows of removed things within the portion; returns true if more are left.
    fn go_on_removing(&self, portion: &Portion<'_>) -> Done<bool>;

    /// Begins to remove the rows of a thing; the rest is removed later.
    fn begin_removal(&self, kind: RemovedKind, no: i64, portion: &Portion<'_>) -> Done<()>;

    /// Begins to update a group's devices after a user joined or left it. SQLite stores these devices in a table; PostgreSQL reads them
    /// when it needs them.
    fn begin_following(&self, _group: i64, _person: i64, _portion: &Portion<'_>) -> Done<()> {
        Ok(())
    }

    /// Records that the devices of a user are to be updated in a group.
    fn note_following(&self, _group: i64, _person: i64) -> Done<()> {
        Ok(())
    }

    /// Returns true if the devices of users that joined or left a group are not yet updated.
    fn is_following(&self, _group: i64) -> Done<bool> {
        Ok(false)
    }

    /// Updates a portion of these devices; returns true if more are left.
    fn follow(&self, _group: i64) -> Done<bool> {
        Ok(false)
    }
}
