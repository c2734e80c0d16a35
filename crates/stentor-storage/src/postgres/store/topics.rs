use std::collections::BTreeMap;
use std::sync::Arc;

use crate::postgres::engine::{Connection, Row, Value, params};
use async_trait::async_trait;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
use stentor_core::name::TopicName;
use stentor_core::ports::store::{Precondition, StoreError, SubscriptionChange, TopicStore};
use stentor_core::time::Timestamp;
use stentor_core::topic::TopicSummary;

use super::leftovers::{PendingRemoval, PendingRemovalKind};
use super::{PostgresStore, app_providers, retained};
use crate::postgres::damage::readable;
use crate::postgres::fault::{Done, PostgresError, damaged, missing};
use crate::postgres::portion::WorkPortion;
use crate::postgres::query::{all, exists, limit, one, run};
use crate::postgres::row::{int, number, text};

/// So many devices are subscribed at once; whether more have room is looked at before.
const UNCHECKED_MAX_COUNT: usize = 64;

#[async_trait]
impl TopicStore for PostgresStore {
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
        let mut change = SubscriptionSteps::default();
        loop {
            let (topic, devices) = (topic.clone(), Arc::clone(&devices));
            let done = self.write_registry(move |connection| {
                app_providers::check_app(connection, app)?;
                let no = ensure(connection, app, &topic)?;
                // The work may be done several times: each begins where the last commit ended.
                let mut change = change.clone();
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
        let mut change = SubscriptionSteps::default();
        loop {
            let (topic, devices) = (topic.clone(), Arc::clone(&devices));
            let done = self.write_registry(move |connection| {
                let no = find(connection, app, &topic)?.ok_or(missing("topic"))?;
                // The work may be done several times: each begins where the last commit ended.
                let mut change = change.clone();
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
            let sql = "SELECT name, device_count FROM topics WHERE app = $1 AND name > $2 ORDER BY name";
            let rows = (sql, params![int(app.raw()), after.as_str()]);
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
        self.write_registry(move |connection| {
            precondition.check(|| show(connection, app, &topic).map(Some))?;
            let no = find(connection, app, &topic)?.ok_or(missing("topic"))?;
            run(connection, "DELETE FROM topics WHERE no = $1", [no])?;
            PendingRemoval::of(PendingRemovalKind::Topic, no)
                .begin(connection, &WorkPortion::begin(connection))
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
        self.write_registry(move |connection| {
            topics.iter().try_fold(0, |gone, topic| Ok(gone + remove_unused(connection, app, topic, now)?))
        })
        .await
    }

    async fn topics_of(&self, app: AppId, device: DeviceId) -> Result<Vec<TopicName>, StoreError> {
        self.read(move |connection| {
            let (_, key) = app_providers::require(connection, app, device)?;
            let sql = "SELECT t.name FROM subscriptions d JOIN topics t ON t.no = d.topic WHERE d.key = $1 ORDER BY t.name";
            let name = |row: &Row<'_>| text(row, 0, TopicName::new);
            Ok(readable(connection, "topics", (sql, [key]), usize::MAX, name)?.0)
        })
        .await
    }
}

fn show(connection: &Connection, app: AppId, topic: &TopicName) -> Done<TopicSummary> {
    let sql = "SELECT name, device_count FROM topics WHERE app = $1 AND name = $2";
    one(connection, sql, params![int(app.raw()), topic.as_str()], summary)?.ok_or(missing("topic"))
}

/// Removes a topic that nobody is subscribed to and that has no last state.
fn remove_unused(connection: &Connection, app: AppId, topic: &TopicName, now: Timestamp) -> Done<u64> {
    if retained::newest(connection, app, topic, now)?.is_some() {
        return Ok(0);
    }
    let sql = "DELETE FROM topics WHERE app = $1 AND name = $2 AND device_count = 0
        AND NOT EXISTS (SELECT 1 FROM subscriptions WHERE topic = topics.no)";
    Ok(run(connection, sql, params![int(app.raw()), topic.as_str()])? as u64)
}

/// Finds a topic's number.
pub(super) fn find(connection: &Connection, app: AppId, topic: &TopicName) -> Done<Option<i64>> {
    let sql = "SELECT no FROM topics WHERE app = $1 AND name = $2";
    one(connection, sql, params![int(app.raw()), topic.as_str()], |row| row.get(0))
}

/// Finds a topic or makes it.
pub(super) fn ensure(connection: &Connection, app: AppId, topic: &TopicName) -> Done<i64> {
    if let Some(no) = find(connection, app, topic)? {
        return Ok(no);
    }
    let sql = "INSERT INTO topics (app, name, device_count) VALUES ($1, $2, 0) RETURNING no";
    let made = one(connection, sql, params![int(app.raw()), topic.as_str()], |row| row.get(0))?;
    made.ok_or_else(|| damaged("a topic without a number"))
}

/// Returns the numbers of topics in their order; those that are not there are made.
pub(super) fn ensure_all(connection: &Connection, app: AppId, names: &[&TopicName]) -> Done<Vec<i64>> {
    let texts = Value::Texts(names.iter().map(|name| Some(name.as_str().to_owned())).collect());
    let sql = "INSERT INTO topics (app, name, device_count) SELECT $1, name, 0 FROM unnest($2::text[]) name
        WHERE NOT EXISTS (SELECT 1 FROM topics WHERE app = $1 AND topics.name = name.name) ON CONFLICT DO NOTHING";
    run(connection, sql, params![int(app.raw()), texts.clone()])?;
    let sql = "SELECT t.no FROM unnest($2::text[]) WITH ORDINALITY given (name, at)
        JOIN topics t ON t.app = $1 AND t.name = given.name ORDER BY given.at";
    all(connection, sql, params![int(app.raw()), texts], |row| row.get(0))
}

/// Subscribes a device to topics; returns those that it was not subscribed to. The topics' counts are the caller's to change.
pub(super) fn add_all(connection: &Connection, topics: Vec<i64>, key: i64) -> Done<Vec<i64>> {
    let sql = "INSERT INTO subscriptions (topic, key) SELECT topic, $2 FROM unnest($1::bigint[]) topic
        ON CONFLICT DO NOTHING RETURNING topic";
    let added: Vec<i64> = all(connection, sql, params![topics, key], |row| row.get(0))?;
    // Counted with the new ones: one too many undoes the transaction.
    if !added.is_empty() && topic_count(connection, key)? > limit(TOPICS_PER_DEVICE_MAX_COUNT) {
        return Err(too_many());
    }
    Ok(added)
}

/// Changes how many devices topics have.
pub(super) fn count_all(connection: &Connection, changes: &BTreeMap<i64, i64>) -> Done<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE topics SET device_count = device_count + given.change
        FROM unnest($1::bigint[], $2::bigint[]) given (no, change) WHERE topics.no = given.no";
    let (numbers, changes): (Vec<i64>, Vec<i64>) = changes.iter().map(|(no, change)| (*no, *change)).unzip();
    run(connection, sql, params![numbers, changes]).map(drop)
}

/// Subscribes one device; returns whether it was not before. The topic's count is the caller's to change.
fn add(connection: &Connection, topic: i64, key: i64) -> Done<bool> {
    Ok(!add_all(connection, vec![topic], key)?.is_empty())
}

const IS_SUBSCRIBED: &str = "SELECT 1 FROM subscriptions WHERE topic = $1 AND key = $2";
const TOPIC_COUNT: &str = "SELECT count(*) FROM subscriptions WHERE key = $1";

fn topic_count(connection: &Connection, key: i64) -> Done<i64> {
    Ok(one(connection, TOPIC_COUNT, [key], |row| row.get(0))?.unwrap_or(0))
}

/// Changes how many devices a topic has.
pub(super) fn count(connection: &Connection, topic: i64, change: i64) -> Done<()> {
    let sql = "UPDATE topics SET device_count = device_count + $2 WHERE no = $1";
    if change == 0 { Ok(()) } else { run(connection, sql, [topic, change]).map(drop) }
}

/// Takes a device out of all its topics.
pub(super) fn drop_device(connection: &Connection, key: i64) -> Done<()> {
    let topics = all(connection, "SELECT topic FROM subscriptions WHERE key = $1", [key], |row| row.get(0))?;
    for topic in topics {
        take(connection, topic, key)?;
        count(connection, topic, -1)?;
    }
    Ok(())
}

fn take(connection: &Connection, topic: i64, key: i64) -> Done<bool> {
    Ok(run(connection, "DELETE FROM subscriptions WHERE topic = $1 AND key = $2", [topic, key])? > 0)
}

/// A change of many subscriptions, a portion in each transaction.
#[derive(Debug, Clone, Default)]
struct SubscriptionSteps {
    sum: SubscriptionChange,
    /// Devices that were looked at.
    upto: usize,
    /// Subscriptions changed by transactions before this one.
    before: u64,
}

impl SubscriptionSteps {
    /// Changes the next subscriptions, as far as a portion goes.
    fn go_on(
        &mut self,
        connection: &Connection,
        (app, topic): (AppId, i64),
        devices: &[DeviceId],
        change: fn(&Connection, i64, i64) -> Done<bool>,
    ) -> Done<()> {
        let portion = WorkPortion::begin(connection);
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

pub(super) fn too_many() -> PostgresError {
    StoreError::LimitReached(format!("a device has at most {TOPICS_PER_DEVICE_MAX_COUNT} topics")).into()
}

fn summary(row: &Row<'_>) -> Done<TopicSummary> {
    Ok(TopicSummary { name: text(row, 0, TopicName::new)?, device_count: number(row, 1)? })
}
