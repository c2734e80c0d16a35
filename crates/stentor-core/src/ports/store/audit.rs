//! The port for audited changes and the audit trail.

use async_trait::async_trait;

use super::{Idempotent, IdempotentReply, Page, Precondition, StoreError};
use crate::account::IssuedAccount;
use crate::app::{ApiKey, App, Credential};
use crate::audit::{AuditAction, AuditEntry, AuditNote};
use crate::campaign::{Campaign, CampaignAction};
use crate::chunk::Ticket;
use crate::device::ProviderKind;
use crate::id::{AppId, CampaignId, KeyId, MessageId, ProposalId, ScheduleId};
use crate::message::Message;
use crate::proposal::Proposal;
use crate::schedule::{Schedule, ScheduleState};
use crate::time::Timestamp;
use crate::upstream::UpstreamWebhook;

/// An audited change: an action of an owner or the operator on apps, keys, credentials, webhooks, schedules or campaigns.
#[derive(Debug, Clone)]
pub enum Change {
    /// Stores a new app; a name may repeat, an id may not (Conflict).
    CreateApp(App),
    /// Removes an app with all that belongs to it, if the precondition holds; its running campaigns are removed as well. Large amounts of
    /// data are removed gradually.
    DeleteApp(AppId, Precondition<App>),
    /// Stores a new key.
    CreateKey(ApiKey),
    /// Removes a key of this app.
    DeleteKey(AppId, KeyId),
    /// Stores a new account.
    CreateAccount(IssuedAccount),
    /// Removes an account of this app.
    DeleteAccount(AppId, KeyId),
    /// Stores or replaces the app's credential at a provider.
    PutCredential(Credential),
    /// Removes one credential.
    DeleteCredential(AppId, ProviderKind),
    /// Stores or replaces the app's webhook.
    PutUpstreamWebhook(UpstreamWebhook),
    /// Removes the app's webhook.
    DeleteUpstreamWebhook(AppId),
    /// Stores a new schedule; a repeat changes nothing and leaves no entry. LimitReached if the app would have too many.
    CreateSchedule(Box<NewSchedule>),
    /// Sets state and next tick; Conflict when the schedule was canceled or finished before.
    SetSchedule(AppId, ScheduleId, ScheduleState, Option<Timestamp>),
    /// Cancels a schedule and deletes it, if the precondition holds.
    DeleteSchedule(AppId, ScheduleId, Precondition<Schedule>),
    /// Cancels and deletes a schedule with an unreadable record.
    DeleteBrokenSchedule(AppId, ScheduleId),
    /// Stores a new proposal. LimitReached if `PROPOSALS_PER_APP_MAX_COUNT` proposals of the app wait at its creation.
    CreateProposal(Box<Proposal>),
    /// Stores the message of a proposal that has not expired when the message is created. A repeat changes nothing and leaves no entry.
    ApproveProposal(ProposalId, Box<Message>),
    /// Deletes a proposal, even if it cannot be read. Its message stays.
    DeleteProposal(AppId, ProposalId),
    /// Performs an action of the owner on a campaign. Canceling ends queued chunks at once, many in several transactions; resuming returns
    /// the chunks to publish.
    Act(AppId, CampaignId, CampaignAction, Timestamp),
    /// Changes nothing: the entry of a refused change is stored alone.
    Refused,
}

/// A schedule to be stored.
#[derive(Debug, Clone)]
pub struct NewSchedule {
    /// The schedule.
    pub schedule: Schedule,
    /// The idempotency data, if the caller gave a key.
    pub idempotency: Option<IdempotentReply>,
    /// The largest number of schedules that its app may have, active or paused; `None` for any number.
    pub max_count: Option<usize>,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// The change is made.
    Done,
    /// The result of storing a new schedule.
    Stored(Idempotent<()>),
    /// The schedule after the change.
    Schedule(Box<Schedule>),
    /// The message of an approved proposal.
    Approved {
        /// Its id.
        message: MessageId,
        /// True if the proposal had been approved before.
        is_repeat: bool,
    },
    /// The campaign after the change, and the chunks to publish.
    Campaign(Box<Campaign>, Vec<Ticket>),
}

/// A new entry of the audit trail.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAuditEntry {
    /// Its content.
    pub note: AuditNote,
    /// Number of entries of its kind and app that are retained, the newest ones.
    pub max_count: u64,
}

/// The filter of a list of entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this app only.
    pub app: Option<AppId>,
    /// Of this action only.
    pub action: Option<AuditAction>,
    /// Not before this instant.
    pub since: Option<Timestamp>,
}

/// The audit trail. It survives the removal of its apps.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Makes a change and stores its entry in one transaction: neither exists without the other. `entry` is `None` for a change without an
    /// author.
    async fn change(&self, change: Change, entry: Option<NewAuditEntry>) -> Result<Changed, StoreError>;

    /// Lists entries below the page's cursor, newest first.
    async fn audit(&self, filter: AuditFilter, page: Page) -> Result<Vec<AuditEntry>, StoreError>;
}
