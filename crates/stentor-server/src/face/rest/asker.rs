//! Who asks, found out from a request's head.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use stentor_core::id::AppId;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Required, Type};

use crate::contract::{Caller, Identity, Origin};
use crate::face::Api;
use crate::face::http::auth::{AppCaller, Authenticated, named_app};
use crate::face::http::origin::origin_of;
use crate::face::http::refusal::Refusal;

/// Who asks, as far as an operation wants to know it.
pub(in crate::face) trait Asker: Sized {
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
