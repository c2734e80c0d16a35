//! The servers that use the store.

use serde::Serialize;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{NodeRecord, ParkedLane};
use utoipa::ToSchema;

use super::Instant;

/// A lane that rests at a server.
#[derive(Serialize, ToSchema)]
#[schema(as = ParkedLane)]
pub struct ParkedLaneView {
    #[schema(value_type = String)]
    pub(crate) app: AppId,
    #[schema(value_type = String)]
    pub(crate) provider: ProviderKind,
    /// Why, in a word.
    #[schema(value_type = String)]
    pub(crate) reason: Reason,
    /// Not before; absent until the credential changes or a probe passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Instant>,
    /// Why, in a sentence.
    pub(crate) detail: String,
}

/// A server.
#[derive(Serialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeView {
    /// The number of its start.
    pub(crate) instance: String,
    /// The name of its machine; empty where its version is too old to tell.
    pub(crate) host: String,
    /// Whether it is the server that answers.
    pub(crate) answers: bool,
    /// Whether it is the one that begins what is due and fires schedules.
    pub(crate) fires: bool,
    /// What it does; empty where its version is too old to tell.
    pub(crate) roles: Vec<String>,
    /// The version of its program; empty where that is too old to tell.
    pub(crate) version: String,
    /// The schema of the store that its program knows; absent where the store serves one server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schema_version: Option<u64>,
    /// Time since its last sign of life, by the clock of the store.
    pub(crate) silent_ms: u64,
    /// Lanes that rest at it, of which it sends.
    pub(crate) parked: Vec<ParkedLaneView>,
}

/// The servers that use the store, the one that is there longest first.
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
