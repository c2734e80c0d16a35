//! Topics and their subscriptions.

use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
use stentor_core::name::TopicName;
use stentor_core::ports::store::{
    Precondition, StoreError, SubscriptionAction, SubscriptionChange, TopicStore,
};
use stentor_core::time::Timestamp;
use stentor_core::topic::TopicSummary;

use super::{app_providers, retained};
use crate::sql::{
    Connection, Done, Portion, RemovedKind, Row, SqlEngine, SqlError, SqlStore, all, damaged, exists, int,
    limit, missing, number, one, params, readable, run, text,
};

/// The largest number of devices that are subscribed without a check of their room beforehand.
const UNCHECKED_MAX_COUNT: usize = 64;

#[async_trait]
impl<E: SqlEngine> TopicStore for SqlStore<E> {
    async fn change_subscriptions(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
        action: SubscriptionAction,
    ) -> Result<SubscriptionChange, StoreError> {
        let devices: Arc<[DeviceId]> = devices.into();
        // A committed portion stays, so the room of all devices is checked before the first one.
        if action == SubscriptionAction::Subscribe && devices.len() > UNCHECKED_MAX_COUNT {
            let (topic, devices) = (topic.clone(), Arc::clone(&devices));
            self.read_long(move |connection| check_room(connection, app, &topic, &devices)).await?;
        }
        let mut work = SubscriptionWork::default();
        loop {
            let (topic, devices) = (topic.clone(), Arc::clone(&devices));
            let done = self.write_registry(move |connection| {
                // The work may be done several times: each begins where the last commit ended.
                let mut work = work.clone();
                let no = match action {
                    SubscriptionAction::Subscribe => {
                        app_providers::check_app(connection, app)?;
                        ensure(connection, app, &topic)?
                    }
                    SubscriptionAction::Unsubscribe => {
                        find(connection, app, &topic)?.ok_or(missing("topic"))?
                    }
                };
                work.go_on(connection, app, no, &devices, action)?;
                let is_over = work.upto >= devices.len();
                Ok((work, is_over))
            });
            let (after, is_over) = done.await?;
            if is_over {
                return Ok(after.sum);
            }
            work = after.next();
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
            let rows = (sql, params![int(app.raw()), &after]);
            Ok(readable(connection, "topics", rows, count, summary)?.0)
        })
        .await
    }

    async fn topic(&self, app: AppId, topic: &TopicName) -> Result<TopicSummary, StoreError> {
        let topic = topic.clone();
        self.read(move |connection| show(connection, app, &topic)).await
    }

    async fn topics_of(&self, app: AppId, device: DeviceId) -> Result<Vec<TopicName>, StoreError> {
        self.read(move |connection| {
            let (_, key) = app_providers::require(connection, app, device)?;
            let sql = "SELECT t.name FROM subscriptions d JOIN topics t ON t.no = d.topic WHERE d.key = ?1 ORDER BY t.name";
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

/// Removes a topic of which the precondition holds.
pub(crate) fn remove(
    connection: &Connection,
    app: AppId,
    topic: &TopicName,
    precondition: &Precondition<TopicSummary>,
) -> Done<()> {
    precondition.check(|| show(connection, app, topic).map(Some))?;
    let no = find(connection, app, topic)?.ok_or(missing("topic"))?;
    run(connection, "DELETE FROM topics WHERE no = ?1", [no])?;
    // In the transaction that deletes the name: otherwise the remaining subscriptions could not be found.
    connection.begin_removal(RemovedKind::Topic, no, &Portion::begin(connection))
}

/// Removes a topic without subscribers and without a last state.
pub(crate) fn remove_unused(
    connection: &Connection,
    app: AppId,
    topic: &TopicName,
    now: Timestamp,
) -> Done<()> {
    if retained::newest(connection, app, topic, now)?.is_some() {
        return Ok(());
    }
    let sql = "DELETE FROM topics WHERE app = ?1 AND name = ?2 AND device_count = 0
        AND NOT EXISTS (SELECT 1 FROM subscriptions WHERE topic = topics.no)";
    run(connection, sql, params![int(app.raw()), topic.as_str()]).map(drop)
}

/// Finds a topic's number.
pub(crate) fn find(connection: &Connection, app: AppId, topic: &TopicName) -> Done<Option<i64>> {
    let sql = "SELECT no FROM topics WHERE app = ?1 AND name = ?2";
    one(connection, sql, params![int(app.raw()), topic.as_str()], |row| row.get(0))
}

/// Finds a topic or makes it.
pub(crate) fn ensure(connection: &Connection, app: AppId, topic: &TopicName) -> Done<i64> {
    if let Some(no) = find(connection, app, topic)? {
        return Ok(no);
    }
    let sql = "INSERT INTO topics (app, name, device_count) VALUES (?1, ?2, 0) RETURNING no";
    let made = one(connection, sql, params![int(app.raw()), topic.as_str()], |row| row.get(0))?;
    made.ok_or_else(|| damaged("a topic without a number"))
}

/// Subscribes one device; returns true if it was not before. The topic's count is the caller's to change.
pub(crate) fn add(connection: &Connection, topic: i64, key: i64) -> Done<bool> {
    let sql = "INSERT INTO subscriptions (topic, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    let is_new = run(connection, sql, [topic, key])? > 0;
    // Counted with the new one: one too many undoes the transaction.
    if is_new && topic_count(connection, key)? > limit(TOPICS_PER_DEVICE_MAX_COUNT) {
        return Err(too_many());
    }
    Ok(is_new)
}

pub(crate) const IS_SUBSCRIBED: &str = "SELECT 1 FROM subscriptions WHERE topic = ?1 AND key = ?2";
pub(crate) const TOPIC_COUNT: &str = "SELECT count(*) FROM subscriptions WHERE key = ?1";

/// Counts the topics of a device.
pub(crate) fn topic_count(connection: &Connection, key: i64) -> Done<i64> {
    Ok(one(connection, TOPIC_COUNT, [key], |row| row.get(0))?.unwrap_or(0))
}

/// Changes the device count of a topic.
pub(crate) fn count(connection: &Connection, topic: i64, change: i64) -> Done<()> {
    let sql = "UPDATE topics SET device_count = device_count + ?2 WHERE no = ?1";
    if change == 0 { Ok(()) } else { run(connection, sql, [topic, change]).map(drop) }
}

/// Takes a device out of all its topics.
pub(crate) fn drop_device(connection: &Connection, key: i64) -> Done<()> {
    let topics = all(connection, "SELECT topic FROM subscriptions WHERE key = ?1", [key], |row| row.get(0))?;
    for topic in topics {
        take(connection, topic, key)?;
        count(connection, topic, -1)?;
    }
    Ok(())
}

/// Subscribes a device to all topics of another one, which leaves them.
pub(crate) fn move_all(connection: &Connection, from: i64, to: i64) -> Done<()> {
    let topics = all(connection, "SELECT topic FROM subscriptions WHERE key = ?1", [from], |row| row.get(0))?;
    for topic in topics {
        let is_new = add(connection, topic, to)?;
        take(connection, topic, from)?;
        count(connection, topic, if is_new { 0 } else { -1 })?;
    }
    Ok(())
}

fn take(connection: &Connection, topic: i64, key: i64) -> Done<bool> {
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
        app: AppId,
        topic: i64,
        devices: &[DeviceId],
        action: SubscriptionAction,
    ) -> Done<()> {
        let (change, sign) = match action {
            SubscriptionAction::Subscribe => (add as fn(&Connection, i64, i64) -> Done<bool>, 1),
            SubscriptionAction::Unsubscribe => (take as _, -1),
        };
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
        // Counts the changes of this portion only: earlier portions have counted theirs.
        count(connection, topic, sign * int(self.sum.changed - self.before))
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

pub(crate) fn too_many() -> SqlError {
    StoreError::LimitReached(format!("a device has at most {TOPICS_PER_DEVICE_MAX_COUNT} topics")).into()
}

fn summary(row: &Row<'_>) -> Done<TopicSummary> {
    Ok(TopicSummary { name: text(row, 0, TopicName::new)?, device_count: number(row, 1)? })
}
