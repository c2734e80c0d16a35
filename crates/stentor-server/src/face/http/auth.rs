//! Who asks: `Authorization: Bearer` or `X-API-Key`, and for the root key the app.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use stentor_core::id::AppId;

use super::headers::header_text;
use super::refusal::Refusal;
use super::request_permit::RequestPermit;
use crate::contract::{Caller, ErrorCode, Identity, Problem, ServiceResult};
use crate::face::Api;

const APP_HEADER: &str = "x-stentor-app";
const KEY_HEADER: &str = "x-api-key";
/// Where this face looks for the app.
const NAME_THE_APP: &str = "name the app: header `X-Stentor-App: app_…` or `?app=app_…`";

/// A known key.
pub(in crate::face) struct Authenticated(pub(in crate::face) Identity);

impl FromRequestParts<Api> for Authenticated {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let secret = secret(&parts.headers)?;
        let identity = api.service().identify(secret).await?;
        RequestPermit::take(&parts.extensions, api.limits(), identity.app())?;
        Ok(Self(identity))
    }
}

/// A known key, speaking for one app.
pub(in crate::face) struct AppCaller(pub(in crate::face) Caller);

impl FromRequestParts<Api> for AppCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let Authenticated(identity) = Authenticated::from_request_parts(parts, api).await?;
        let named = named_app(parts)?;
        let caller = api.service().caller(identity, named).await;
        let names_none = identity == Identity::Root && named.is_none();
        let caller =
            caller.map_err(|problem| if names_none { problem.with_hint(NAME_THE_APP) } else { problem })?;
        RequestPermit::take(&parts.extensions, api.limits(), Some(caller.app()))?;
        Ok(Self(caller))
    }
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

/// Reads which app the request names, in its query or in a header.
pub(in crate::face) fn named_app(parts: &Parts) -> ServiceResult<Option<AppId>> {
    let query = parts.uri.query().unwrap_or_default();
    let in_query = query.split('&').find_map(|pair| pair.strip_prefix("app="));
    let named = match in_query {
        Some(text) => Some(text),
        None => header_text(&parts.headers, APP_HEADER)?,
    };
    named.map(|text| text.parse().map_err(|_| Problem::not_found("app"))).transpose()
}
