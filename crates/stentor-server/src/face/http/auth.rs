//! Authentication: `Authorization: Bearer`, `X-API-Key` or the cookie of the console, and the app that a request with the root key names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use stentor_core::id::AppId;
use stentor_core::name::IdempotencyKey;

use super::context::RequestContext;
use super::headers::{header_text, idempotency_key};
use super::origin::origin_of;
use super::refusal::Refusal;
use super::request_permit::RequestPermit;
use super::session_cookie::session_of;
use crate::contract::{Caller, ErrorCode, Identity, Problem, ServiceResult};
use crate::face::Api;

const APP_HEADER: &str = "x-stentor-app";
const KEY_HEADER: &str = "x-api-key";
/// Hint for a request without an app, with the places in which this face looks for it.
const NAME_THE_APP: &str = "name the app: header `X-Stentor-App: app_…` or `?app=app_…`";

/// Resolves the context of a request from its head: the identity of the key, the named app, the idempotency key and the origin.
pub(in crate::face) async fn context_of(parts: &Parts, api: &Api) -> ServiceResult<RequestContext> {
    let (name, secret) = name_and_secret(&parts.headers)?;
    context_with(parts, api, name, secret).await
}

/// An authenticated caller for an app.
pub(crate) struct AuthenticatedCaller {
    /// The caller.
    pub(crate) caller: Caller,
    /// The idempotency key.
    pub(crate) key: Option<IdempotencyKey>,
}

/// Authenticates a request by its head. The key is `secret`, or the one in the headers if `secret` is absent.
pub(crate) async fn authenticated_caller(
    parts: &Parts,
    api: &Api,
    secret: Option<&str>,
) -> ServiceResult<AuthenticatedCaller> {
    let context = match secret {
        Some(secret) => context_with(parts, api, None, secret.to_owned()).await?,
        None => context_of(parts, api).await?,
    };
    let caller = api.service().caller(context.identity, context.app).await?;
    context.permit.own(caller.app())?;
    Ok(AuthenticatedCaller { caller, key: context.key })
}

async fn context_with(
    parts: &Parts,
    api: &Api,
    name: Option<String>,
    secret: String,
) -> ServiceResult<RequestContext> {
    let identity = api.service().identify(&secret).await?;
    let permit = RequestPermit::of(&parts.extensions)?;
    permit.own(identity.owner(permit.network()))?;
    let named = name.filter(|name| !name.is_empty()).map(|name| name.parse().ok());
    let app = match named_app(parts)? {
        Some(app) => Some(app),
        None => named.flatten(),
    };
    Ok(RequestContext {
        identity,
        app,
        key: idempotency_key(&parts.headers)?,
        origin: origin_of(parts, api),
        permit,
    })
}

/// Returns the key of a request and, with HTTP Basic, the user name: clients of older formats often support only `Authorization: Basic`.
/// The password is the key, and the user name may be an app id.
fn name_and_secret(headers: &HeaderMap) -> ServiceResult<(Option<String>, String)> {
    let text = header_text(headers, "authorization")?.unwrap_or_default();
    let basic = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let Some((_, encoded)) = basic else { return Ok((None, secret(headers)?.to_owned())) };
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let wrong = || Problem::new(ErrorCode::Unauthorized, "the name and the password cannot be read");
    let (name, secret) = decoded.as_deref().and_then(|text| text.split_once(':')).ok_or_else(wrong)?;
    Ok((Some(name.to_owned()), secret.to_owned()))
}

/// A valid key, or a session of the console with one.
pub(in crate::face) struct Authenticated(pub(in crate::face) Identity);

impl FromRequestParts<Api> for Authenticated {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let session = if has_key(&parts.headers) { None } else { session_of(parts, api).await? };
        let identity = match session {
            Some(session) => session.identity,
            None => api.service().identify(secret(&parts.headers)?).await?,
        };
        if let Identity::Person(who) = &identity {
            parts.extensions.insert(who.person.clone());
        }
        let permit = RequestPermit::of(&parts.extensions)?;
        permit.own(identity.owner(permit.network()))?;
        Ok(Self(identity))
    }
}

/// A valid key that acts for one app.
pub(in crate::face) struct AppCaller(pub(in crate::face) Caller);

impl FromRequestParts<Api> for AppCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let Authenticated(identity) = Authenticated::from_request_parts(parts, api).await?;
        let named = named_app(parts)?;
        let names_none = identity.app().is_none() && named.is_none();
        let caller = api.service().caller(identity, named).await;
        let caller =
            caller.map_err(|problem| if names_none { problem.with_hint(NAME_THE_APP) } else { problem })?;
        RequestPermit::of(&parts.extensions)?.own(caller.app())?;
        Ok(Self(caller))
    }
}

fn has_key(headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || headers.contains_key(KEY_HEADER)
}

fn secret(headers: &HeaderMap) -> ServiceResult<&str> {
    if let Some(text) = header_text(headers, "authorization")? {
        let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            return Ok(key.trim());
        }
    }
    let missing = || {
        Problem::new(ErrorCode::Unauthorized, "the request has no API key")
            .with_hint("send `Authorization: Bearer sk_…` or `X-API-Key: sk_…`")
    };
    header_text(headers, KEY_HEADER)?.ok_or_else(missing)
}

/// Returns the app named by a request, in its query or in a header.
pub(in crate::face) fn named_app(parts: &Parts) -> ServiceResult<Option<AppId>> {
    let query = parts.uri.query().unwrap_or_default();
    let in_query = query.split('&').find_map(|pair| pair.strip_prefix("app="));
    let named = match in_query {
        Some(text) => Some(text),
        None => header_text(&parts.headers, APP_HEADER)?,
    };
    named.map(|text| text.parse().map_err(|_| Problem::not_found("app"))).transpose()
}
