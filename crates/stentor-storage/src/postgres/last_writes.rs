//! What a transaction writes last: rows that many transactions write. Whoever has one of them waits for no other row any more, so that no
//! two transactions wait for each other, in whatever order their jobs came.

use stentor_core::ports::store::NodeEvent;

/// What is still to be written at the end of a transaction.
#[derive(Debug, Default)]
pub(super) struct LastWrites {
    /// What other nodes are to hear, with the node that tells it.
    pub(super) events: Vec<(u64, NodeEvent)>,
    /// Whether something of no meaning is to be written.
    pub(super) probes: bool,
}
