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

use super::auth::As;
use super::text::Instant;
use super::{Answered, Api};

/// Gives the routes of this noun.
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

/// What the server is doing.
#[derive(Serialize, ToSchema)]
struct Status {
    /// The number of this start.
    instance: u64,
    uptime_seconds: u64,
    queue: Vec<LaneStatus>,
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

/// Tells what every part is doing (root key).
#[utoipa::path(get, path = "/v1/status", tag = "status", responses((status = 200, body = Status)))]
async fn status(State(api): State<Api>, As(who): As) -> Answered<Json<Status>> {
    who.require_root()?;
    let queue = api.board().depths().await.unwrap_or_default();
    Ok(Json(Status {
        instance: api.board().belt.instance(),
        uptime_seconds: api.board().uptime().as_secs(),
        queue: queue.into_iter().map(LaneStatus::from).collect(),
    }))
}
