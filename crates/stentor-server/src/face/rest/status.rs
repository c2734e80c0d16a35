//! What the server is doing, for its operator.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use stentor_core::chunk::Class;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::queue::LaneDepth;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::Authenticated;
use super::text::Instant;
use super::{Api, ApiResult};
use crate::config::Config;
use crate::pipeline::stats::DispatchStats;

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(status))
}

/// How full one lane of the queue is.
#[derive(Serialize, ToSchema)]
struct LaneStatus {
    #[schema(value_type = String)]
    provider: ProviderKind,
    #[schema(value_type = String)]
    app: AppId,
    /// `urgent` or `bulk`.
    #[schema(value_type = String)]
    class: Class,
    /// Chunks due and not leased.
    ready: u64,
    /// Chunks due later.
    delayed: u64,
    /// Chunks leased.
    leased: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_due: Option<Instant>,
}

/// A lane that rests.
#[derive(Serialize, ToSchema)]
struct Parked {
    #[schema(value_type = String)]
    app: AppId,
    reason: &'static str,
    /// Not before; absent until the credential changes or a probe passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Instant>,
    detail: String,
}

/// What is going on at one provider.
#[derive(Serialize, ToSchema)]
struct ProviderStatus {
    #[schema(value_type = String)]
    provider: ProviderKind,
    consumers: usize,
    /// Requests written and not answered.
    inflight: u64,
    /// Most requests it would have in flight now.
    inflight_limit: u64,
    /// Shortest time of an answer lately.
    latency_floor_ms: u64,
    connections: u64,
    /// Deliveries leased and not settled.
    unsettled: u64,
    /// Most deliveries of audiences it would have unsettled now.
    unsettled_limit: u64,
    attempts: u64,
    parked: Vec<Parked>,
}

/// What was found at start.
#[derive(Serialize, ToSchema)]
struct RecoveryStatus {
    chunks: u64,
    deliveries: u64,
}

/// Limits in force.
#[derive(Serialize, ToSchema)]
struct LimitStatus {
    max_unsettled_deliveries: u64,
    consumers_max: usize,
    chunk_max_devices: usize,
    requests_max_count: usize,
    connections_max_count: usize,
    body_max_bytes: usize,
    large_body_max_bytes: usize,
    bodies_max_bytes: usize,
    imports_max_count: usize,
    app_share_percent: usize,
}

/// What the server is doing.
#[derive(Serialize, ToSchema)]
struct Status {
    /// The number of this start.
    instance: String,
    uptime_seconds: u64,
    providers: Vec<ProviderStatus>,
    queue: Vec<LaneStatus>,
    /// Producers at work.
    producers: usize,
    /// Deliveries leased and not settled.
    unsettled_deliveries: u64,
    recovery: RecoveryStatus,
    /// Chunks that were damaged and set aside, of all campaigns that are kept; absent when the store does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged_chunks: Option<u64>,
    limits: LimitStatus,
}

impl From<DispatchStats> for ProviderStatus {
    fn from(dispatcher: DispatchStats) -> Self {
        let parked = dispatcher.parked.into_iter().map(|lane| Parked {
            app: lane.app,
            reason: lane.reason.as_str(),
            until: lane.until.map(Instant),
            detail: lane.detail,
        });
        Self {
            provider: dispatcher.provider,
            consumers: dispatcher.consumers,
            inflight: dispatcher.wire.inflight,
            inflight_limit: dispatcher.wire.inflight_limit,
            latency_floor_ms: dispatcher.wire.latency_floor.as_millis() as u64,
            connections: dispatcher.wire.connections,
            unsettled: dispatcher.unsettled_deliveries,
            unsettled_limit: dispatcher.window_deliveries,
            attempts: dispatcher.attempts,
            parked: parked.collect(),
        }
    }
}

impl From<&Config> for LimitStatus {
    fn from(config: &Config) -> Self {
        Self {
            max_unsettled_deliveries: config.pipeline.max_unsettled_deliveries,
            consumers_max: config.pipeline.consumers_max,
            chunk_max_devices: config.pipeline.chunk_max_devices,
            requests_max_count: config.api.requests_max_count,
            connections_max_count: config.api.connections_max_count,
            body_max_bytes: config.api.body_max_bytes,
            large_body_max_bytes: config.api.large_body_max_bytes,
            bodies_max_bytes: config.api.bodies_max_bytes,
            imports_max_count: config.api.imports_max_count,
            app_share_percent: config.api.app_share_percent,
        }
    }
}

impl From<LaneDepth> for LaneStatus {
    fn from(depth: LaneDepth) -> Self {
        Self {
            provider: depth.lane.provider,
            app: depth.lane.app,
            class: depth.lane.class,
            ready: depth.ready,
            delayed: depth.delayed,
            leased: depth.leased,
            oldest_due: depth.oldest_due.map(Instant),
        }
    }
}

/// Returns what every part is doing (root key).
#[utoipa::path(get, path = "/v1/status", tag = "status", responses((status = 200, body = Status)))]
async fn status(State(api): State<Api>, Authenticated(who): Authenticated) -> ApiResult<Json<Status>> {
    who.require_root()?;
    let board = api.board();
    let (queue, stats) = (board.depths().await.unwrap_or_default(), board.belt.stats());
    Ok(Json(Status {
        instance: format!("{:x}", board.belt.instance()),
        uptime_seconds: board.uptime().as_secs(),
        providers: stats.providers.into_iter().map(ProviderStatus::from).collect(),
        queue: queue.into_iter().map(LaneStatus::from).collect(),
        producers: stats.producers,
        unsettled_deliveries: stats.unsettled_deliveries,
        recovery: RecoveryStatus { chunks: stats.recovery.chunks, deliveries: stats.recovery.deliveries },
        damaged_chunks: board.damaged_chunks().await,
        limits: LimitStatus::from(&board.config),
    }))
}
