//! The REST face: translates between HTTP and the services, and holds no rule.

mod auth;
mod body;
mod docs;
mod error;
mod extract;
mod health;
mod import;
mod middleware;
mod openapi;
mod origin;
mod read_timeout;
mod records;
mod request_permit;
mod row;
mod table;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use ipnet::IpNet;
use utoipa_axum::router::OpenApiRouter;

use crate::service::Service;
use crate::status::ServerStatus;

pub use error::{ErrorCodeEntry, PROBLEM_JSON, error_codes, errors_markdown, status_of};
pub use middleware::RequestLimits;
pub use openapi::openapi_json;
pub use read_timeout::ReadTimeout;

/// What a handler answers.
type ApiResult<T> = Result<T, error::Refusal>;

/// Everything the face stands on; clones share it.
#[derive(Clone)]
pub struct Api(Arc<Parts>);

/// What the face is made of.
pub struct Parts {
    /// What decides.
    pub service: Arc<Service>,
    /// What the server knows of itself.
    pub board: Arc<ServerStatus>,
    /// How much is worked on at once.
    pub limits: RequestLimits,
    /// Largest body of most requests.
    pub body_max_bytes: usize,
    /// Largest body where many names or a certificate may stand in it.
    pub large_body_max_bytes: usize,
    /// How long an import waits for its body.
    pub import_timeout: ReadTimeout,
    /// Proxies whose word about the caller is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether /docs is served.
    pub docs: bool,
}

impl Api {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// Builds the router of the whole face.
    pub fn router(&self) -> Router {
        let limited: Router<Self> = limited_routes().into();
        let limited = limited.layer(from_fn_with_state(self.clone(), middleware::inner));
        let open: Router<Self> = open_routes().into();
        limited
            .merge(open)
            .merge(docs::routes(self.0.docs))
            .fallback(middleware::nowhere)
            .layer(from_fn(middleware::outer))
            .with_state(self.clone())
    }

    fn service(&self) -> &Service {
        &self.0.service
    }

    fn board(&self) -> &ServerStatus {
        &self.0.board
    }

    fn limits(&self) -> &RequestLimits {
        &self.0.limits
    }

    fn trusted_proxies(&self) -> &[IpNet] {
        &self.0.trusted_proxies
    }

    fn body_max_bytes(&self) -> usize {
        self.0.body_max_bytes
    }

    fn large_body_max_bytes(&self) -> usize {
        self.0.large_body_max_bytes
    }

    fn import_timeout(&self) -> &ReadTimeout {
        &self.0.import_timeout
    }
}

/// Routes with a key, a place and a time limit.
fn limited_routes() -> OpenApiRouter<Api> {
    let rows = table::limited().into_iter();
    rows.fold(OpenApiRouter::new(), OpenApiRouter::routes)
}

/// Routes that have limits of their own.
fn open_routes() -> OpenApiRouter<Api> {
    let rows = table::open().into_iter();
    rows.fold(OpenApiRouter::new(), OpenApiRouter::routes).merge(health::routes())
}

/// All routes with their descriptions.
fn described() -> OpenApiRouter<Api> {
    limited_routes().merge(open_routes())
}
