//! The last state of a topic: its newest live message that was sent to be retained.

use stentor_core::id::{AppId, MessageId};
use stentor_core::message::{Message, MessageSpec, place};
use stentor_core::name::TopicName;
use stentor_core::time::Timestamp;

use super::codes::{CANCELED, PAUSED};
use crate::sql::{Connection, Done, Row, all, int, limit, number, one, params, run, time};

/// Messages that are read at once where the file comes from a version that had no columns for it.
const ADOPTED_MAX_COUNT: usize = 256;

/// Returns the columns of a campaign's row for a retained message: its topic, and its place among such messages.
pub(crate) fn of(message: &Message) -> Option<(&str, i64)> {
    Some((message.spec.retained_topic()?.as_str(), int(message.place())))
}

/// Finds the newest message that may be delivered. Newer messages that have expired are skipped within the index.
pub(crate) fn newest(
    connection: &Connection,
    app: AppId,
    topic: &TopicName,
    now: Timestamp,
) -> Done<Option<MessageId>> {
    let sql = format!(
        "SELECT id FROM campaigns WHERE app = ?1 AND retained_topic = ?2 AND expires_at > ?3 AND due_at <= ?3
        AND state NOT IN ({PAUSED}, {CANCELED}) ORDER BY retained_place DESC, id DESC LIMIT 1"
    );
    let values = params![int(app.raw()), topic.as_str(), now.as_millis()];
    one(connection, &sql, values, |row| Ok(MessageId::from_raw(number(row, 0)?)))
}

/// Fills the columns for messages that earlier versions accepted.
pub(crate) fn adopt(connection: &Connection) -> Done<()> {
    let sql =
        "SELECT id, created_at, due_at, spec FROM messages WHERE id > ?1 AND spec LIKE '%\"retain\":true%'
        ORDER BY id LIMIT ?2";
    let mut last = i64::MIN;
    loop {
        let rows = all(connection, sql, [last, limit(ADOPTED_MAX_COUNT)], |row| {
            Ok((row.get::<i64>(0)?, adopted(row).unwrap_or_default()))
        })?;
        let Some((end, _)) = rows.last() else { return Ok(()) };
        // Past rows that cannot be read too: they would be met again for ever.
        last = *end;
        for (id, (topic, place)) in rows.into_iter().filter_map(|(id, found)| Some((id, found?))) {
            let sql = "UPDATE campaigns SET retained_topic = ?2, retained_place = ?3 WHERE id = ?1";
            run(connection, sql, params![id, topic, place])?;
        }
    }
}

fn adopted(row: &Row<'_>) -> Done<Option<(String, i64)>> {
    let spec = MessageSpec::decode(row.maybe_str(3).ok().flatten().unwrap_or_default());
    let Some(topic) = spec.as_ref().and_then(MessageSpec::retained_topic) else { return Ok(None) };
    let place = place(MessageId::from_raw(number(row, 0)?), time(row, 1)?, time(row, 2)?);
    Ok(Some((topic.as_str().to_owned(), int(place))))
}
