//! Headers that several faces read.

use axum::http::HeaderMap;
use stentor_core::name::IdempotencyKey;

use crate::contract::{Problem, ServiceResult};

/// Header with the idempotency key.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Returns the value of a header as text.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> ServiceResult<Option<&'a str>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().map_err(|_| Problem::field(name.to_owned(), "must be visible ASCII"))?;
    Ok(Some(text))
}

/// Returns the idempotency key, if any.
pub(in crate::face) fn idempotency_key(headers: &HeaderMap) -> ServiceResult<Option<IdempotencyKey>> {
    let text = header_text(headers, IDEMPOTENCY_KEY)?;
    Ok(text.map(IdempotencyKey::new).transpose()?)
}
