//! The servers that use the store.

use serde::Serialize;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{NodeRecord, ParkedLane};
use utoipa::ToSchema;

use super::Instant;

/// A parked lane at a server.
#[derive(Serialize, ToSchema)]
#[schema(as = ParkedLane)]
pub struct ParkedLaneView {
    #[schema(value_type = String)]
    pub(crate) app: AppId,
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    /// Reason for parking, as a stable word.
    #[schema(value_type = String)]
    pub(crate) reason: Reason,
    /// Earliest time of resumption; absent if the lane waits for a new credential or a passed probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Instant>,
    /// Reason for parking, in plain words.
    pub(crate) detail: String,
}

/// A server.
#[derive(Serialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeView {
    /// Number of this start of the server.
    pub(crate) instance: String,
    /// Host name; empty if the server's version is too old to report it.
    pub(crate) host: String,
    /// True for the server that answers this request.
    pub(crate) answers: bool,
    /// True for the server that starts due messages and fires schedules.
    pub(crate) fires: bool,
    /// Roles of the server; empty if its version is too old to report them.
    pub(crate) roles: Vec<String>,
    /// Version of the program; empty if it is too old to report it.
    pub(crate) version: String,
    /// Store schema version that the program supports; absent if the store serves a single server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schema_version: Option<u64>,
    /// Time since the last heartbeat, by the clock of the store.
    pub(crate) silent_ms: u64,
    /// Parked lanes among those that the server sends on.
    pub(crate) parked: Vec<ParkedLaneView>,
}

/// The servers that use the store, in order of start, oldest first.
#[derive(Serialize, ToSchema)]
pub struct NodeList {
    pub(crate) nodes: Vec<NodeView>,
}

impl From<NodeRecord> for NodeView {
    fn from(node: NodeRecord) -> Self {
        Self {
            instance: format!("{:x}", node.instance),
            host: node.host,
            answers: node.is_own,
            fires: node.is_first,
            roles: node.roles,
            version: node.version,
            schema_version: Some(node.schema_version),
            silent_ms: u64::try_from(node.silent_for.as_millis()).unwrap_or(u64::MAX),
            parked: node.parked.into_iter().map(ParkedLaneView::from).collect(),
        }
    }
}

impl From<ParkedLane> for ParkedLaneView {
    fn from(ParkedLane { app, provider, until, reason, detail }: ParkedLane) -> Self {
        Self { app, provider, reason, until: until.map(Instant), detail }
    }
}
