//! Many topics of one device at once.

use rusqlite::Connection;
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;

use super::topics::{IS_SUBSCRIBED, too_many, topic_count};
use crate::sql::{Done, exists, limit, run};

/// Subscribes a device to a topic; returns true if it was not subscribed. `room` is the number of further topics that the device may have;
/// it is counted once if it is `None`.
pub(super) fn add_within(
    connection: &Connection,
    topic: i64,
    key: i64,
    room: &mut Option<i64>,
) -> Done<bool> {
    if exists(connection, IS_SUBSCRIBED, [topic, key])? {
        return Ok(false);
    }
    let most = limit(TOPICS_PER_DEVICE_MAX_COUNT);
    let left = room.map_or_else(|| Ok(most - topic_count(connection, key)?), Done::Ok)?;
    if left <= 0 {
        return Err(too_many());
    }
    run(connection, "INSERT INTO subscriptions (topic, key) VALUES (?1, ?2)", [topic, key])?;
    *room = Some(left - 1);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::store::registration::RegistrationBatch;
    use crate::sqlite::migrations;
    use crate::sqlite::store::registrar::Registrar;
    use crate::sqlite::store::topics::TOPIC_COUNT;
    use rusqlite::StatementStatus;
    use stentor_core::id::AppId;
    use stentor_core::name::TopicName;
    use stentor_core::time::Timestamp;

    #[test]
    fn the_topics_of_a_device_are_counted_once_however_many_it_joins() {
        let connection = Connection::open_in_memory().expect("opened");
        migrations::run(&connection, migrations::STORE).expect("made");
        let name = |no: u32| TopicName::new(format!("topic-{no}")).expect("a name");
        let names: Vec<_> = (0..500).map(name).collect();
        let batch = RegistrationBatch::new(
            AppId::from_raw(1),
            &[],
            Timestamp::from_millis(0),
            crate::sqlite::store::tokens::hash,
        );
        let mut registrar = Registrar::new(&connection, &batch).expect("made");
        registrar.subscribe(1 << 40 | 1, &names).expect("subscribed");
        assert_eq!(topic_count(&connection, 1 << 40 | 1).expect("counted"), 500);
        let statement = connection.prepare_cached(TOPIC_COUNT).expect("kept");
        assert_eq!(statement.get_status(StatementStatus::Run), 2, "once by the registrar and once above");
    }
}
