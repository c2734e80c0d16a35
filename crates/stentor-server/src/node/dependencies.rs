//! Dependencies of pipeline and services.

use std::sync::Arc;

use stentor_core::id::IdSource;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::Store;
use stentor_gateway::Gateway;

use crate::pipeline::NodeStanding;

/// The parts that pipeline and services share.
pub(crate) struct Dependencies {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<IdSource>,
    pub(crate) gateway: Gateway,
    pub(crate) standing: Arc<NodeStanding>,
}

/// The storage engines of a server. The crate above chooses them by the configuration.
pub struct Engines {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The transport of chunk ids.
    pub queue: Arc<dyn Queue>,
}
