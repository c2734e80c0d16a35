//! The SOAP face at `/soap`, for SOAP 1.1 and 1.2: each operation is an element in the body, and its reply another.

mod fault;
mod schema;
mod wsdl;

use std::collections::HashMap;
use std::sync::OnceLock;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use stentor_wire::DocumentLimits;
use stentor_wire::soap::{self, Envelope, SoapBody, Version};
use stentor_wire::xml::dom::Element;

use super::Api;
use super::http::auth::context_of;
use super::http::headers::header_text;
use super::http::refusal::{Refusal, WriteRefusal};
use super::http::{EntryRule, LimitedRouter, RequestPermit, Routes, body};
use super::record::xml::{NAMESPACE, read_record, write_record};
use super::record::{Dispatcher, RequestContext};
use crate::contract::description::{OperationShape, description};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use fault::{FaultIn, SoapRefusal};

pub(super) use schema::{SCHEMA, schema_of_bodies};
pub use wsdl::wsdl;

/// Suffix of a reply's element after the name of its operation.
const RESPONSE: &str = "Response";
/// Element with the record of a reply. Without it, tools would merge fields that a request and its reply both have.
const RETURN: &str = "return";
/// Reply to an element that is no operation, among replies to others.
const UNKNOWN_RESPONSE: &str = "UnknownResponse";
/// Maximum number of operations in one body.
const CALLS_MAX_COUNT: usize = 1_000;
/// Maximum number of elements in an envelope. Each takes some 200 bytes in the parsed tree.
const NODES_MAX_COUNT: usize = 50_000;

/// Returns true if the named operation has an element.
#[must_use]
pub fn carries(operation: &str) -> bool {
    operations().values().any(|one| one.facts.name == operation) && Dispatcher::get().knows(operation)
}

/// Builds the routes of this face.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = fault::write;
    Routes::new()
        .route("/soap", get(describe).post(answer))
        .around(|router| router.layer(from_fn(in_version)))
        .limited(api, api.clone(), EntryRule::Keyed, write)
}

/// Sets the SOAP version of refusals from the content type, if the envelope was not read.
async fn in_version(request: Request, next: Next) -> Response {
    let version = version_of(request.headers());
    let mut response = next.run(request).await;
    let known = response.extensions().get::<FaultIn>().is_some();
    if let Some(version) = version.filter(|_| !known) {
        response.extensions_mut().insert(FaultIn(version));
    }
    response
}

/// Returns the SOAP version of a content type.
fn version_of(headers: &HeaderMap) -> Option<Version> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "text/xml" | "application/xml" => Some(Version::V11),
        "application/soap+xml" => Some(Version::V12),
        _ => None,
    }
}

/// Responds to `GET /soap?wsdl`, which needs no key.
async fn describe(request: Request) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    if !parts.uri.query().is_some_and(|query| query.to_ascii_lowercase().starts_with("wsdl")) {
        let problem = Problem::new(ErrorCode::MethodNotAllowed, "envelopes are posted here");
        return Err(problem.with_hint("`GET /soap?wsdl` returns the description").into());
    }
    RequestPermit::of(&parts.extensions)?.open()?;
    let document = wsdl::at(&address(&parts));
    Ok(([(header::CONTENT_TYPE, "text/xml; charset=utf-8")], document).into_response())
}

/// Returns the address of this face as the caller used it.
fn address(parts: &Parts) -> String {
    let header = |name: &str| header_text(&parts.headers, name).ok().flatten();
    let is_plain = |host: &&str| {
        (1..=255).contains(&host.len())
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte))
    };
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let Some(host) = header("host").or(authority).filter(is_plain) else {
        return wsdl::ADDRESS.to_owned();
    };
    let is_https = parts.uri.scheme_str() == Some("https") || header("x-forwarded-proto") == Some("https");
    format!("{}://{host}/soap", if is_https { "https" } else { "http" })
}

async fn answer(State(api): State<Api>, request: Request) -> Result<Response, SoapRefusal> {
    let (parts, body) = request.into_parts();
    // Authenticate first: a caller without a key learns nothing else and takes no memory for a body.
    let context = context_of(&parts, &api).await?;
    version_of(&parts.headers).ok_or_else(other_content)?;
    let bytes = body::read(Request::from_parts(parts, body), api.large_body_max_bytes()).await?;
    let (version, document) = answered(&api, &context, &bytes).await?;
    Ok(([(header::CONTENT_TYPE, version.content_type(""))], document).into_response())
}

/// Responds to an envelope that did not arrive over HTTP with another one. A refusal becomes a fault in the version of the envelope.
pub(super) async fn answer_document(
    api: &Api,
    context: &RequestContext,
    document: &[u8],
) -> ServiceResult<Vec<u8>> {
    let answered = answered(api, context, document).await;
    Ok(answered.map_or_else(|refused| refused.document(&context.origin.request_id), |(_, reply)| reply))
}

/// Writes a refusal as an envelope of SOAP 1.1, for cases in which the version is unknown.
pub(super) fn fault_document(problem: &Problem) -> Vec<u8> {
    SoapRefusal::from(problem.clone()).document("")
}

