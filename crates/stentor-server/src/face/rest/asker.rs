//! Authentication of the caller from the head of a request.

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

/// The part of the caller's identity that an operation needs.
pub(in crate::face) trait Asker: Sized {
    /// Authenticates the caller.
    fn known(parts: &mut Parts, api: &Api) -> impl Future<Output = Result<Self, Refusal>> + Send;

    /// Adds parameters that identify the caller, apart from the headers common to all operations.
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

/// Adds the request's origin, for operations that leave an entry in the audit trail.
impl<T: Asker + Send> Asker for (T, Origin) {
    async fn known(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let who = T::known(parts, api).await?;
        Ok((who, origin_of(parts, api)))
    }
}

/// Adds the named app, for operations that may also concern all apps.
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
