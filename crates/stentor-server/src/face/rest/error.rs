//! Refusals as problem+json and problem+xml (RFC 9457), and as a record if the client accepts Protocol Buffers.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use stentor_wire::xml::dom::Element;
use utoipa::ToSchema;

use super::format::{AcceptedFormat, BodyFormat};
use crate::contract::RefusedView;
use crate::face::http::coding;
use crate::face::http::middleware::RequestedMedia;
use crate::face::http::refusal::status_of;
use crate::face::record::protobuf::Schema;
use crate::service::{ErrorCode, Problem};

/// Media type of a refusal in JSON.
pub const PROBLEM_JSON: &str = "application/problem+json";
/// Media type of a refusal in XML.
pub(super) const PROBLEM_XML: &str = "application/problem+xml";
/// Media type of a refusal in Protocol Buffers: the record `Refused`.
pub(super) const PROBLEM_PROTOBUF: &str = "application/x-protobuf";
/// Namespace of a refusal in XML (RFC 9457, appendix B).
pub(super) const PROBLEM_NAMESPACE: &str = "urn:ietf:rfc:7807";
/// Path and anchor prefix of the documentation of a code, relative to the server.
const TYPE_PREFIX: &str = "/docs/errors#";

/// Returns the advice for a code, in terms of HTTP.
const fn advice(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InvalidRequest => "Correct the request; repeating it unchanged will not help.",
        ErrorCode::AddressRefused => {
            "Name another address, or have the operator allow its network as `hint` says."
        }
        ErrorCode::InvalidField => "Correct the field that `field` names; `hint` may say how.",
        ErrorCode::PayloadTooLarge => "Send less at once, or use the import for many devices.",
        ErrorCode::RequestTimeout => {
            "Send the body faster, then repeat with the same Idempotency-Key; an import may have kept some lines."
        }
        ErrorCode::Unauthorized => "Send `Authorization: Bearer <key>` or `X-API-Key: <key>`.",
        ErrorCode::Forbidden => "Use a key with the scope that `detail` names.",
        ErrorCode::ApprovalRequired => {
            "Propose the message, so that somebody else can approve it; a key needs no approval."
        }
        ErrorCode::NotFound => "Check the id, and whether the key belongs to the app that owns it.",
        ErrorCode::MethodNotAllowed => "See the reference for the methods of this address.",
        ErrorCode::UnsupportedMediaType => "Send the content type that `detail` names.",
        ErrorCode::UnsupportedEncoding => {
            "Compress the body with a coding that `Accept-Encoding` names, or not at all."
        }
        ErrorCode::NotAcceptable => "Accept one of the media types that `detail` names.",
        ErrorCode::PreconditionFailed => "Read the object again, decide again, and name its current tag.",
        ErrorCode::Conflict => "Look at the current state first; `hint` may say what is missing.",
        ErrorCode::IdempotencyKeyReused => "Use a new key for a new request.",
        ErrorCode::CredentialUnusable => {
            "Take the file as the vendor issued it; `field` names the unreadable part."
        }
        ErrorCode::LimitReached => "Remove something first, or split the work.",
        ErrorCode::RateLimited | ErrorCode::QueueFull | ErrorCode::Unavailable => {
            "Wait as long as Retry-After says, then repeat with the same Idempotency-Key."
        }
        ErrorCode::Internal => "Report it with the request id.",
    }
}

/// An error code as listed in the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ErrorCodeEntry {
    /// The stable word.
    pub code: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Meaning in a few words.
    pub title: &'static str,
    /// Advice for the caller.
    pub advice: &'static str,
}

/// Lists all error codes of the API.
#[must_use]
pub fn error_codes() -> Vec<ErrorCodeEntry> {
    let entry = |code: &ErrorCode| ErrorCodeEntry {
        code: code.as_str(),
        status: status_of(*code).as_u16(),
        title: code.title(),
        advice: advice(*code),
    };
    ErrorCode::ALL.iter().map(entry).collect()
}

/// Writes the list of all error codes as Markdown.
#[must_use]
pub fn errors_markdown() -> String {
    let mut page = String::from(
        "# Error codes\n\nEvery refusal is `application/problem+json` (RFC 9457); `application/problem+xml` where \
         XML is accepted, and the record `Refused` where Protocol Buffers are. `code` is stable and made for programs; \
         `detail` is made for people and may change. `field` names the offending field, `hint` names the next step.\n\n\
         | code | status | meaning | what to do |\n|---|---|---|---|\n",
    );
    for entry in error_codes() {
        let ErrorCodeEntry { code, status, title, advice } = entry;
        page.push_str(&format!("| `{code}` | {status} | {title} | {advice} |\n"));
    }
    page
}