/// Returns the version of an envelope, and the envelope of the reply.
async fn answered(
    api: &Api,
    context: &RequestContext,
    document: &[u8],
) -> Result<(Version, Vec<u8>), SoapRefusal> {
    let limits = DocumentLimits {
        document_max_bytes: api.large_body_max_bytes(),
        nodes_max: NODES_MAX_COUNT,
        ..DocumentLimits::default()
    };
    let Envelope { version, body, .. } = soap::read(document, &limits, &[])?;
    let refused = SoapRefusal::in_version(version);
    let elements = called(body).map_err(&refused)?;
    let replies = replies(api, context, elements).await.map_err(&refused)?;
    let reply = written(&Envelope::around(version, replies)).map_err(refused)?;
    Ok((version, reply))
}

fn other_content() -> Problem {
    Problem::new(ErrorCode::UnsupportedMediaType, "an envelope of SOAP is wanted here")
        .with_hint("send `Content-Type: text/xml` for SOAP 1.1 or `application/soap+xml` for SOAP 1.2")
}

/// Returns the operations in a body: at least one, and at most [`CALLS_MAX_COUNT`].
fn called(body: SoapBody) -> ServiceResult<Vec<Element>> {
    let problem = |detail: String| Err(Problem::new(ErrorCode::InvalidRequest, detail));
    match body {
        SoapBody::Fault(_) => problem("the body holds a fault where an operation is wanted".into()),
        SoapBody::Elements(elements) if elements.is_empty() => {
            problem("the body is empty where an operation is wanted".into())
        }
        SoapBody::Elements(elements) if elements.len() > CALLS_MAX_COUNT => Err(Problem::new(
            ErrorCode::PayloadTooLarge,
            format!("at most {CALLS_MAX_COUNT} operations in one body"),
        )),
        SoapBody::Elements(elements) => Ok(elements),
    }
}

/// Serves the operations in order. With several in one body, a refusal is the reply of its operation and does not affect the others; a
/// single operation is refused with a fault.
async fn replies(api: &Api, context: &RequestContext, elements: Vec<Element>) -> ServiceResult<Vec<Element>> {
    if let [element] = &elements[..] {
        return Ok(vec![serve(api, context, element).await?]);
    }
    let mut replies = Vec::with_capacity(elements.len());
    for element in &elements {
        let reply = match context.permit.require_reply_room() {
            Ok(()) => serve(api, context, element).await,
            Err(problem) => Err(problem),
        };
        replies.push(reply.unwrap_or_else(|problem| refused_reply(element, &problem, context)));
    }
    Ok(replies)
}

fn refused_reply(element: &Element, problem: &Problem, context: &RequestContext) -> Element {
    context.permit.note_reply(problem.text_bytes());
    let known = operation(element).map(reply_name);
    let name = known.unwrap_or_else(|_| UNKNOWN_RESPONSE.to_owned());
    Element::of(NAMESPACE, &name).with(fault::refusal(problem, &context.origin.request_id))
}

async fn serve(api: &Api, context: &RequestContext, element: &Element) -> ServiceResult<Element> {
    let one = operation(element)?;
    let shapes = &description().shapes;
    let record = read_record(element, &one.request, shapes)?;
    let dispatched = Dispatcher::get().call(one.facts.name, api, context.clone(), record);
    let dispatched = dispatched.ok_or_else(|| Problem::not_found("operation"))?;
    let reply = Element::of(NAMESPACE, &reply_name(one));
    let record = dispatched.await?;
    if one.reply.fields.is_empty() {
        return Ok(reply);
    }
    Ok(reply.with(write_record(RETURN, &record, &one.reply, shapes)))
}

fn reply_name(one: &OperationShape) -> String {
    format!("{}{RESPONSE}", one.facts.type_name)
}

/// All operations by the names of their elements.
fn operations() -> &'static HashMap<&'static str, &'static OperationShape> {
    static OPERATIONS: OnceLock<HashMap<&'static str, &'static OperationShape>> = OnceLock::new();
    OPERATIONS.get_or_init(|| description().operations.iter().map(|one| (one.facts.type_name, one)).collect())
}

fn operation(element: &Element) -> ServiceResult<&'static OperationShape> {
    let is_ours = element.namespace.as_deref() == Some(NAMESPACE);
    let found = operations().get(element.name.as_str()).copied().filter(|_| is_ours);
    found.ok_or_else(|| {
        let shown: String = element.name.chars().take(100).collect();
        let detail = format!("there is no operation `{shown}` in this namespace");
        Problem::new(ErrorCode::NotFound, detail)
            .with_hint(format!("the namespace is {NAMESPACE}; `GET /soap?wsdl` lists the operations"))
    })
}

fn written(envelope: &Envelope) -> ServiceResult<Vec<u8>> {
    soap::write(envelope).map_err(|error| {
        tracing::error!(%error, "a reply cannot be written as SOAP");
        Problem::new(ErrorCode::Internal, "the reply cannot be written as SOAP")
    })
}
