//! What is asked without a key: alive, ready, which version, metrics.

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

/// Returns the routes by which supervisors look after the server.
pub(super) fn probes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready))
}

/// Returns the other routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(metrics)).routes(routes!(version))
}

/// The process is alive.
#[derive(Serialize, ToSchema)]
struct Alive {
    status: &'static str,
}

/// Whether the server can do its work.
#[derive(Serialize, ToSchema)]
struct Ready {
    /// `ok` or `unavailable`.
    status: &'static str,
    store: &'static str,
    queue: &'static str,
    /// `ok`, or `unavailable` while what devices confirm waits to be written.
    receipts: &'static str,
    /// `ok`, or `unavailable` when a part of it failed: the server ends then and must be started again.
    pipeline: &'static str,
    /// The parts that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<String>,
    /// Credentials get their access tokens and connections; what is sent first may wait for that.
    getting_ready: bool,
    /// Age of the oldest chunk that is due and not leased.
    oldest_ready_seconds: u64,
    /// Chunks due and not leased.
    ready_chunks: u64,
}

/// What runs here.
#[derive(Serialize, ToSchema)]
#[schema(as = Version)]
struct VersionView {
    name: &'static str,
    version: &'static str,
    /// Version of the REST API.
    api: &'static str,
}

/// Answers while the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses((status = 200, body = Alive)))]
async fn alive() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// Returns whether store and queue answer and keep what they are given, whether the pipeline moves, and how old the oldest waiting chunk is.
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

/// Returns all metrics as Prometheus reads them: as OpenMetrics where that is accepted, else as text.
#[utoipa::path(get, path = "/metrics", tag = "health", security(()), responses((status = 200, content(
    (String = "text/plain"), (String = "application/openmetrics-text")
))))]
async fn metrics(State(api): State<Api>, headers: HeaderMap) -> impl IntoResponse {
    let format = Exposition::accepted(&headers);
    let head = [(header::CONTENT_TYPE, format.media_type()), (header::VARY, "accept")];
    (head, crate::metrics::render(api.service(), api.server_status(), format).await)
}

/// Returns which version runs.
#[utoipa::path(get, path = "/version", tag = "health", security(()), responses((status = 200, body = VersionView)))]
async fn version() -> Json<VersionView> {
    Json(VersionView { name: "stentor", version: env!("CARGO_PKG_VERSION"), api: "v1" })
}
