//! Who asks, found out from what a face has read before the record.

use stentor_core::id::AppId;
use stentor_core::name::IdempotencyKey;

use super::dispatch::Record;
use crate::contract::{Caller, Identity, Origin, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::RequestPermit;

/// What a face knows of a request beside its record.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Whose key it is.
    pub identity: Identity,
    /// The app that is named outside the record.
    pub app: Option<AppId>,
    /// The idempotency key that stands outside the record.
    pub key: Option<IdempotencyKey>,
    /// Where it comes from.
    pub origin: Origin,
    /// What it may hold.
    pub(in crate::face) permit: RequestPermit,
}

/// Who asks, as far as an operation wants to know it.
pub(super) trait FromAsked: Sized {
    /// Finds it out, and takes a place in the name of the app.
    fn find(
        api: &Api,
        asked: &Asked,
        record: &mut Record,
    ) -> impl Future<Output = ServiceResult<Self>> + Send;
}

impl FromAsked for Identity {
    async fn find(api: &Api, asked: &Asked, _: &mut Record) -> ServiceResult<Self> {
        asked.permit.take_place(api.limits(), asked.identity.app())?;
        Ok(asked.identity)
    }
}

impl FromAsked for Caller {
    async fn find(api: &Api, asked: &Asked, record: &mut Record) -> ServiceResult<Self> {
        let named = app_of(asked, record)?;
        let caller = api.service().caller(asked.identity, named).await?;
        asked.permit.take_place(api.limits(), Some(caller.app()))?;
        Ok(caller)
    }
}

/// With where the request comes from, for what leaves an entry in the audit trail.
impl<T: FromAsked + Send> FromAsked for (T, Origin) {
    async fn find(api: &Api, asked: &Asked, record: &mut Record) -> ServiceResult<Self> {
        Ok((T::find(api, asked, record).await?, asked.origin.clone()))
    }
}

/// With the app that is named, for what also concerns all apps.
impl FromAsked for (Identity, Option<AppId>) {
    async fn find(api: &Api, asked: &Asked, record: &mut Record) -> ServiceResult<Self> {
        let named = app_of(asked, record)?;
        Ok((Identity::find(api, asked, record).await?, named))
    }
}

/// Returns the app that the record names, or the request around it.
fn app_of(asked: &Asked, record: &mut Record) -> ServiceResult<Option<AppId>> {
    let Some(named) = record.remove("app") else { return Ok(asked.app) };
    match named.as_str() {
        None if named.is_null() => Ok(asked.app),
        Some("") => Ok(asked.app),
        text => {
            let app = text.and_then(|text| text.parse().ok());
            app.map(Some).ok_or_else(|| Problem::not_found("app").at("app"))
        }
    }
}
