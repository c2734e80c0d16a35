//! The job that stores the messages of many callers with the same few statements, because each statement has a cost of its own.

use std::sync::Arc;

use stentor_core::ports::store::{NewMessage, StoreError};

use super::accept;
use super::node_events;
use super::nodes::OwnInstance;
use crate::postgres::engine::Connection;
use crate::postgres::writer::CommitJob;
use crate::sql::AcceptanceWork;

/// Stores the messages that wait when it runs.
pub(super) struct AcceptanceJob {
    pub(super) work: AcceptanceWork<NewMessage>,
    /// The identity of this process among the nodes.
    pub(super) own: Arc<OwnInstance>,
}

impl CommitJob for AcceptanceJob {
    fn work(&mut self, connection: &Connection) -> bool {
        let Self { work, own } = self;
        let is_done = work.run(connection, |given| accept::accept(connection, given, own.get()));
        // Another node may be the one that starts the campaign.
        if is_done && let Some(own) = own.among_others() {
            node_events::wake(connection, own);
        }
        is_done
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        self.work.answer(&committed);
    }
}
