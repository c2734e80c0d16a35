use async_trait::async_trait;

use super::{Idempotent, IdempotentReply, Page, StoreError};
use crate::app::{ApiKey, App, Credential};
use crate::audit::{AuditAction, AuditEntry, AuditNote};
use crate::campaign::{Campaign, CampaignAction};
use crate::chunk::Ticket;
use crate::device::ProviderKind;
use crate::id::{AppId, CampaignId, KeyId, ScheduleId};
use crate::schedule::{Schedule, ScheduleState};
use crate::time::Timestamp;

/// A change that is audited; each does what the method of its name does.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// `create_app`.
    CreateApp(App),
    /// `delete_app`.
    DeleteApp(AppId),
    /// `create_key`.
    CreateKey(ApiKey),
    /// `delete_key`.
    DeleteKey(AppId, KeyId),
    /// `put_credential`.
    PutCredential(Credential),
    /// `delete_credential`.
    DeleteCredential(AppId, ProviderKind),
    /// `create_schedule`; a repeat changes nothing and leaves no entry.
    CreateSchedule(Box<Schedule>, Option<IdempotentReply>),
    /// `set_schedule`.
    SetSchedule(AppId, ScheduleId, ScheduleState, Option<Timestamp>),
    /// `delete_broken_schedule`.
    DeleteBrokenSchedule(AppId, ScheduleId),
    /// `act`.
    Act(AppId, CampaignId, CampaignAction, Timestamp),
}

/// What a change came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// It is made.
    Done,
    /// What `create_schedule` gives.
    Stored(Idempotent<()>),
    /// What `set_schedule` gives.
    Schedule(Box<Schedule>),
    /// What `act` gives.
    Campaign(Box<Campaign>, Vec<Ticket>),
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
    /// Makes a change and keeps its entry in one transaction: neither is there without the other. Of entries of its kind in
    /// its app the newest `max_count` stay.
    async fn change(&self, change: Change, note: AuditNote, max_count: u64) -> Result<Changed, StoreError>;

    /// Keeps the entry of a change that was refused; of its kind in its app the newest `max_count` stay.
    async fn note_refused(&self, note: AuditNote, max_count: u64) -> Result<(), StoreError>;

    /// Lists entries, newest first, those below the page's cursor.
    async fn audit(&self, filter: AuditFilter, page: Page) -> Result<Vec<AuditEntry>, StoreError>;

    /// Forgets entries from before an instant, at most so many; returns how many went.
    async fn prune_audit(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
