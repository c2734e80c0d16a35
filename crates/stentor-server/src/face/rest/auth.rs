//! Who asks: `Authorization: Bearer` or `X-API-Key`, and for the root key the app.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use stentor_core::id::AppId;

use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Required, Type};

use super::Api;
use super::error::Refusal;
use super::extract::header_text;
use super::origin::origin_of;
use super::request_permit::RequestPermit;
use crate::contract::{Caller, ErrorCode, Identity, Origin, Problem, ServiceResult};

const APP_HEADER: &str = "x-stentor-app";
const KEY_HEADER: &str = "x-api-key";
/// Where this face looks for the app.
const NAME_THE_APP: &str = "name the app: header `X-Stentor-App: app_…` or `?app=app_…`";

/// A known key.
pub(super) struct Authenticated(pub(super) Identity);

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
pub(super) struct AppCaller(pub(super) Caller);

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

/// Who asks, as far as an operation wants to know it.
pub(super) trait Asker: Sized {
    /// Finds it out.
    fn known(parts: &mut Parts, api: &Api) -> impl Future<Output = Result<Self, Refusal>> + Send;

    /// Describes what of it stands outside the headers that every operation knows.
    fn describe(operation: OperationBuilder) -> OperationBuilder {
        operation
    }
}

impl Asker for Identity {
    async fn known(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        Ok(Authenticated::from_request_parts(parts, api).await?.0)
    }
}

impl Asker for Caller {
    async fn known(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        Ok(AppCaller::from_request_parts(parts, api).await?.0)
    }
}

/// With where the request comes from, for what leaves an entry in the audit trail.
impl<T: Asker + Send> Asker for (T, Origin) {
    async fn known(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let who = T::known(parts, api).await?;
        Ok((who, origin_of(parts, api)))
    }
}

/// With the app that is named, for what also concerns all apps.
impl Asker for (Identity, Option<AppId>) {
    async fn known(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let who = Identity::known(parts, api).await?;
        Ok((who, named_app(parts)?))
    }

    fn describe(operation: OperationBuilder) -> OperationBuilder {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let parameter = ParameterBuilder::new().name("app").parameter_in(ParameterIn::Query);
        let about = "In this app only; the header `X-Stentor-App` says the same.";
        operation.parameter(parameter.description(Some(about)).required(Required::False).schema(Some(text)))
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

fn named_app(parts: &Parts) -> ServiceResult<Option<AppId>> {
    let query = parts.uri.query().unwrap_or_default();
    let in_query = query.split('&').find_map(|pair| pair.strip_prefix("app="));
    let named = match in_query {
        Some(text) => Some(text),
        None => header_text(&parts.headers, APP_HEADER)?,
    };
    named.map(|text| text.parse().map_err(|_| Problem::not_found("app"))).transpose()
}
