//! Writes replies: in an accepted format, compressed if the client prefers it, and with a tag if the reply shows a state.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;

use super::carried;
use super::etag::Conditions;
use super::format::{AcceptedFormat, BodyFormat};
use super::row::RestOperation;
use crate::contract::{ErrorCode, Problem, ServiceResult, StateTag};
use crate::face::http::coding::ContentCoding;
use crate::face::http::preferences::Preferences;
use crate::face::record::IntoRecord as _;

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Request headers that a reply depends on.
const VARY: HeaderValue = HeaderValue::from_static("accept, accept-encoding");

/// Status of a reply, and the headers that belong to its record.
pub(super) struct ReplyHead {
    pub(super) status: StatusCode,
    /// Path of the created object.
    pub(super) location: Option<HeaderValue>,
    /// True if the reply was stored by an earlier request with the same idempotency key.
    pub(super) is_replayed: bool,
}

impl ReplyHead {
    /// Returns a head with only a status.
    pub(super) const fn of(status: StatusCode) -> Self {
        Self { status, location: None, is_replayed: false }
    }

    fn respond(self) -> Response {
        let mut response = self.status.into_response();
        let headers = response.headers_mut();
        if let Some(location) = self.location {
            headers.insert(header::LOCATION, location);
        }
        if self.is_replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

/// Requirements of a request on its reply.
pub(super) struct ReplyTerms {
    accepted: AcceptedFormat,
    codings: Preferences,
    pub(super) conditions: Conditions,
}

impl ReplyTerms {
    /// Parses the head of a request.
    pub(super) fn of(headers: &HeaderMap) -> ServiceResult<Self> {
        Ok(Self {
            accepted: AcceptedFormat::wanted(headers)?,
            codings: Preferences::of(headers, &header::ACCEPT_ENCODING),
            conditions: Conditions::of(headers)?,
        })
    }

    /// Writes the reply of a read or of a change.
    pub(super) fn write<O: RestOperation>(
        self,
        reply: O::Reply,
        row: super::row::RowFacts,
    ) -> ServiceResult<Response> {
        use super::records::ReplyRecord as _;
        let head = reply.head(row.done);
        if head.status == StatusCode::NO_CONTENT {
            return Ok(head.respond());
        }
        let is_json = self.accepted.format == BodyFormat::Json;
        let json = if is_json || row.has_tag { json(&reply)? } else { Vec::new() };
        let state = (row.has_tag && head.status == StatusCode::OK).then(|| StateTag::of(&json));
        let body = if is_json {
            json
        } else {
            carried::write(O::FACTS.name, &reply.into_record()?, self.accepted.format)?
        };
        self.respond(head, state, body, row.is_read)
    }

    /// Creates the response for a serialized body. Not generic, so that it is compiled once.
    fn respond(
        self,
        head: ReplyHead,
        state: Option<StateTag>,
        body: Vec<u8>,
        is_read: bool,
    ) -> ServiceResult<Response> {
        let Self { accepted, codings, conditions } = self;
        let coding = ContentCoding::of_reply(&codings, body.len());
        let mut response = head.respond();
        if let Some(state) = state {
            // A change is always answered with the full state: its preconditions applied to the state before.
            let none = Conditions::default();
            let conditions = if is_read { &conditions } else { &none };
            let (tag, is_known) = conditions.check_read(&state, accepted, coding)?;
            response.headers_mut().insert(header::ETAG, tag);
            if is_known {
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response.headers_mut().insert(header::VARY, VARY);
                return Ok(response);
            }
        }
        with_body(response, accepted, coding, body.into())
    }
}

fn with_body(
    mut response: Response,
    accepted: AcceptedFormat,
    coding: ContentCoding,
    body: Bytes,
) -> ServiceResult<Response> {
    let (encoding, body) = coding.packed(body)?;
    *response.body_mut() = body;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(accepted.media_type));
    headers.insert(header::VARY, VARY);
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, encoding);
    }
    Ok(response)
}

fn json(reply: &impl serde::Serialize) -> ServiceResult<Vec<u8>> {
    serde_json::to_vec(reply).map_err(|error| {
        tracing::error!(%error, "a reply cannot be written as JSON");
        Problem::new(ErrorCode::Internal, "the reply cannot be written as JSON")
    })
}
