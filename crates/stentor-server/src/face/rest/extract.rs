//! Extractors for requests: JSON bodies with error paths, ids, queries, idempotency keys.

use std::error::Error as _;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, RawPathParams, Request};
use axum::http::Uri;
use axum::http::request::Parts;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::Error as QueryError;
use serde_path_to_error::Error as PathError;

use super::records::BodySize;
use crate::contract::{ErrorCode, Problem, Repeat, Repeatable, hash};
use crate::decode::{decode, errors};
use crate::face::Api;
use crate::face::http::body;
use crate::face::http::headers::idempotency_key;
use crate::face::http::refusal::Refusal;
use crate::face::record::Segments;

/// A JSON body.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Refusal> {
        let bytes = body::read(request, api.body_max_bytes()).await?;
        Ok(Self(decode(&bytes)?))
    }
}

/// A larger JSON body, with many names or a chain of certificates.
pub(super) struct LargeBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for LargeBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Refusal> {
        let bytes = body::read(request, api.large_body_max_bytes()).await?;
        Ok(Self(decode(&bytes)?))
    }
}

/// A JSON body with fields that only the service knows.
pub(super) struct LargeText(pub(super) Bytes);

impl FromRequest<Api> for LargeText {
    type Rejection = Refusal;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Refusal> {
        Ok(Self(body::read(request, api.large_body_max_bytes()).await?))
    }
}

/// A JSON body with an optional idempotency key.
pub(super) struct RepeatableBody;

impl RepeatableBody {
    /// Reads the body for the named operation.
    pub(super) async fn read<T: DeserializeOwned + Serialize>(
        request: Request,
        api: &Api,
        size: BodySize,
        operation: &'static str,
    ) -> Result<Repeatable<T>, Refusal> {
        let key = idempotency_key(request.headers())?;
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let bytes = body::read(request, size.max_bytes(api)).await?;
        let request = decode(&bytes)?;
        let repeat = match key {
            Some(key) => Some(Repeat {
                former_hash: Some(hash([method.as_str().as_bytes(), uri.path().as_bytes(), &bytes])),
                ..Repeat::of(key, operation, &request)?
            }),
            None => None,
        };
        Ok(Repeatable { request, repeat })
    }
}

/// Parameters of the path, in order.
pub(super) struct PathParams<T>(pub(super) T);

impl<T: Segments> FromRequestParts<Api> for PathParams<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let unreadable = |_| Problem::new(ErrorCode::InvalidRequest, "the path is not UTF-8");
        let params = RawPathParams::from_request_parts(parts, api).await.map_err(unreadable)?;
        Ok(Self(T::read(&mut params.iter())?))
    }
}

/// Parameters of the query. Unknown names are rejected, except `app`, which selects the caller's app.
pub(super) struct QueryParams<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Api> for QueryParams<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Refusal> {
        let query = parts.uri.query().unwrap_or_default();
        let own: Vec<_> = query.split('&').filter(|pair| !pair.starts_with("app=")).collect();
        let wrong = |_| Problem::new(ErrorCode::InvalidRequest, "the query cannot be read");
        let uri: Uri = format!("/?{}", own.join("&")).parse().map_err(wrong)?;
        match Query::<T>::try_from_uri(&uri) {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(query_problem(&rejection).into()),
        }
    }
}

/// Returns the field and the problem of a rejected query, from the causes of the rejection.
fn query_problem(rejection: &QueryRejection) -> Problem {
    let causes = std::iter::successors(rejection.source(), |cause| (**cause).source());
    let found = causes.filter_map(|cause| cause.downcast_ref::<PathError<QueryError>>()).next();
    match found {
        Some(found) => errors::of_text(&found.path().to_string(), &found.inner().to_string()),
        None => Problem::new(ErrorCode::InvalidRequest, "the query cannot be read"),
    }
}
