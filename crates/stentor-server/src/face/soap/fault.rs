//! Refusals as faults.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use stentor_wire::WireError;
use stentor_wire::soap::{Envelope, SoapFault, SoapFaultCode, Version};
use stentor_wire::xml::allowed;
use stentor_wire::xml::dom::Element;

use super::{operations, written};
use crate::contract::shape::{FieldShape, RecordShape, Shape, Shapes};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::http::refusal::{Refusal, status_of};
use crate::face::record::Record;
use crate::face::record::xml::write_record;

/// Element of a refusal, in the detail of a fault and in the reply to one of several operations.
pub(super) const REFUSAL: &str = "Refusal";

/// SOAP version of a fault, as an extension of the response.
#[derive(Debug, Clone, Copy)]
pub(super) struct FaultIn(pub(super) Version);

/// A refusal, with the version and code of its fault if known.
#[derive(Debug)]
pub(super) struct SoapRefusal {
    problem: Problem,
    version: Option<Version>,
    code: Option<SoapFaultCode>,
}

impl SoapRefusal {
    /// Writes the refusal as an envelope of its version, or of SOAP 1.1 if none is known; as a line of text where it cannot be written as one.
    pub(super) fn document(&self, request_id: &str) -> Vec<u8> {
        let version = self.version.unwrap_or(Version::V11);
        let code = self.code.unwrap_or_else(|| code_of(self.problem.code));
        let written = document(version, code, &self.problem, request_id);
        written.unwrap_or_else(|failure| failure.to_string().into_bytes())
    }

    /// Returns a conversion to faults in a fixed version, regardless of the content type.
    pub(super) fn in_version(version: Version) -> impl Fn(Problem) -> Self {
        move |problem| Self { version: Some(version), ..Self::from(problem) }
    }
}

impl From<Problem> for SoapRefusal {
    fn from(problem: Problem) -> Self {
        Self { problem, version: None, code: None }
    }
}

/// An envelope that cannot be parsed.
impl From<WireError> for SoapRefusal {
    fn from(error: WireError) -> Self {
        let code = match error {
            WireError::TooLarge { .. } => ErrorCode::PayloadTooLarge,
            _ => ErrorCode::InvalidRequest,
        };
        let problem = Problem::new(code, format!("the envelope cannot be read: {error}"));
        Self { code: Some(SoapFault::of_error(&error).code), ..Self::from(problem) }
    }
}

impl IntoResponse for SoapRefusal {
    fn into_response(self) -> Response {
        let mut response = Refusal(self.problem).into_response();
        let extensions = response.extensions_mut();
        self.version.map(|version| extensions.insert(FaultIn(version)));
        self.code.map(|code| extensions.insert(code));
        response
    }
}

/// Describes a refusal.
pub(super) fn shape() -> RecordShape {
    let text = |name, about| FieldShape::optional(name, Shape::Text, about);
    let fields = vec![
        FieldShape::required("code", Shape::Text, "Stable word for programs."),
        FieldShape::required("detail", Shape::Text, "Reason, for people."),
        text("field", "Path of the offending field."),
        text("hint", "Next step."),
        FieldShape::optional("retry_after_seconds", Shape::Int, "Wait before a retry."),
        text("request_id", "Id of the request, as in the header `X-Request-Id` and in the log."),
    ];
    RecordShape::new(REFUSAL, "The refusal of an operation.", fields)
}

/// Writes a refusal as an element.
pub(super) fn refusal(problem: &Problem, request_id: &str) -> Element {
    let called = |name: &str| {
        let one = operations().values().find(|one| one.facts.name == name);
        one.map_or(name, |one| one.facts.type_name).to_owned()
    };
    let fields = json!({
        "code": problem.code.as_str(),
        "detail": problem.detail,
        "field": problem.field.as_deref().filter(|field| !field.is_empty()),
        "hint": problem.hint_with(called),
        "retry_after_seconds": problem.retry_after_seconds,
        "request_id": Some(request_id).filter(|id| !id.is_empty()),
    });
    let fields: Record = fields.as_object().cloned().unwrap_or_default();
    write_record(REFUSAL, &fields, &shape(), &Shapes::default())
}

/// Writes a refusal into a response, with the status that the version's specification requires.
pub(super) fn write(response: &mut Response, problem: &Problem, request_id: &str) {
    let version = response.extensions().get::<FaultIn>().map_or(Version::V11, |FaultIn(version)| *version);
    let special = response.extensions().get::<SoapFaultCode>().copied();
    let code = special.unwrap_or_else(|| code_of(problem.code));
    let (status, kind, body) = match document(version, code, problem, request_id) {
        Ok(body) => (status(version, code, problem.code), version.content_type(""), body),
        Err(failure) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "text/plain; charset=utf-8".into(),
            failure.to_string().into_bytes(),
        ),
    };
    *response.status_mut() = status;
    *response.body_mut() = body.into();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    if let Ok(kind) = HeaderValue::from_str(&kind) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    if let Some(seconds) = problem.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
}

fn document(
    version: Version,
    code: SoapFaultCode,
    problem: &Problem,
    request_id: &str,
) -> ServiceResult<Vec<u8>> {
    // What a caller has sent in JSON may stand in it.
    let reason = allowed(&format!("{}: {}", problem.code.as_str(), problem.detail)).into_owned();
    let fault = SoapFault { code, reason, detail: vec![refusal(problem, request_id)] };
    written(&Envelope::fault(version, fault))
}

/// Returns the fault code: receiver for errors of the server, sender for others.
fn code_of(code: ErrorCode) -> SoapFaultCode {
    if status_of(code).is_server_error() { SoapFaultCode::Receiver } else { SoapFaultCode::Sender }
}

/// Returns the status. SOAP 1.1 has a single status for all faults; SOAP 1.2 has another for faults of the sender. A request that is no
/// envelope gets the status of HTTP.
fn status(version: Version, code: SoapFaultCode, problem: ErrorCode) -> StatusCode {
    match (problem, version, code) {
        (
            ErrorCode::MethodNotAllowed | ErrorCode::UnsupportedMediaType | ErrorCode::UnsupportedEncoding,
            ..,
        ) => status_of(problem),
        (_, Version::V12, SoapFaultCode::Sender) => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
