//! Resolves the caller from the data that a face has read before the record.

use stentor_core::id::AppId;

use super::dispatch::Record;
use crate::contract::{Caller, Identity, Origin, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::RequestContext;

/// The part of the caller's identity that an operation needs.
pub(super) trait FromContext: Sized {
    /// Resolves the caller, and takes a place charged to its app.
    fn find(
        api: &Api,
        context: &RequestContext,
        record: &mut Record,
    ) -> impl Future<Output = ServiceResult<Self>> + Send;
}

impl FromContext for Identity {
    async fn find(_: &Api, context: &RequestContext, _: &mut Record) -> ServiceResult<Self> {
        context.permit.own(context.identity.app())?;
        Ok(context.identity.clone())
    }
}

impl FromContext for Caller {
    async fn find(api: &Api, context: &RequestContext, record: &mut Record) -> ServiceResult<Self> {
        let named = app_of(context, record)?;
        let caller = api.service().caller(context.identity.clone(), named).await?;
        context.permit.own(caller.app())?;
        Ok(caller)
    }
}

/// Adds the request's origin, for operations that leave an entry in the audit trail.
impl<T: FromContext + Send> FromContext for (T, Origin) {
    async fn find(api: &Api, context: &RequestContext, record: &mut Record) -> ServiceResult<Self> {
        Ok((T::find(api, context, record).await?, context.origin.clone()))
    }
}

/// Adds the named app, for operations that may also concern all apps.
impl FromContext for (Identity, Option<AppId>) {
    async fn find(api: &Api, context: &RequestContext, record: &mut Record) -> ServiceResult<Self> {
        let named = app_of(context, record)?;
        Ok((Identity::find(api, context, record).await?, named))
    }
}

/// Returns the app named in the record or, without it, outside the record.
fn app_of(context: &RequestContext, record: &mut Record) -> ServiceResult<Option<AppId>> {
    let Some(named) = record.remove("app") else { return Ok(context.app) };
    match named.as_str() {
        None if named.is_null() => Ok(context.app),
        Some("") => Ok(context.app),
        text => {
            let app = text.and_then(|text| text.parse().ok());
            app.map(Some).ok_or_else(|| Problem::not_found("app").at("app"))
        }
    }
}
