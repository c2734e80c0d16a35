//! Starting many campaigns together.

use std::collections::HashMap;
use std::time::Duration;

use stentor_core::id::MessageId;
use stentor_core::ledger::Cutting;
use stentor_core::message::Message;
use stentor_core::ports::store::Started;

use super::message_rows;
use super::named_devices::NamedDevices;
use super::rows::Rows;
use crate::postgres::engine::Connection;
use crate::sql::store::start::Starter;
use crate::sql::{Done, Portion, damaged};

/// Rows that one transaction writes.
const ROWS_MAX_COUNT: u64 = 8_192;
/// The time after which a transaction starts no more campaigns. Each takes several network round trips, which are slow if the server's
/// machine is busy.
const TIME: Duration = Duration::from_millis(500);

/// Begins the portion of a transaction that starts campaigns.
pub(super) fn portion(connection: &Connection) -> Portion<'_> {
    Portion::of(connection, ROWS_MAX_COUNT, TIME)
}

/// Begins campaigns for as long as a transaction may last.
pub(super) fn some(connection: &Connection, ids: &[MessageId], cutting: Cutting) -> Done<Started> {
    let portion = portion(connection);
    let messages = message_rows::load_all(connection, ids)?;
    if messages.len() < ids.len() {
        return Err(damaged("a message is missing"));
    }
    // Most have one chunk.
    Rows::new(connection).numbering(messages.len()).batch(|rows| {
        let named = NamedDevices::find(rows, &messages, cutting.now)?;
        let mut starter = Starter::new(rows, cutting);
        starter.last_device = named.last_made;
        // The server gives rows in any order, and where time is short the earliest go first.
        for message in in_order(messages, ids) {
            // At least one: the lookups before may have used all the time, and written rows of their own.
            let pending = starter.ledger.rows.pending_count();
            if !starter.started.begun.is_empty() && portion.is_over_with(pending) {
                starter.started.has_more = true;
                break;
            }
            starter.begin(&message, |starter, app, target| named.of(starter.ledger.rows, app, target))?;
        }
        starter.close()
    })
}

/// Puts messages in the order of their ids.
fn in_order(mut messages: Vec<Message>, ids: &[MessageId]) -> Vec<Message> {
    let places: HashMap<MessageId, usize> = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    messages.sort_by_key(|message| places.get(&message.id).copied());
    messages
}
