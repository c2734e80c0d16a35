//! The audit trail: one entry per change, with its author, time and address.

use std::net::IpAddr;

use crate::codes::codes;
use crate::id::{AppId, AuditId, KeyId};
use crate::name::Label;
use crate::person::Person;
use crate::time::Timestamp;

codes! {
    /// The audited action.
    AuditAction {
        /// An app was created.
        AppCreate = 1, "app.create";
        /// An app was removed with all that belongs to it.
        AppDelete = 2, "app.delete";
        /// A key was created.
        KeyCreate = 3, "key.create";
        /// A key was removed.
        KeyDelete = 4, "key.delete";
        /// A credential was put, its quota with it.
        CredentialPut = 5, "credential.put";
        /// A credential was removed.
        CredentialDelete = 6, "credential.delete";
        /// A schedule was created.
        ScheduleCreate = 7, "schedule.create";
        /// A schedule was paused.
        SchedulePause = 8, "schedule.pause";
        /// A schedule was resumed.
        ScheduleResume = 9, "schedule.resume";
        /// A schedule was ended.
        ScheduleCancel = 10, "schedule.cancel";
        /// A campaign was paused.
        CampaignPause = 11, "campaign.pause";
        /// A campaign was resumed.
        CampaignResume = 12, "campaign.resume";
        /// A campaign was canceled.
        CampaignCancel = 13, "campaign.cancel";
        /// A service account was created.
        AccountCreate = 14, "service_account.create";
        /// A service account was removed.
        AccountDelete = 15, "service_account.delete";
        /// A webhook for upstream messages was put.
        WebhookPut = 16, "upstream_webhook.put";
        /// A webhook was removed.
        WebhookDelete = 17, "upstream_webhook.delete";
        /// A message was proposed.
        ProposalCreate = 18, "proposal.create";
        /// A proposal was approved, and its message sent.
        ProposalApprove = 19, "proposal.approve";
        /// A proposal was rejected or withdrawn.
        ProposalDelete = 20, "proposal.delete";
    }
}

/// The author of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// The operator, with the root key.
    Root,
    /// A key of an app.
    Key(KeyId),
    /// A person, in a session of the console.
    Person(Person),
}

/// One change to be recorded; it holds no secret and no push token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditNote {
    /// Time of the change.
    pub at: Timestamp,
    /// The author of the change.
    pub actor: Actor,
    /// The app of the changed thing, or of the key that was refused.
    pub app: Option<AppId>,
    /// The action.
    pub action: AuditAction,
    /// The id or name of the changed thing.
    pub thing: String,
    /// Further details, such as a name or a quota.
    pub detail: String,
    /// The client's address, if known.
    pub address: Option<IpAddr>,
    /// The request's id, as in the log.
    pub request_id: String,
    /// True if the change was refused and nothing was changed.
    pub refused: bool,
}

/// A recorded change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number, in the order in which changes were made.
    pub id: AuditId,
    /// The change.
    pub note: AuditNote,
    /// The name of the key at that time.
    pub key_name: Option<Label>,
}

impl AuditNote {
    /// Returns the class of the entry for retention. The limit applies separately to entries of an app by the operator, by its keys, by
    /// persons, and to refused ones, so that none can crowd out the others.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match (self.refused, &self.actor) {
            (true, _) => 2,
            (false, Actor::Person(_)) => 3,
            (false, Actor::Key(_)) => 1,
            (false, Actor::Root) => 0,
        }
    }
}
