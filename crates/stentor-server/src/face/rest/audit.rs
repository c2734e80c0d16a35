//! The audit trail, for the operator.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use stentor_core::audit::{Actor, AuditAction, AuditEntry};
use stentor_core::id::{AppId, AuditId, KeyId};
use stentor_core::ports::store::{AuditFilter, Page};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::{Authenticated, Named};
use super::extract::QueryParams;
use super::page::{checked_limit, cursor, next_of};
use super::text::Instant;
use super::{Api, ApiResult};
use crate::service::{Problem, ServiceResult, instant};

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which entries, and how many.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// Of this action only, such as `credential.put`.
    action: Option<String>,
    /// Not before this instant (RFC 3339).
    since: Option<String>,
    /// What is older than this; `next` of the piece before.
    before: Option<String>,
    /// At most this many, 1 to 1,000; 100 when absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// One change, or one that was refused.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
struct EntryView {
    #[schema(value_type = String)]
    id: AuditId,
    at: Instant,
    /// `root` or `key`.
    by: &'static str,
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<KeyId>,
    /// The key's name at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_name: Option<String>,
    /// The app of what was changed; for what was refused, that of the key.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    app: Option<AppId>,
    /// What was done, such as `key.create`.
    action: &'static str,
    /// Id or name of what was changed.
    thing: String,
    /// A few words more: a name, scopes, a quota.
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    /// The caller's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// The request's id, as in the log.
    request_id: String,
    /// `done` or `refused`.
    outcome: &'static str,
}

/// A piece of the audit trail, newest first.
#[derive(Serialize, ToSchema)]
struct AuditList {
    entries: Vec<EntryView>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<AuditEntry> for EntryView {
    fn from(AuditEntry { id, note, key_name }: AuditEntry) -> Self {
        let (by, key) = match note.actor {
            Actor::Root => ("root", None),
            Actor::Key(key) => ("key", Some(key)),
        };
        Self {
            id,
            at: note.at.into(),
            by,
            key,
            key_name: key_name.map(String::from),
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

impl Wanted {
    fn filter(&self, app: Option<AppId>) -> ServiceResult<AuditFilter> {
        let action = self.action.as_deref().map(|text| text.parse().map_err(|_| unknown_action()));
        let since = self.since.as_deref().map(|text| instant("since", text)).transpose()?;
        Ok(AuditFilter { app, action: action.transpose()?, since })
    }

    fn page(&self) -> ServiceResult<Page> {
        let raw = |text: &str| text.parse().ok().map(AuditId::raw);
        Ok(Page { after: cursor("before", self.before.as_deref(), raw)?, limit: checked_limit(self.limit)? })
    }
}

/// Lists who changed what, newest first (root key).
#[utoipa::path(get, path = "/v1/audit", tag = "audit",
    params(("app" = Option<String>, Query, description = "In this app only; the header `X-Stentor-App` says the same."), Wanted),
    responses((status = 200, body = AuditList)))]
async fn list(
    State(api): State<Api>,
    Authenticated(who): Authenticated,
    Named(app): Named,
    QueryParams(wanted): QueryParams<Wanted>,
) -> ApiResult<Json<AuditList>> {
    let page = wanted.page()?;
    let entries = api.service().audit(who, wanted.filter(app)?, page).await?;
    let next = next_of(&entries, page.limit, |entry| entry.id.to_string());
    Ok(Json(AuditList { entries: entries.into_iter().map(EntryView::from).collect(), next }))
}

fn unknown_action() -> Problem {
    let words: Vec<_> = AuditAction::ALL.iter().map(|action| action.as_str()).collect();
    Problem::field("action", format!("must be one of {}", words.join(", ")))
}