/// Writes the list of all error codes as HTML. Each code has an anchor, to which the type of a refusal links.
pub(super) fn errors_html() -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Error codes</title>\n<style>body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
         section{border-top:1px solid #ccc}section:target{background:#ffd}a{color:inherit;text-decoration:none}</style>\n\
         <h1>Error codes</h1>\n<p>Every refusal has a <code>code</code> for programs and a <code>detail</code> for people; \
         <code>hint</code> names the next step. <a href=\"/docs\"><u>All operations</u></a></p>\n",
    );
    for entry in error_codes() {
        let ErrorCodeEntry { code, status, title, advice } = entry;
        let advice = advice.replace('&', "&amp;").replace('<', "&lt;");
        page.push_str(&format!(
            "<section id=\"{code}\"><h2><a href=\"#{code}\"><code>{code}</code></a> ({status})</h2>\n<p>{title}. {advice}</p></section>\n"
        ));
    }
    page + "</html>\n"
}

/// The body of a refusal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody<'a> {
    /// URL of the documentation of the code.
    #[serde(rename = "type")]
    kind: String,
    /// Meaning of the code.
    title: &'a str,
    /// HTTP status.
    status: u16,
    /// Stable error code for programs.
    #[schema(example = "invalid_field")]
    code: &'a str,
    /// Reason in plain words.
    detail: &'a str,
    /// Path of the offending field.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    /// Suggested remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// Id of the request, as in the header `X-Request-Id` and in the log.
    request_id: &'a str,
}

/// Writes the body and the headers of a refusal into its response.
pub(crate) fn write(response: &mut Response, problem: &Problem, request_id: &str) {
    let (status, media_type, body) = match body(problem, request_id, accepted(response)) {
        Ok((media_type, body)) => (status_of(problem.code), media_type, body),
        Err(error) => {
            let failure = Problem::unwritten(error);
            let body =
                json!({ "code": failure.code.as_str(), "detail": failure.detail, "request_id": request_id });
            (status_of(failure.code), PROBLEM_JSON, body.to_string().into_bytes())
        }
    };
    *response.status_mut() = status;
    *response.body_mut() = body.into();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    if let Some(seconds) = problem.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    match problem.code {
        ErrorCode::Unauthorized => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"stentor\""));
        }
        ErrorCode::UnsupportedEncoding => {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(coding::TAKEN));
        }
        _ => {}
    }
}

/// Returns the format that the request accepts, or JSON if it accepts none of ours.
fn accepted(response: &Response) -> BodyFormat {
    let Some(RequestedMedia(value)) = response.extensions().get() else { return BodyFormat::Json };
    let headers = HeaderMap::from_iter([(header::ACCEPT, value.clone())]);
    AcceptedFormat::of(&headers).map_or(BodyFormat::Json, |accepted| accepted.format)
}

/// Returns a refusal in a format, and its media type; in JSON where it cannot be written in that format.
fn body(
    problem: &Problem,
    request_id: &str,
    format: BodyFormat,
) -> serde_json::Result<(&'static str, Vec<u8>)> {
    let written = match format {
        BodyFormat::Json => None,
        BodyFormat::Xml => xml(problem, request_id).map(|body| (PROBLEM_XML, body)),
        BodyFormat::Protobuf => protobuf(problem, request_id).map(|body| (PROBLEM_PROTOBUF, body)),
    };
    match written {
        Some(written) => Ok(written),
        None => Ok((PROBLEM_JSON, with_body(problem, request_id, |body| serde_json::to_vec(body))?)),
    }
}

/// Builds the body of a refusal and passes it to a writer.
fn with_body<T>(problem: &Problem, request_id: &str, write: impl FnOnce(&ProblemBody<'_>) -> T) -> T {
    let hint = problem.hint_with(super::openapi::address_of);
    write(&ProblemBody {
        kind: format!("{TYPE_PREFIX}{}", problem.code.as_str()),
        title: problem.code.title(),
        status: status_of(problem.code).as_u16(),
        code: problem.code.as_str(),
        detail: &problem.detail,
        field: problem.field.as_deref(),
        hint: hint.as_deref(),
        request_id,
    })
}

/// Writes the members of the JSON body as XML elements.
fn xml(problem: &Problem, request_id: &str) -> Option<Vec<u8>> {
    let members = with_body(problem, request_id, |body| json!(body));
    let mut root = Element::of(PROBLEM_NAMESPACE, "problem");
    for (name, value) in members.as_object()? {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let allowed: String = text.chars().filter(|letter| stentor_wire::xml::is_allowed(*letter)).collect();
        root = root.with(Element::of(PROBLEM_NAMESPACE, name).with_text(&allowed));
    }
    let written = root.to_bytes();
    written.inspect_err(|error| tracing::error!(%error, "a refusal cannot be written as XML")).ok()
}

fn protobuf(problem: &Problem, request_id: &str) -> Option<Vec<u8>> {
    let refused = RefusedView::new(problem, super::openapi::address_of);
    let refused = RefusedView { request_id: Some(request_id.to_owned()), ..refused };
    let Value::Object(record) = json!(refused) else { return None };
    let written = Schema::get().write("Refused", &record);
    written.inspect_err(|error| tracing::error!(%error, "a refusal cannot be written as Protobuf")).ok()
}
