//! The dependencies of a pipeline, which the services above it share.

use std::path::PathBuf;
use std::sync::Arc;

use stentor_core::id::IdSource;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::settled::SettledFeed;
use stentor_core::ports::store::Store;

use super::node_standing::NodeStanding;
use super::provider_table::ProviderFactory;
use super::roles::NodeRoles;
use super::threads::Threads;

/// Everything that a pipeline needs from outside; clones share it.
#[derive(Clone)]
pub struct Dependencies {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The transport of chunk ids.
    pub queue: Arc<dyn Queue>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Numbers for messages, and for all that the services create.
    pub ids: Arc<IdSource>,
    /// Builds providers from credentials.
    pub factory: Arc<dyn ProviderFactory>,
    /// The threads that move audiences; the caller's threads do that where this is `None`.
    pub threads: Option<Arc<Threads>>,
    /// The instance under which this process leases, never reused from an earlier start, and its permission to act.
    pub standing: Arc<NodeStanding>,
    /// The work that this node does.
    pub roles: NodeRoles,
    /// True if other nodes use the same queue.
    pub shares_queue: bool,
    /// File in which quotas survive a restart; `None` to start with fresh ones.
    pub levels: Option<PathBuf>,
    /// Brings settled chunks to devices that are connected to this node.
    pub settled_feed: Option<Arc<dyn SettledFeed>>,
}
