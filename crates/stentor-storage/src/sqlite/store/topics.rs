use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
use stentor_core::name::TopicName;
use stentor_core::ports::store::{Precondition, StoreError, SubscriptionChange, TopicStore};
use stentor_core::time::Timestamp;
use stentor_core::topic::TopicSummary;

use super::leftovers::{Leftover, LeftoverKind};
use super::{SqliteStore, app_providers, retained};
use crate::sqlite::damage::readable;
use crate::sqlite::fault::{Done, SqliteError, missing};
use crate::sqlite::portion::Portion;
use crate::sqlite::query::{all, exists, limit, one, run};
use crate::sqlite::row::{int, number, text};

/// So many devices are subscribed at once; whether more have room is looked at before.
const UNCHECKED_MAX_COUNT: usize = 64;

#[async_trait]
impl TopicStore for SqliteStore {
    async fn subscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError> {
        let devices: Arc<[DeviceId]> = devices.into();
        // A portion that is written stays: whether all have room is asked before the first.
        if devices.len() > UNCHECKED_MAX_COUNT {
            let (topic, devices) = (topic.clone(), Arc::clone(&devices));
            self.read_long(move |connection| check_room(connection, app, &topic, &devices)).await?;
        }
        let mut change = SubscriptionWork::default();
        loop {
            let (topic, devices) = (topic.clone(), Arc::clone(&devices));
            let done = self.write(move |connection| {
                app_providers::check_app(connection, app)?;
                let no = ensure(connection, app, &topic)?;
                change.go_on(connection, (app, no), &devices, add)?;
                // Only what this portion changed: earlier portions counted theirs.
                count(connection, no, int(change.changed_now()))?;
                let is_over = change.upto >= devices.len();
                Ok((change, is_over))
            });
            let (after, is_over) = done.await?;
            if is_over {
                return Ok(after.sum);
            }
            change = after.next();
        }
    }

    async fn unsubscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError> {
        let devices: Arc<[DeviceId]> = devices.into();
        let mut change = SubscriptionWork::default();
        loop {
            let (topic, devices) = (topic.clone(), Arc::clone(&devices));
            let done = self.write(move |connection| {
                let no = find(connection, app, &topic)?.ok_or(missing("topic"))?;
                change.go_on(connection, (app, no), &devices, take)?;
                // As in `subscribe`: earlier portions counted theirs.
                count(connection, no, -int(change.changed_now()))?;
                let is_over = change.upto >= devices.len();
                Ok((change, is_over))
            });
            let (after, is_over) = done.await?;
            if is_over {
                return Ok(after.sum);
            }
            change = after.next();
        }
    }

    async fn topics(
        &self,
        app: AppId,
        after: Option<&TopicName>,
        count: usize,
    ) -> Result<Vec<TopicSummary>, StoreError> {
        let after = after.map_or(String::new(), |name| name.as_str().to_owned());
        self.read(move |connection| {
            let sql = "SELECT name, device_count FROM topics WHERE app = ?1 AND name > ?2 ORDER BY name";
            let rows = (sql, params![int(app.raw()), after]);
            Ok(readable(connection, "topics", rows, count, summary)?.0)
        })
        .await
    }

    async fn topic(&self, app: AppId, topic: &TopicName) -> Result<TopicSummary, StoreError> {
        let topic = topic.clone();
        self.read(move |connection| show(connection, app, &topic)).await
    }

    async fn remove_topic_if(
        &self,
        app: AppId,
        topic: &TopicName,
        precondition: &Precondition<TopicSummary>,
    ) -> Result<(), StoreError> {
        let (topic, precondition) = (topic.clone(), precondition.clone());
        self.write(move |connection| {
            precondition.check(|| show(connection, app, &topic).map(Some))?;
            let no = find(connection, app, &topic)?.ok_or(missing("topic"))?;
            run(connection, "DELETE FROM topics WHERE no = ?1", [no])?;
            // In the transaction that takes the name away: else nobody would know of the subscriptions left.
            Leftover::of(LeftoverKind::Topic, no).begin(connection, &Portion::begin(connection))
        })
        .await
    }

