//! The audit trail: who changed what, when, and from where.

use std::net::IpAddr;

use crate::codes::codes;
use crate::id::{AppId, AuditId, KeyId};
use crate::name::Label;
use crate::time::Timestamp;

codes! {
    /// What was changed.
    AuditAction {
        /// An app was made.
        AppCreate = 1, "app.create";
        /// An app was removed with all that belongs to it.
        AppDelete = 2, "app.delete";
        /// A key was made.
        KeyCreate = 3, "key.create";
        /// A key was removed.
        KeyDelete = 4, "key.delete";
        /// A credential was put, its quota with it.
        CredentialPut = 5, "credential.put";
        /// A credential was removed.
        CredentialDelete = 6, "credential.delete";
        /// A schedule was made.
        ScheduleCreate = 7, "schedule.create";
        /// A schedule was held.
        SchedulePause = 8, "schedule.pause";
        /// A schedule goes on.
        ScheduleResume = 9, "schedule.resume";
        /// A schedule was ended.
        ScheduleCancel = 10, "schedule.cancel";
        /// A campaign was held.
        CampaignPause = 11, "campaign.pause";
        /// A campaign goes on.
        CampaignResume = 12, "campaign.resume";
        /// A campaign was ended.
        CampaignCancel = 13, "campaign.cancel";
        /// An account that signs for itself was made.
        AccountCreate = 14, "service_account.create";
        /// An account that signs for itself was removed.
        AccountDelete = 15, "service_account.delete";
        /// A webhook for what devices send was put.
        WebhookPut = 16, "upstream_webhook.put";
        /// A webhook was removed.
        WebhookDelete = 17, "upstream_webhook.delete";
    }
}

/// Who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The operator, with the root key.
    Root,
    /// A key of an app.
    Key(KeyId),
}

/// One change as it is to be kept; it holds no secret and no push token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditNote {
    /// When the change was made.
    pub at: Timestamp,
    /// The key that made the change.
    pub actor: Actor,
    /// In which app: that of what was changed, or of the key that was refused.
    pub app: Option<AppId>,
    /// What was done.
    pub action: AuditAction,
    /// The id or name of what was changed.
    pub thing: String,
    /// A few words more, such as a name or a quota.
    pub detail: String,
    /// From which address, where it is known.
    pub address: Option<IpAddr>,
    /// The request's id, as it is in the log.
    pub request_id: String,
    /// Whether it was refused, so that nothing was changed.
    pub refused: bool,
}

/// A change that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number, in the order in which changes were made.
    pub id: AuditId,
    /// What was done.
    pub note: AuditNote,
    /// The name of the key at that time.
    pub key_name: Option<Label>,
}

impl AuditNote {
    /// Returns which entries share one bound: those of an app by the operator, by its keys, and those refused, so that nobody
    /// can crowd out what others did.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match (self.refused, self.actor) {
            (true, _) => 2,
            (false, Actor::Key(_)) => 1,
            (false, Actor::Root) => 0,
        }
    }
}
