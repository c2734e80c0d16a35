//! Status of the server, for its operator.

use serde::Serialize;
use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::queue::LaneDepth;
use utoipa::ToSchema;

use super::Instant;

/// Fill level of one lane of the queue.
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

/// A parked lane.
#[derive(Serialize, ToSchema)]
pub struct Parked {
    #[schema(value_type = String)]
    pub(crate) app: AppId,
    pub(crate) reason: &'static str,
    /// Earliest time of resumption; absent if the lane waits for a new credential or a passed probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Instant>,
    pub(crate) detail: String,
}

/// Status of one provider.
#[derive(Serialize, ToSchema)]
pub struct ProviderStatus {
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    pub(crate) consumers: usize,
    /// Requests sent and not answered yet.
    pub(crate) inflight: u64,
    /// Current limit of requests in flight.
    pub(crate) inflight_limit: u64,
    /// Shortest recent response time.
    pub(crate) latency_floor_ms: u64,
    pub(crate) connections: u64,
    /// Deliveries leased and not settled.
    pub(crate) unsettled: u64,
    /// Current limit of unsettled deliveries for audiences.
    pub(crate) unsettled_limit: u64,
    pub(crate) attempts: u64,
    pub(crate) parked: Vec<Parked>,
}

/// Work leased by dead processes, found and queued again at the start.
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

/// Status of the server.
#[derive(Serialize, ToSchema)]
#[schema(as = Status)]
pub struct StatusView {
    /// Number of this start.
    pub(crate) instance: String,
    pub(crate) uptime_seconds: u64,
    pub(crate) providers: Vec<ProviderStatus>,
    pub(crate) queue: Vec<LaneStatus>,
    /// Active producers.
    pub(crate) producers: usize,
    /// Deliveries leased and not settled.
    pub(crate) unsettled_deliveries: u64,
    pub(crate) recovery: RecoveryStatus,
    /// Damaged chunks set aside, over all stored campaigns; absent if the store does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) damaged_chunks: Option<u64>,
    /// Unreadable rows of any kind found since the start, which lists leave out; absent if the store does not answer.
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
