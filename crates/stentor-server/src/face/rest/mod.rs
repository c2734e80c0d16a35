//! The REST face: resources over HTTP, as JSON, XML and Protocol Buffers.

mod asker;
mod carried;
mod described;
mod docs;
mod error;
mod etag;
mod extract;
mod format;
mod health;
mod import;
mod openapi;
mod records;
mod reply;
mod row;
mod table;
mod upstream_events;

use axum::Router;
use axum::middleware::from_fn_with_state;
use utoipa_axum::router::OpenApiRouter;

use super::Api;
use super::http::middleware;
use super::http::refusal::{Refusal, WriteRefusal};

pub use super::http::status_of;
pub use described::{wadl, wsdl2};
pub(crate) use error::write as write_refusal;
pub use error::{ErrorCodeEntry, PROBLEM_JSON, error_codes, errors_markdown};
pub use etag::{lets_change, tag_of_reply};
pub use format::accepted_media_type;
pub use openapi::{address_of, openapi_json};

/// What a handler answers.
type ApiResult<T> = Result<T, Refusal>;

/// Builds the routes of this face.
pub(super) fn router(api: &Api) -> Router<Api> {
    let limited: Router<Api> = limited_routes().into();
    let limited = limited.layer(from_fn_with_state(api.clone(), middleware::inner));
    let open: Router<Api> = open_routes().into();
    let write: WriteRefusal = error::write;
    limited
        .merge(open)
        .merge(docs::routes(api.has_docs()))
        .layer(from_fn_with_state(write, middleware::outer))
}

/// Returns whether this face has an address for the operation of a name.
#[must_use]
pub fn carries(operation: &str) -> bool {
    openapi::addresses().contains_key(operation)
}

/// Builds the routes that are asked without a key.
pub(super) fn health_router() -> Router<Api> {
    let (routes, write): (Router<Api>, WriteRefusal) = (health::routes().into(), error::write);
    routes.layer(from_fn_with_state(write, middleware::outer))
}

/// Routes with a key, a place and a time limit.
fn limited_routes() -> OpenApiRouter<Api> {
    let rows = table::limited().into_iter().chain(table::operator()).chain(table::upstream());
    rows.fold(OpenApiRouter::new(), OpenApiRouter::routes)
}

/// Routes that have limits of their own.
fn open_routes() -> OpenApiRouter<Api> {
    let rows = table::open().into_iter();
    rows.fold(OpenApiRouter::new(), OpenApiRouter::routes)
        .merge(health::routes())
        .merge(upstream_events::routes())
}

/// All routes with their descriptions.
fn described() -> OpenApiRouter<Api> {
    limited_routes().merge(open_routes())
}
