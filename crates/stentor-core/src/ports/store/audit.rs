use async_trait::async_trait;

use super::{Idempotent, IdempotentReply, Page, Precondition, StoreError};
use crate::account::IssuedAccount;
use crate::app::{ApiKey, App, Credential};
use crate::audit::{AuditAction, AuditEntry, AuditNote};
use crate::campaign::{Campaign, CampaignAction};
use crate::chunk::Ticket;
use crate::device::ProviderKind;
use crate::id::{AppId, CampaignId, KeyId, ScheduleId};
use crate::schedule::{Schedule, ScheduleState};
use crate::time::Timestamp;
use crate::upstream::UpstreamWebhook;

/// A change that is audited: what an owner or the operator does to apps, keys, credentials, webhooks, schedules and campaigns.
#[derive(Debug, Clone)]
pub enum Change {
    /// Keeps a new app; a name may repeat, an id may not (Conflict).
    CreateApp(App),
    /// Removes an app of which the precondition holds, with all that belongs to it; campaigns that run are gone with it. What is
    /// much of it goes by and by.
    DeleteApp(AppId, Precondition<App>),
    /// Keeps a new key.
    CreateKey(ApiKey),
    /// Removes a key of this app.
    DeleteKey(AppId, KeyId),
    /// Keeps a new account.
    CreateAccount(IssuedAccount),
    /// Removes an account of this app.
    DeleteAccount(AppId, KeyId),
    /// Keeps or replaces the app's credential at a provider.
    PutCredential(Credential),
    /// Removes one credential.
    DeleteCredential(AppId, ProviderKind),
    /// Keeps or replaces the app's webhook.
    PutUpstreamWebhook(UpstreamWebhook),
    /// Removes the app's webhook.
    DeleteUpstreamWebhook(AppId),
    /// Keeps a new schedule; a repeat changes nothing and leaves no entry.
    CreateSchedule(Box<Schedule>, Option<IdempotentReply>),
    /// Sets state and next tick; Conflict when the schedule was canceled or finished before.
    SetSchedule(AppId, ScheduleId, ScheduleState, Option<Timestamp>),
    /// Cancels a schedule of which the precondition holds, and deletes it.
    DeleteSchedule(AppId, ScheduleId, Precondition<Schedule>),
    /// Cancels a schedule of which nothing else can be read, and deletes it.
    DeleteBrokenSchedule(AppId, ScheduleId),
    /// Does what the owner asks of a campaign. Canceling ends queued chunks at once, many in several transactions; resuming
    /// returns the chunks to publish.
    Act(AppId, CampaignId, CampaignAction, Timestamp),
}

/// What a change came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// It is made.
    Done,
    /// What became of a new schedule.
    Stored(Idempotent<()>),
    /// The schedule as it is then.
    Schedule(Box<Schedule>),
    /// The campaign as it is then, and the chunks to publish.
    Campaign(Box<Campaign>, Vec<Ticket>),
}

/// An entry of the audit trail to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAuditEntry {
    /// What it says.
    pub note: AuditNote,
    /// How many entries of its kind in its app stay, the newest.
    pub max_count: u64,
}

/// Which entries are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this app only.
    pub app: Option<AppId>,
    /// Of this action only.
    pub action: Option<AuditAction>,
    /// Not before this instant.
    pub since: Option<Timestamp>,
}

/// The audit trail. What an app's removal takes along, it leaves here.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Makes a change and keeps its entry in one transaction: neither is there without the other. No entry is kept of what
    /// nobody asked for.
    async fn change(&self, change: Change, entry: Option<NewAuditEntry>) -> Result<Changed, StoreError>;

    /// Keeps the entry of a change that was refused.
    async fn note_refused(&self, entry: NewAuditEntry) -> Result<(), StoreError>;

    /// Lists entries, newest first, those below the page's cursor.
    async fn audit(&self, filter: AuditFilter, page: Page) -> Result<Vec<AuditEntry>, StoreError>;

    /// Forgets entries from before an instant, at most so many; returns how many went.
    async fn prune_audit(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
