//! Login at the identity provider: the way there, and the callback that opens the session.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use reqwest::Url;
use serde::Serialize;

use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::refusal::Refusal;
use crate::face::http::session_cookie::{LOGIN_COOKIE, SESSION_COOKIE, require_own_page};
use crate::face::http::{RequestPermit, Routes};
use crate::oidc::{Callback, IdentityProvider, LoginRefusal, RefusalCode};
use crate::service::LOGIN_LIFE;

const PAGE: &str = "/console";
/// Longest query of a callback.
const QUERY_MAX_BYTES: usize = 8_192;

/// The ways to log in.
#[derive(Serialize)]
struct LoginWays {
    /// Address at which a person logs in; absent if there is no identity provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<&'static str>,
}

pub(super) fn routes() -> Routes<Api> {
    Routes::new()
        .route("/console/login-ways", get(show_ways))
        .route("/console/login", get(begin))
        .route("/console/callback", get(finish))
}

async fn show_ways(State(api): State<Api>) -> Response {
    let ways = LoginWays { person: api.identity_provider().map(|_| "/console/login") };
    ([(header::CACHE_CONTROL, "no-store")], axum::Json(ways)).into_response()
}

/// Sends the browser to the issuer, with a cookie that holds the secrets of the login.
async fn begin(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let provider = provider(&api)?;
    require_own_page(&parts.headers)?;
    let (attempt, token) = api.service().begin_login();
    let admitted = admit(provider, &parts)?;
    let url = match admitted {
        Ok(()) => provider.begin(&attempt).await,
        Err(refusal) => Err(refusal),
    };
    match url {
        Ok(url) => {
            let cookie = LOGIN_COOKIE.set(&parts.headers, &api, &token, LOGIN_LIFE)?;
            Ok(sent_to(&url, [cookie])?)
        }
        Err(refusal) => Ok(refused(refusal)),
    }
}

/// Opens a session for the person whom the issuer has named.
async fn finish(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let provider = provider(&api)?;
    // In any case: a login is tried once.
    let over = LOGIN_COOKIE.set(&parts.headers, &api, "", Duration::ZERO)?;
    let admitted = admit(provider, &parts)?;
    let named = match admitted {
        Ok(()) => named(&api, provider, &parts).await,
        Err(refusal) => Err(refusal),
    };
    let opened = match named {
        Ok(who) => opened(api.service().open_person_session(who, provider.settings()).await)?,
        Err(refusal) => Err(refusal),
    };
    let (session, token) = match opened {
        Ok(opened) => opened,
        Err(refusal) => return Ok(([(header::SET_COOKIE, over)], refused(refusal)).into_response()),
    };
    let permit = RequestPermit::of(&parts.extensions)?;
    permit.own(session.identity.owner(permit.network()))?;
    let cookie = SESSION_COOKIE.set(&parts.headers, &api, &token, api.console().session_life())?;
    Ok((
        StatusCode::SEE_OTHER,
        [(header::LOCATION, HeaderValue::from_static(PAGE))],
        with_cookies([cookie, over]),
    )
        .into_response())
}

/// Turns too many logins of a person into a refusal of the login, which has a page.
fn opened<T>(session: ServiceResult<T>) -> ServiceResult<Result<T, LoginRefusal>> {
    match session {
        Err(problem) if problem.code == ErrorCode::RateLimited => {
            Ok(Err(LoginRefusal::new(RefusalCode::TooManyLogins, "of one person")))
        }
        other => other.map(Ok),
    }
}

fn provider(api: &Api) -> ServiceResult<&IdentityProvider> {
    let none = || Problem::new(ErrorCode::NotFound, "this server has no identity provider");
    api.identity_provider().ok_or_else(none)
}

fn admit(provider: &IdentityProvider, parts: &Parts) -> ServiceResult<Result<(), LoginRefusal>> {
    Ok(provider.admit(RequestPermit::of(&parts.extensions)?.network()))
}

async fn named(
    api: &Api,
    provider: &IdentityProvider,
    parts: &Parts,
) -> Result<crate::contract::role::PersonInRoles, LoginRefusal> {
    let expired = || LoginRefusal::new(RefusalCode::LoginExpired, "the browser has no login that can go on");
    let token = LOGIN_COOKIE.value(&parts.headers, api).ok_or_else(expired)?;
    let attempt = api.service().login_attempt(token).ok_or_else(expired)?;
    provider.finish(&attempt, callback(parts)?, api.service().now()).await
}

fn callback(parts: &Parts) -> Result<Callback, LoginRefusal> {
    let unreadable = || LoginRefusal::new(RefusalCode::StateMismatch, "the answer cannot be read");
    let query = parts.uri.query().filter(|query| query.len() <= QUERY_MAX_BYTES).ok_or_else(unreadable)?;
    let url = Url::parse(&format!("http://callback/?{query}")).map_err(|_| unreadable())?;
    let mut callback = Callback::default();
    for (name, value) in url.query_pairs() {
        let place = match name.as_ref() {
            "state" => &mut callback.state,
            "code" => &mut callback.code,
            "error" => &mut callback.error,
            "iss" => &mut callback.issuer,
            _ => continue,
        };
        // RFC 6749, section 3.1: no parameter comes twice.
        if place.replace(value.into_owned()).is_some() {
            return Err(unreadable());
        }
    }
    Ok(callback)
}

fn sent_to<const N: usize>(url: &Url, cookies: [HeaderValue; N]) -> ServiceResult<Response> {
    let wrong = |_| Problem::new(ErrorCode::Internal, "the issuer's address cannot be written");
    let location = HeaderValue::try_from(url.as_str()).map_err(wrong)?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, location)], with_cookies(cookies)).into_response())
}

fn with_cookies<const N: usize>(cookies: [HeaderValue; N]) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))]);
    for cookie in cookies {
        headers.append(header::SET_COOKIE, cookie);
    }
    headers
}

/// Writes a short page with the stable code. Nothing on it comes from outside.
fn refused(LoginRefusal { code, reason }: LoginRefusal) -> Response {
    tracing::warn!(code = code.as_str(), reason, "a login at the identity provider is refused");
    let (word, sentence) = (code.as_str(), code.sentence());
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Login refused – Stentor</title>\n\
        <link rel=\"stylesheet\" href=\"/console/style.css\">\n</head>\n<body>\n<main>\n<h1>Login refused</h1>\n<p>{sentence}</p>\n\
        <p><code>{word}</code></p>\n<p><a href=\"{PAGE}\">Back to the console</a></p>\n</main>\n</body>\n</html>\n"
    );
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    (status(code), headers, page).into_response()
}

const fn status(code: RefusalCode) -> StatusCode {
    match code {
        RefusalCode::LoginExpired | RefusalCode::StateMismatch => StatusCode::BAD_REQUEST,
        RefusalCode::LoginCanceled | RefusalCode::NoRole | RefusalCode::TooManyRoles => StatusCode::FORBIDDEN,
        RefusalCode::IssuerRefused | RefusalCode::IssuerUnavailable | RefusalCode::IdTokenInvalid => {
            StatusCode::BAD_GATEWAY
        }
        RefusalCode::TooManyLogins => StatusCode::TOO_MANY_REQUESTS,
    }
}
