//! Endpoints without a key: liveness, readiness, version, metrics.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::face::Api;
use crate::metrics::Exposition;

/// Returns the routes for liveness and readiness probes.
pub(super) fn probes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready))
}

/// Returns the other routes without a key.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(metrics)).routes(routes!(version))
}

/// The process is alive.
#[derive(Serialize, ToSchema)]
struct Alive {
    status: &'static str,
}

/// Readiness of the server.
#[derive(Serialize, ToSchema)]
struct Ready {
    /// `ok` or `unavailable`.
    status: &'static str,
    store: &'static str,
    queue: &'static str,
    /// `ok`, or `unavailable` while confirmations of devices wait to be written.
    receipts: &'static str,
    /// `ok`, or `unavailable` if a part of the pipeline failed. The server then stops and must be restarted.
    pipeline: &'static str,
    /// Failed parts of the pipeline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<String>,
    /// True while credentials are getting access tokens and connections, for which the first messages may have to wait.
    getting_ready: bool,
    /// Age of the oldest chunk that is due and not leased.
    oldest_ready_seconds: u64,
    /// Chunks due and not leased.
    ready_chunks: u64,
}

/// Name and version of the server.
#[derive(Serialize, ToSchema)]
#[schema(as = Version)]
struct VersionView {
    name: &'static str,
    version: &'static str,
    /// Version of the REST API.
    api: &'static str,
}

/// Responds as long as the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses((status = 200, body = Alive)))]
async fn alive() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// Reports whether store and queue respond and accept writes, whether the pipeline makes progress, and the age of the oldest waiting chunk.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), responses((status = 200, body = Ready), (status = 503, body = Ready)))]
async fn ready(State(api): State<Api>) -> (StatusCode, Json<Ready>) {
    let found = api.server_status().readiness().await;
    let word = |well: bool| if well { "ok" } else { "unavailable" };
    let status = if found.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = Ready {
        status: word(found.is_ready()),
        store: word(found.store),
        queue: word(found.queue),
        receipts: word(found.receipts),
        pipeline: word(found.failed.is_empty()),
        getting_ready: found.getting_ready,
        oldest_ready_seconds: found.oldest_ready_seconds,
        ready_chunks: found.ready_chunks,
        failed: found.failed,
    };
    (status, Json(body))
}

/// Returns all metrics for Prometheus: as OpenMetrics if the client accepts it, as text otherwise.
#[utoipa::path(get, path = "/metrics", tag = "health", security(()), responses((status = 200, content(
    (String = "text/plain"), (String = "application/openmetrics-text")
))))]
async fn metrics(State(api): State<Api>, headers: HeaderMap) -> impl IntoResponse {
    let format = Exposition::accepted(&headers);
    let head = [(header::CONTENT_TYPE, format.media_type()), (header::VARY, "accept")];
    (head, crate::metrics::render(api.service(), api.server_status(), format).await)
}

/// Returns the version of the server.
#[utoipa::path(get, path = "/version", tag = "health", security(()), responses((status = 200, body = VersionView)))]
async fn version() -> Json<VersionView> {
    Json(VersionView { name: "stentor", version: env!("CARGO_PKG_VERSION"), api: "v1" })
}
