//! Rows of messages, and those of them that are decoded already.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Row, params};
use stentor_core::id::{AppId, MessageId, ScheduleId};
use stentor_core::message::{Message, MessageSpec};

use crate::sqlite::damage::note;
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::one;
use crate::sqlite::row::{int, maybe_number, maybe_time, number, time};

/// Messages that are being sent, decoded; most leases ask for the same few.
const CACHED_MAX_COUNT: usize = 64;
/// Decoded messages, the last ones asked for; a message never changes.
#[derive(Default)]
pub(super) struct MessageCache(Mutex<VecDeque<Arc<Message>>>);

impl MessageCache {
    /// Returns the message from memory, or reads it.
    pub(super) fn get(&self, connection: &Connection, id: MessageId) -> Done<Option<Arc<Message>>> {
        if let Some(known) = self.find(id) {
            return Ok(Some(known));
        }
        // Read without the lock: two that miss at once read twice, and none waits for the disk of the other.
        let message = load(connection, id)?.map(Arc::new);
        if let Some(message) = &message {
            self.put(Arc::clone(message));
        }
        Ok(message)
    }

    fn find(&self, id: MessageId) -> Option<Arc<Message>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|message| message.id == id).map(Arc::clone)
    }

    fn put(&self, message: Arc<Message>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(CACHED_MAX_COUNT - 1);
        kept.push_front(message);
    }
}

/// Reads a message.
pub(super) fn load(connection: &Connection, id: MessageId) -> Done<Option<Message>> {
    let sql = "SELECT app, created_at, due_at, schedule, instant, spec FROM messages WHERE id = ?1";
    one(connection, sql, params![int(id.raw())], |row| read(row, id))
}

/// Reads those of some messages that are there and can be read.
pub(super) fn load_all(connection: &Connection, ids: &[MessageId]) -> Done<Vec<Message>> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        match load(connection, *id) {
            Ok(message) => found.extend(message),
            Err(fault) if fault.is_damage() => note(connection, "messages", int(id.raw()), &fault),
            Err(fault) => return Err(fault),
        }
    }
    Ok(found)
}

/// Reads the record of what was asked for.
pub(super) fn spec(row: &Row<'_>, at: usize) -> Done<MessageSpec> {
    let text = row.get_ref(at)?.as_str().map_err(|_| damaged("a message record that is no text"))?;
    MessageSpec::decode(text).ok_or_else(|| damaged("a message record that cannot be read"))
}

fn read(row: &Row<'_>, id: MessageId) -> Done<Message> {
    let occurrence = maybe_number(row, 3)?.map(ScheduleId::from_raw).zip(maybe_time(row, 4)?);
    Ok(Message {
        id,
        app: AppId::from_raw(number(row, 0)?),
        spec: spec(row, 5)?,
        created_at: time(row, 1)?,
        due_at: time(row, 2)?,
        occurrence,
    })
}
