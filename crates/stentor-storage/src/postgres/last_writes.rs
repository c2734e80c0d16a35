//! The last writes of a transaction: rows that many transactions write. A transaction that holds one of them waits for no other row, which
//! prevents deadlocks in any order of the jobs.

use stentor_core::ports::store::NodeEvent;

/// The pending last writes of a transaction.
#[derive(Debug, Default)]
pub(super) struct LastWrites {
    /// Events for other nodes, each with the instance that publishes it.
    pub(super) events: Vec<(u64, NodeEvent)>,
    /// True if a meaningless row is to be written.
    pub(super) probes: bool,
}
