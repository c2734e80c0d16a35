//! The gRPC face, on the same port as the others: each operation is a method, each record a Protocol Buffers message.

mod deadline;
mod descriptor;
mod encoding;
mod frame;
mod health;
mod import;
mod ledger;
mod methods;
mod proto;
mod reflection;
mod status;
mod stream;
mod watch;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt};
use http_body_util::{BodyExt as _, Full};
use stentor_wire::DocumentLimits;

use super::Api;
use super::http::auth::context_of;
use super::http::limited_body::problem_of;
use super::http::middleware::RequestId;
use super::http::refusal::{Refusal, WriteRefusal};
use super::http::{EntryRule, LimitedRouter, RequestPermit, Routes, body};
use super::record::Dispatcher;
use super::record::protobuf::Schema;
use crate::contract::description::OperationShape;
use crate::contract::streams::{IMPORT_STREAM, STREAMS, StreamFacts, WATCH};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use encoding::MessageEncoding;

pub use proto::proto;

const GRPC: &str = "application/grpc";

/// Returns true if the named operation or stream has a method.
#[must_use]
pub fn carries(operation: &str) -> bool {
    let behind = STREAMS.iter().find(|one| one.name == operation).map_or(operation, |one| one.operation);
    let mut all = methods::services().into_iter().flat_map(|service| service.methods);
    Dispatcher::get().knows(behind) && all.any(|one| one.operation == operation)
}

/// Builds the routes of this face.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = status::write;
    let limited = |routes: Routes<Api>, rule| routes.limited(api, api.clone(), rule, write);
    let path = |service: &methods::Service| format!("/{}.{}/{{method}}", methods::PACKAGE, service.name);
    let stream = |stream: &StreamFacts| methods::path_of(stream.name, stream.type_name);
    let services = methods::services();
    let services =
        services.iter().fold(Routes::new(), |routes, service| routes.route(&path(service), any(answer)));
    let paths = reflection::PATHS.iter();
    let reflection_routes =
        paths.fold(Routes::new(), |routes, path| routes.route(path, any(reflection::answer)));
    limited(services, EntryRule::Keyed)
        .merge(limited(Routes::new().route(health::CHECK, any(health::check)), EntryRule::Probe))
        .merge(limited(reflection_routes.route(health::WATCH, any(health::watch)), EntryRule::OpenLasting))
        .merge(limited(Routes::new().route(&stream(&IMPORT_STREAM), any(import::answer)), EntryRule::Import))
        .merge(limited(Routes::new().route(&stream(&WATCH), any(ledger::answer)), EntryRule::Lasting))
}

/// Returns true if a request is a gRPC call, for any path.
pub(super) fn is_call(headers: &HeaderMap) -> bool {
    content_type(headers).starts_with(GRPC)
}

/// Responds to a call of an unknown service.
pub(super) fn no_such_service() -> Response {
    let mut response = Response::default();
    status::write(&mut response, &Problem::new(ErrorCode::MethodNotAllowed, "there is no such service"), "");
    response
}

async fn answer(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    if let Some(refused) = refused_type(request.headers()) {
        return Ok(refused);
    }
    let Some(operation) = methods::operation(request.uri().path()) else {
        return Err(Problem::new(ErrorCode::MethodNotAllowed, "there is no such method").into());
    };
    let wanted = MessageEncoding::of_reply(request.headers());
    let wait = deadline::deadline(request.headers())?;
    let message = deadline::within(wait, serve(&api, operation, request)).await?;
    Ok(written(&message, wanted))
}

/// Serves a unary call and returns the reply message.
async fn serve(api: &Api, operation: &'static OperationShape, request: Request) -> ServiceResult<Vec<u8>> {
    let (parts, body) = request.into_parts();
    // Authenticate first: a caller without a key learns nothing else and takes no memory for a body.
    let context = context_of(&parts, api).await?;
    let max_bytes = api.large_body_max_bytes();
    let message = only_message(Request::from_parts(parts, body), max_bytes).await?;
    let limits = DocumentLimits { document_max_bytes: max_bytes, ..DocumentLimits::default() };
    let record = Schema::get().read(&operation.request.name, &message, &limits)?;
    let dispatched = Dispatcher::get().call(operation.facts.name, api, context, record);
    let dispatched = dispatched.ok_or_else(|| Problem::not_found("method"))?;
    Schema::get().write(&operation.reply.name, &dispatched.await?)
}

/// Reads the body of a call with a single message, and returns the message, decompressed to at most `max_bytes`.
async fn only_message(request: Request, max_bytes: usize) -> ServiceResult<Bytes> {
    let encoding = MessageEncoding::of_request(request.headers())?;
    let permit = RequestPermit::of(request.extensions())?;
    let (mark, message) = frame::only(&body::read(request, max_bytes + frame::HEAD_BYTES).await?)?;
    encoding.read(mark, message, max_bytes, |bytes| permit.grow(bytes))
}

fn request_id(extensions: &Extensions) -> String {
    extensions.get::<RequestId>().map(|id| id.0.to_string()).unwrap_or_default()
}

/// Returns a stream of the body's pieces.
fn pieces(body: Body) -> BoxStream<'static, ServiceResult<Bytes>> {
    TryStreamExt::map_err(body.into_data_stream(), problem_of).boxed()
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the response to a request that is not a gRPC call. The specification requires a plain HTTP response.
fn refused_type(headers: &HeaderMap) -> Option<Response> {
    let rest = content_type(headers).strip_prefix(GRPC);
    let rest = rest.map(|rest| rest.strip_prefix("+proto").unwrap_or(rest));
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(';')) {
        return None;
    }
    let why = format!("the content type must be {GRPC} or {GRPC}+proto\n");
    Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, why).into_response())
}

fn written(message: &[u8], encoding: MessageEncoding) -> Response {
    let trailers = async { Some(Ok(status::served())) };
    let body = Full::<Bytes>::new(encoding.framed(message)).with_trailers(trailers);
    reply(Body::new(body), encoding)
}

/// Returns a response with a body of messages and trailers.
fn reply(body: Body, encoding: MessageEncoding) -> Response {
    let name = |name| HeaderName::from_static(name);
    let kind = (header::CONTENT_TYPE, GRPC);
    ([kind, (name(encoding::ENCODING), encoding.name()), (name(encoding::ACCEPTED), encoding::KNOWN)], body)
        .into_response()
}
