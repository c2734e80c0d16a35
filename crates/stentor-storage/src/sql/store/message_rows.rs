//! Rows of messages, and those of them that are decoded already.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sql::{
    Connection, Done, Row, damaged, int, maybe_number, maybe_time, number, one, params, readable, time,
};
use stentor_core::id::{AppId, MessageId, ScheduleId};
use stentor_core::message::{Message, MessageSpec};

/// The number of decoded messages in the cache; most leases need the same few.
const CACHED_MAX_COUNT: usize = 64;
/// The most recently used messages, decoded. A message never changes.
#[derive(Default)]
pub(crate) struct MessageCache(Mutex<VecDeque<Arc<Message>>>);

impl MessageCache {
    /// Returns the message from memory, or reads it.
    pub(crate) fn get(&self, connection: &Connection, id: MessageId) -> Done<Option<Arc<Message>>> {
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

    /// Returns true if the message is in memory.
    pub(crate) fn has(&self, id: MessageId) -> bool {
        self.find(id).is_some()
    }

    fn find(&self, id: MessageId) -> Option<Arc<Message>> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.iter().find(|message| message.id == id).map(Arc::clone)
    }

    fn put(&self, message: Arc<Message>) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.truncate(CACHED_MAX_COUNT - 1);
        cached.push_front(message);
    }
}

/// Reads a message.
pub(crate) fn load(connection: &Connection, id: MessageId) -> Done<Option<Message>> {
    let sql = "SELECT app, created_at, due_at, schedule, instant, spec FROM messages WHERE id = ?1";
    one(connection, sql, params![int(id.raw())], |row| read(row, 0, id))
}

/// Reads those of the given messages that exist and can be read.
pub(crate) fn load_all(connection: &Connection, ids: &[MessageId]) -> Done<Vec<Message>> {
    let is_asked = connection.dialect().is_in("id", 1);
    let sql = format!(
        "SELECT id, app, created_at, due_at, schedule, instant, spec FROM messages WHERE {is_asked} ORDER BY id"
    );
    let ids: Vec<i64> = ids.iter().map(|id| int(id.raw())).collect();
    let most = ids.len();
    let whole = |row: &Row<'_>| read(row, 1, MessageId::from_raw(number(row, 0)?));
    Ok(readable(connection, "messages", (&sql, params![ids]), most, whole)?.0)
}

/// Reads the request record of a message.
pub(crate) fn spec(row: &Row<'_>, at: usize) -> Done<MessageSpec> {
    MessageSpec::decode(row.str(at)?).ok_or_else(|| damaged("a message record that cannot be read"))
}

/// Reads a message from the columns beginning at `first`.
fn read(row: &Row<'_>, first: usize, id: MessageId) -> Done<Message> {
    let occurrence = maybe_number(row, first + 3)?.map(ScheduleId::from_raw).zip(maybe_time(row, first + 4)?);
    Ok(Message {
        id,
        app: AppId::from_raw(number(row, first)?),
        spec: spec(row, first + 5)?,
        created_at: time(row, first + 1)?,
        due_at: time(row, first + 2)?,
        occurrence,
    })
}
