//! The audit trail, for the operator.

use serde::{Deserialize, Serialize};
use stentor_core::audit::{Actor, AuditEntry};
use stentor_core::id::{AppId, AuditId, KeyId};
use utoipa::{IntoParams, ToSchema};

use super::Instant;

/// Filter and page of the audit trail.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Only entries of this action, such as `credential.put`.
    pub(crate) action: Option<String>,
    /// Only entries at or after this instant (RFC 3339).
    pub(crate) since: Option<String>,
    /// Only entries older than this cursor: `next` of the previous page.
    pub(crate) before: Option<String>,
    /// Maximum number of entries, 1 to 1,000; 100 when absent.
    pub(crate) limit: Option<usize>,
}

/// One change, made or refused.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct EntryView {
    #[schema(value_type = String)]
    pub(crate) id: AuditId,
    pub(crate) at: Instant,
    /// Author of the change: `root`, `key` or `person`.
    pub(crate) by: &'static str,
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<KeyId>,
    /// The key's name at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_name: Option<String>,
    /// The subject of the person at the identity provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) person: Option<String>,
    /// The person's name at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) person_name: Option<String>,
    /// App of the changed object; for a refused change, the app of the key, or the only app of the person.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) app: Option<AppId>,
    /// The action, such as `key.create`.
    pub(crate) action: &'static str,
    /// Id or name of the changed object.
    pub(crate) thing: String,
    /// Further details: a name, scopes, a quota.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) detail: String,
    /// The caller's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    /// Id of the request, as in the log.
    pub(crate) request_id: String,
    /// `done` or `refused`.
    pub(crate) outcome: &'static str,
}

/// A page of the audit trail, newest first.
#[derive(Serialize, ToSchema)]
pub struct AuditList {
    pub(crate) entries: Vec<EntryView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl From<AuditEntry> for EntryView {
    fn from(AuditEntry { id, note, key_name }: AuditEntry) -> Self {
        let (by, key, person) = match note.actor {
            Actor::Root => ("root", None, None),
            Actor::Key(key) => ("key", Some(key), None),
            Actor::Person(person) => ("person", None, Some(person)),
        };
        Self {
            id,
            at: note.at.into(),
            by,
            key,
            key_name: key_name.map(String::from),
            person: person.as_ref().map(|person| person.subject().to_owned()),
            person_name: person.map(|person| person.name().to_owned()),
            app: note.app,
            action: note.action.as_str(),
            thing: note.thing,
            detail: note.detail,
            address: note.address.map(|address| address.to_string()),
            request_id: note.request_id,
            outcome: if note.refused { "refused" } else { "done" },
        }
    }
}
