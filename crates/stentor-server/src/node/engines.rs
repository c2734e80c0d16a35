//! The engines of a server.

use std::sync::Arc;

use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::Store;

/// The storage engines of a server. The crate above chooses them by the configuration.
pub struct Engines {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The transport of chunk ids.
    pub queue: Arc<dyn Queue>,
}
