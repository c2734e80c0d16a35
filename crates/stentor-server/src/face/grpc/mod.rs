//! The gRPC face, on the port of all others: every operation is a method, its record a message of Protocol Buffers.

mod deadline;
mod descriptor;
mod frame;
mod methods;
mod proto;
mod reflection;
mod status;
mod stream;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, post};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use stentor_wire::DocumentLimits;

use super::Api;
use super::http::auth::asked_of;
use super::http::refusal::{Refusal, WriteRefusal};
use super::http::{body, middleware};
use super::record::Dispatcher;
use super::record::protobuf::Schema;
use crate::contract::description::OperationShape;
use crate::contract::{ErrorCode, Problem, ServiceResult};

pub use proto::proto;

const GRPC: &str = "application/grpc";

/// Returns whether there is a method for the operation of a name.
#[must_use]
pub fn carries(operation: &str) -> bool {
    let mut all = methods::services().into_iter().flat_map(|service| service.operations);
    Dispatcher::get().knows(operation) && all.any(|one| one.facts.name == operation)
}

/// Builds the routes of this face.
pub(super) fn router(api: &Api) -> Router<Api> {
    let write: WriteRefusal = status::write;
    let path = |service: &methods::Service| format!("/{}.{}/{{method}}", methods::PACKAGE, service.name);
    let services = methods::services();
    let told = reflection::PATHS.iter();
    let told = told.fold(Router::new(), |router, path| router.route(path, post(reflection::answer)));
    services
        .iter()
        .fold(told, |router, service| router.route(&path(service), any(answer)))
        .layer(from_fn_with_state(api.clone(), middleware::inner))
        .layer(from_fn_with_state(write, middleware::outer))
}

async fn answer(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    check_type(request.headers())?;
    let Some(operation) = methods::operation(request.uri().path()) else {
        return Err(Problem::new(ErrorCode::MethodNotAllowed, "there is no such method").into());
    };
    let served = match deadline::deadline(request.headers())? {
        None => serve(&api, operation, request).await,
        Some(wait) if wait.is_zero() => Err(deadline::passed()),
        Some(wait) => {
            let served = tokio::time::timeout(wait, serve(&api, operation, request)).await;
            served.unwrap_or_else(|_| Err(deadline::passed()))
        }
    };
    Ok(written(&served?))
}

/// Serves one call with one message, and returns the message of its reply.
async fn serve(api: &Api, operation: &'static OperationShape, request: Request) -> ServiceResult<Vec<u8>> {
    let (parts, body) = request.into_parts();
    // The key first: whoever has none learns nothing of the rest, and takes no memory for a body.
    let asked = asked_of(&parts, api).await?;
    let max_bytes = api.large_body_max_bytes();
    let request = Request::from_parts(parts, body);
    let message = frame::only(&body::read(request, api, max_bytes + frame::HEAD_BYTES).await?)?;
    let limits = DocumentLimits { document_max_bytes: max_bytes, ..DocumentLimits::default() };
    let record = Schema::get().read(&operation.request.name, &message, &limits)?;
    let served = Dispatcher::get().call(operation.facts.name, api, asked, record);
    let served = served.ok_or_else(|| Problem::not_found("method"))?;
    Schema::get().write(&operation.reply.name, &served.await?)
}

fn check_type(headers: &HeaderMap) -> ServiceResult<()> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let rest = given.strip_prefix(GRPC).map(|rest| rest.strip_prefix("+proto").unwrap_or(rest));
    match rest {
        Some(rest) if rest.is_empty() || rest.starts_with(';') => Ok(()),
        _ => Err(Problem::new(ErrorCode::UnsupportedMediaType, "the content type must be application/grpc")),
    }
}

fn written(message: &[u8]) -> Response {
    let trailers = async { Some(Ok(status::served())) };
    let body = Full::<Bytes>::new(frame::of(message)).with_trailers(trailers);
    ([(header::CONTENT_TYPE, GRPC)], Body::new(body)).into_response()
}