    async fn remove_unused_topics(
        &self,
        app: AppId,
        topics: &[TopicName],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let topics = topics.to_vec();
        self.write(move |connection| {
            topics.iter().try_fold(0, |gone, topic| Ok(gone + remove_unused(connection, app, topic, now)?))
        })
        .await
    }

    async fn topics_of(&self, app: AppId, device: DeviceId) -> Result<Vec<TopicName>, StoreError> {
        self.read(move |connection| {
            let (_, key) = app_providers::require(connection, app, device)?;
            let sql = "SELECT t.name FROM device_topics d JOIN topics t ON t.no = d.topic WHERE d.key = ?1 ORDER BY t.name";
            let name = |row: &Row<'_>| text(row, 0, TopicName::new);
            Ok(readable(connection, "topics", (sql, [key]), usize::MAX, name)?.0)
        })
        .await
    }
}

fn show(connection: &Connection, app: AppId, topic: &TopicName) -> Done<TopicSummary> {
    let sql = "SELECT name, device_count FROM topics WHERE app = ?1 AND name = ?2";
    one(connection, sql, params![int(app.raw()), topic.as_str()], summary)?.ok_or(missing("topic"))
}

/// Removes a topic that nobody is subscribed to and that has no last state.
fn remove_unused(connection: &Connection, app: AppId, topic: &TopicName, now: Timestamp) -> Done<u64> {
    if retained::newest(connection, app, topic, now)?.is_some() {
        return Ok(0);
    }
    let sql = "DELETE FROM topics WHERE app = ?1 AND name = ?2 AND device_count = 0
        AND NOT EXISTS (SELECT 1 FROM subscriptions WHERE topic = topics.no)";
    Ok(run(connection, sql, params![int(app.raw()), topic.as_str()])? as u64)
}

/// Finds a topic's number.
pub(super) fn find(connection: &Connection, app: AppId, topic: &TopicName) -> Done<Option<i64>> {
    let sql = "SELECT no FROM topics WHERE app = ?1 AND name = ?2";
    one(connection, sql, params![int(app.raw()), topic.as_str()], |row| Ok(row.get(0)?))
}

/// Finds a topic or makes it.
pub(super) fn ensure(connection: &Connection, app: AppId, topic: &TopicName) -> Done<i64> {
    if let Some(no) = find(connection, app, topic)? {
        return Ok(no);
    }
    let sql = "INSERT INTO topics (app, name, device_count) VALUES (?1, ?2, 0)";
    run(connection, sql, params![int(app.raw()), topic.as_str()])?;
    Ok(connection.last_insert_rowid())
}

/// Subscribes one device; returns whether it was not before. The topic's count is the caller's to change.
pub(super) fn add(connection: &Connection, topic: i64, key: i64) -> Done<bool> {
    add_within(connection, topic, key, &mut None)
}

/// Subscribes like [`add`]; `room` is how many more topics the device may have, counted once when it is `None`.
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
    run(connection, "INSERT INTO device_topics (key, topic) VALUES (?1, ?2)", [key, topic])?;
    *room = Some(left - 1);
    Ok(true)
}

const IS_SUBSCRIBED: &str = "SELECT 1 FROM subscriptions WHERE topic = ?1 AND key = ?2";
const TOPIC_COUNT: &str = "SELECT count(*) FROM device_topics WHERE key = ?1";

fn topic_count(connection: &Connection, key: i64) -> Done<i64> {
    Ok(one(connection, TOPIC_COUNT, [key], |row| Ok(row.get(0)?))?.unwrap_or(0))
}

/// Changes how many devices a topic has.
pub(super) fn count(connection: &Connection, topic: i64, change: i64) -> Done<()> {
    let sql = "UPDATE topics SET device_count = device_count + ?2 WHERE no = ?1";
    if change == 0 { Ok(()) } else { run(connection, sql, [topic, change]).map(drop) }
}

