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

use utoipa_axum::router::OpenApiRouter;

use super::Api;
use super::http::refusal::{Refusal, WriteRefusal};
use super::http::{EntryRule, LimitedRouter, Routes};

pub use super::http::status_of;
pub use described::{wadl, wsdl2};
pub(crate) use error::write as write_refusal;
pub use error::{ErrorCodeEntry, PROBLEM_JSON, error_codes, errors_markdown};
pub use etag::{lets_change, tag_of_reply};
pub use format::accepted_media_type;
pub use openapi::{address_of, openapi_json};

/// Result of a handler.
type ApiResult<T> = Result<T, Refusal>;

/// Builds the routes of this face.
pub(super) fn router(api: &Api) -> LimitedRouter {
    let write: WriteRefusal = error::write;
    let routes = |routes| Routes::new().described(routes);
    routes(limited_routes())
        .limited(api, api.clone(), EntryRule::Keyed, write)
        .merge(routes(streamed_routes()).limited(api, api.clone(), EntryRule::Import, write))
        .merge(routes(upstream_events::routes()).limited(api, api.clone(), EntryRule::Lasting, write))
        .merge(docs::routes(api).limited(api, api.clone(), EntryRule::Open, write))
        .merge(health_router(api))
}

/// Returns true if this face has a route for the named operation.
#[must_use]
pub fn carries(operation: &str) -> bool {
    openapi::addresses().contains_key(operation)
}

/// Builds the routes that need no key.
pub(super) fn health_router(api: &Api) -> LimitedRouter {
    let limited =
        |routes, rule| Routes::new().described(routes).limited(api, api.clone(), rule, error::write);
    limited(health::probes(), EntryRule::Probe).merge(limited(health::routes(), EntryRule::Open))
}

/// Routes with a key, a place and a time limit.
fn limited_routes() -> OpenApiRouter<Api> {
    let rows = table::limited().into_iter().chain(table::operator()).chain(table::upstream());
    rows.fold(OpenApiRouter::new(), OpenApiRouter::routes)
}

/// Routes with bodies of any length.
fn streamed_routes() -> OpenApiRouter<Api> {
    table::open().into_iter().fold(OpenApiRouter::new(), OpenApiRouter::routes)
}

/// All routes with their descriptions.
fn described() -> OpenApiRouter<Api> {
    limited_routes()
        .merge(streamed_routes())
        .merge(health::probes())
        .merge(health::routes())
        .merge(upstream_events::routes())
}
