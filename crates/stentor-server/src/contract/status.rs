//! What the server is doing, for its operator.

use serde::Serialize;
use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::queue::LaneDepth;
use utoipa::ToSchema;

use super::Instant;

/// How full one lane of the queue is.
#[derive(Serialize, ToSchema)]
pub struct LaneStatus {
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    #[schema(value_type = String)]
    pub(crate) app: AppId,
    /// `urgent` or `bulk`.
    #[schema(value_type = String)]
    pub(crate) class: TrafficClass,
    /// Chunks due and not leased.
    pub(crate) ready: u64,
    /// Chunks due later.
    pub(crate) delayed: u64,
    /// Chunks leased.
    pub(crate) leased: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oldest_due: Option<Instant>,
}

/// A lane that rests.
#[derive(Serialize, ToSchema)]
pub struct Parked {
    #[schema(value_type = String)]
    pub(crate) app: AppId,
    pub(crate) reason: &'static str,
    /// Not before; absent until the credential changes or a probe passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Instant>,
    pub(crate) detail: String,
}

/// What is going on at one provider.
#[derive(Serialize, ToSchema)]
pub struct ProviderStatus {
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    pub(crate) consumers: usize,
    /// Requests written and not answered.
    pub(crate) inflight: u64,
    /// Most requests it would have in flight now.
    pub(crate) inflight_limit: u64,
    /// Shortest time of an answer lately.
    pub(crate) latency_floor_ms: u64,
    pub(crate) connections: u64,
    /// Deliveries leased and not settled.
    pub(crate) unsettled: u64,
    /// Most deliveries of audiences it would have unsettled now.
    pub(crate) unsettled_limit: u64,
    pub(crate) attempts: u64,
    pub(crate) parked: Vec<Parked>,
}

/// What was found at start.
#[derive(Serialize, ToSchema)]
pub struct RecoveryStatus {
    pub(crate) chunks: u64,
    pub(crate) deliveries: u64,
}

/// Limits in force.
#[derive(Serialize, ToSchema)]
pub struct LimitStatus {
    pub(crate) max_unsettled_deliveries: u64,
    pub(crate) consumers_max: usize,
    pub(crate) chunk_max_devices: usize,
    pub(crate) requests_max_count: usize,
    pub(crate) connections_max_count: usize,
    pub(crate) body_max_bytes: usize,
    pub(crate) large_body_max_bytes: usize,
    pub(crate) bodies_max_bytes: usize,
    pub(crate) imports_max_count: usize,
    pub(crate) app_share_percent: usize,
}

/// What the server is doing.
#[derive(Serialize, ToSchema)]
#[schema(as = Status)]
pub struct StatusView {
    /// The number of this start.
    pub(crate) instance: String,
    pub(crate) uptime_seconds: u64,
    pub(crate) providers: Vec<ProviderStatus>,
    pub(crate) queue: Vec<LaneStatus>,
    /// Producers at work.
    pub(crate) producers: usize,
    /// Deliveries leased and not settled.
    pub(crate) unsettled_deliveries: u64,
    pub(crate) recovery: RecoveryStatus,
    /// Chunks that were damaged and set aside, of all campaigns that are kept; absent when the store does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) damaged_chunks: Option<u64>,
    /// Rows of any kind that could not be read since the start and are left out of lists; absent when the store does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) damaged_rows: Option<u64>,
    pub(crate) limits: LimitStatus,
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