/// Takes a device out of all its topics.
pub(super) fn drop_device(connection: &Connection, key: i64) -> Done<()> {
    let topics =
        all(connection, "SELECT topic FROM device_topics WHERE key = ?1", [key], |row| Ok(row.get(0)?))?;
    for topic in topics {
        take(connection, topic, key)?;
        count(connection, topic, -1)?;
    }
    Ok(())
}

fn take(connection: &Connection, topic: i64, key: i64) -> Done<bool> {
    run(connection, "DELETE FROM device_topics WHERE key = ?1 AND topic = ?2", [key, topic])?;
    Ok(run(connection, "DELETE FROM subscriptions WHERE topic = ?1 AND key = ?2", [topic, key])? > 0)
}

/// A change of many subscriptions, a portion in each transaction.
#[derive(Debug, Clone, Default)]
struct SubscriptionWork {
    sum: SubscriptionChange,
    /// Devices that were looked at.
    upto: usize,
    /// Subscriptions changed by transactions before this one.
    before: u64,
}

impl SubscriptionWork {
    /// Changes the next subscriptions, as far as a portion goes.
    fn go_on(
        &mut self,
        connection: &Connection,
        (app, topic): (AppId, i64),
        devices: &[DeviceId],
        change: fn(&Connection, i64, i64) -> Done<bool>,
    ) -> Done<()> {
        let portion = Portion::begin(connection);
        for device in &devices[self.upto..] {
            let located = app_providers::locate(connection, app, *device)?;
            let changed = located.map(|(_, key)| change(connection, topic, key)).transpose()?;
            self.sum.note_device(*device, changed);
            self.upto += 1;
            portion.note_progress();
            // After the first one, so that each portion gets on.
            if portion.is_over() {
                break;
            }
        }
        Ok(())
    }

    const fn changed_now(&self) -> u64 {
        self.sum.changed - self.before
    }

    fn next(self) -> Self {
        Self { before: self.sum.changed, ..self }
    }
}

/// Refuses to begin when one of many devices has no room for a topic.
fn check_room(connection: &Connection, app: AppId, topic: &TopicName, devices: &[DeviceId]) -> Done<()> {
    let topic = find(connection, app, topic)?;
    let most = limit(TOPICS_PER_DEVICE_MAX_COUNT);
    for device in devices {
        let Some((_, key)) = app_providers::locate(connection, app, *device)? else { continue };
        let is_known = topic.map_or(Ok(false), |topic| exists(connection, IS_SUBSCRIBED, [topic, key]))?;
        if !is_known && topic_count(connection, key)? >= most {
            return Err(too_many());
        }
    }
    Ok(())
}

pub(super) fn too_many() -> SqliteError {
    StoreError::LimitReached(format!("a device has at most {TOPICS_PER_DEVICE_MAX_COUNT} topics")).into()
}

fn summary(row: &Row<'_>) -> Done<TopicSummary> {
    Ok(TopicSummary { name: text(row, 0, TopicName::new)?, device_count: number(row, 1)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations;
    use crate::sqlite::store::register::RegistrationBatch;
    use crate::sqlite::store::registrar::Registrar;
    use rusqlite::StatementStatus;

    #[test]
    fn the_topics_of_a_device_are_counted_once_however_many_it_joins() {
        let connection = Connection::open_in_memory().expect("opened");
        migrations::run(&connection, migrations::STORE).expect("made");
        let name = |no: u32| TopicName::new(format!("topic-{no}")).expect("a name");
        let names: Vec<_> = (0..500).map(name).collect();
        let batch = RegistrationBatch::new(AppId::from_raw(1), &[], Timestamp::from_millis(0));
        let mut registrar = Registrar::new(&connection, &batch).expect("made");
        registrar.subscribe(1 << 40 | 1, &names).expect("subscribed");
        assert_eq!(topic_count(&connection, 1 << 40 | 1).expect("counted"), 500);
        let statement = connection.prepare_cached(TOPIC_COUNT).expect("kept");
        assert_eq!(statement.get_status(StatementStatus::Run), 2, "once by the registrar and once above");
    }
}
