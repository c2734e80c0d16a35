//! The job that stores the messages of many callers.

use stentor_core::ports::store::StoreError;

use rusqlite::Connection;

use super::accept::{self, EncodedMessage};
use crate::sql::AcceptanceWork;
use crate::sqlite::writer::{Job, Undo};

/// Stores the messages that wait when it runs.
pub(super) struct AcceptanceJob(pub(super) AcceptanceWork<EncodedMessage>);

impl Job for AcceptanceJob {
    fn undo(&self) -> Undo {
        // It has savepoints of its own.
        Undo::Nothing
    }

    fn work(&mut self, connection: &Connection) -> bool {
        self.0.run(connection, |given| accept::accept(connection, given))
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        self.0.answer(&committed);
    }
}
