//! Writes replies: in the format that is accepted, compressed where that is wanted, with a tag where there is a state.

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
/// What replies depend on beside their address.
const VARY: HeaderValue = HeaderValue::from_static("accept, accept-encoding");

/// The status of a reply, and the headers that go with its record.
pub(super) struct ReplyHead {
    pub(super) status: StatusCode,
    /// Where what was made is.
    pub(super) location: Option<HeaderValue>,
    /// Whether it was kept before, under the same idempotency key.
    pub(super) is_replayed: bool,
}

impl ReplyHead {
    /// Returns a status alone.
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

/// How a request wants its reply.
pub(super) struct ReplyTerms {
    accepted: AcceptedFormat,
    codings: Preferences,
    pub(super) conditions: Conditions,
}

impl ReplyTerms {
    /// Reads the head of a request.
    pub(super) fn of(headers: &HeaderMap) -> ServiceResult<Self> {
        Ok(Self {
            accepted: AcceptedFormat::wanted(headers)?,
            codings: Preferences::of(headers, &header::ACCEPT_ENCODING),
            conditions: Conditions::of(headers)?,
        })
    }

    /// Writes a reply that was read, or that came of a change.
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

    /// Responds with a written body, whatever its operation: compiled once and not for each.
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
            // What was changed is answered whole: its conditions were about what was there before.
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
