//! The session of a browser: it opens with a key or a login at the identity provider, and its cookie stands for them from then on.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use stentor_core::app::Scope;
use stentor_core::id::AppId;

use crate::contract::role::AppRole;
use crate::contract::{ErrorCode, Identity, Instant, Problem, ServiceResult};
use crate::decode::decode;
use crate::face::Api;
use crate::face::http::headers::header_text;
use crate::face::http::refusal::Refusal;
use crate::face::http::session_cookie::{SESSION_COOKIE, require_own_page, session_of};
use crate::face::http::{RequestPermit, Routes, body};
use crate::service::ConsoleSession;

const PATH: &str = "/console/session";
/// Largest body of a login.
const LOGIN_MAX_BYTES: usize = 1_024;

/// A login.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    key: SecretString,
}

/// A session as its pages see it.
#[derive(Serialize)]
struct SessionView {
    /// `root`, `key` or `person`.
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    app: Option<AppId>,
    scopes: Vec<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<PersonView>,
    expires_at: Instant,
    csrf: String,
    unconfirmed_devices_max_count: u64,
    version: &'static str,
}

/// A person as the pages see it.
#[derive(Serialize)]
struct PersonView {
    subject: String,
    name: String,
    roles: Vec<RoleView>,
}

/// A role in an app, or in all apps if the app is absent.
#[derive(Serialize)]
struct RoleView {
    #[serde(skip_serializing_if = "Option::is_none")]
    app: Option<AppId>,
    role: &'static str,
    /// The scopes that a key would need for the same.
    scopes: Vec<Scope>,
}

/// The answer to the logout of a person.
#[derive(Serialize)]
struct LogoutView {
    /// Address at which the person logs out of the identity provider.
    logout_url: String,
}

pub(super) fn routes() -> Routes<Api> {
    Routes::new().route(PATH, get(show).post(open).delete(end))
}

/// Opens a session with the key in the body.
async fn open(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    require_own_page(&parts.headers)?;
    require_json(&parts.headers)?;
    let bytes = body::read(Request::from_parts(parts.clone(), body), LOGIN_MAX_BYTES).await?;
    let Login { key } = decode(&bytes)?;
    let (session, token) = api.service().open_session(key.expose_secret()).await?;
    own(&parts, &session)?;
    let cookie = SESSION_COOKIE.set(&parts.headers, &api, &token, api.console().session_life())?;
    Ok(([(header::SET_COOKIE, cookie)], shown(&api, &session)).into_response())
}

/// Shows the session of the cookie.
async fn show(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let session = session_of(&parts, &api).await?.ok_or_else(no_session)?;
    own(&parts, &session)?;
    Ok(shown(&api, &session))
}

/// Ends the session of the cookie.
async fn end(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let session = session_of(&parts, &api).await?.ok_or_else(no_session)?;
    own(&parts, &session)?;
    api.service().end_session(&session).await?;
    let cookie = [(header::SET_COOKIE, SESSION_COOKIE.set(&parts.headers, &api, "", Duration::ZERO)?)];
    let provider = api.identity_provider().filter(|_| matches!(session.identity, Identity::Person(_)));
    let logout_url = match provider {
        Some(provider) => provider.logout_url().await,
        None => None,
    };
    Ok(match logout_url {
        Some(url) => (cookie, axum::Json(LogoutView { logout_url: url.into() })).into_response(),
        None => (StatusCode::NO_CONTENT, cookie).into_response(),
    })
}

/// Charges a request to the owner of the session's key.
fn own(parts: &Parts, session: &ConsoleSession) -> ServiceResult<()> {
    let permit = RequestPermit::of(&parts.extensions)?;
    permit.own(session.identity.owner(permit.network()))
}

/// A form of another site can send every media type but this one without asking first.
fn require_json(headers: &HeaderMap) -> ServiceResult<()> {
    let given = header_text(headers, "content-type")?.unwrap_or_default();
    let media_type = given.split(';').next().unwrap_or_default().trim();
    match media_type.eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => Err(Problem::new(ErrorCode::UnsupportedMediaType, "the body must be application/json")),
    }
}

fn no_session() -> Problem {
    Problem::new(ErrorCode::Unauthorized, "there is no session").with_hint("log in with an API key")
}

fn shown(api: &Api, session: &ConsoleSession) -> Response {
    let (by, scopes, person) = match &session.identity {
        Identity::Root => ("root", vec![Scope::Admin], None),
        Identity::Key { scopes, .. } => ("key", scopes.list(), None),
        Identity::Person(who) => {
            let roles = who.roles.list().map(RoleView::from).collect();
            let (subject, name) = (who.person.subject().to_owned(), who.person.name().to_owned());
            ("person", Vec::new(), Some(PersonView { subject, name, roles }))
        }
    };
    let view = SessionView {
        by,
        app: session.identity.app(),
        scopes,
        person,
        expires_at: session.grant.expires_at.into(),
        csrf: api.service().csrf_token(session),
        unconfirmed_devices_max_count: api.console().unconfirmed_devices_max_count,
        version: env!("CARGO_PKG_VERSION"),
    };
    ([(header::CACHE_CONTROL, "no-store")], axum::Json(view)).into_response()
}

impl From<AppRole> for RoleView {
    fn from(AppRole { app, role }: AppRole) -> Self {
        Self { app, role: role.as_str(), scopes: role.scopes().list() }
    }
}
