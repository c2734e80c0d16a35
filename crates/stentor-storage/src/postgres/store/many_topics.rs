//! Topics of many devices at once.

use std::collections::BTreeMap;

use stentor_core::id::AppId;
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
use stentor_core::name::TopicName;

use super::topics::{too_many, topic_count};
use crate::postgres::engine::Connection;
use crate::sql::{Done, Value, all, int, limit, params, run};

/// Returns the numbers of topics in their order; missing topics are created.
pub(super) fn ensure_all(connection: &Connection, app: AppId, names: &[&TopicName]) -> Done<Vec<i64>> {
    let texts = Value::Texts(names.iter().map(|name| Some(name.as_str().to_owned())).collect());
    let sql = "INSERT INTO topics (app, name, device_count) SELECT $1, name, 0 FROM unnest($2::text[]) name
        WHERE NOT EXISTS (SELECT 1 FROM topics WHERE app = $1 AND topics.name = name.name) ON CONFLICT DO NOTHING";
    run(connection, sql, params![int(app.raw()), texts.clone()])?;
    let sql = "SELECT t.no FROM unnest($2::text[]) WITH ORDINALITY given (name, at)
        JOIN topics t ON t.app = $1 AND t.name = given.name ORDER BY given.at";
    all(connection, sql, params![int(app.raw()), texts], |row| row.get(0))
}

/// Subscribes a device to topics; returns the new ones. The caller updates the topics' counts.
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

/// Changes the device counts of topics.
pub(super) fn count_all(connection: &Connection, changes: &BTreeMap<i64, i64>) -> Done<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE topics SET device_count = device_count + given.change
        FROM unnest($1::bigint[], $2::bigint[]) given (no, change) WHERE topics.no = given.no";
    let (numbers, changes): (Vec<i64>, Vec<i64>) = changes.iter().map(|(no, change)| (*no, *change)).unzip();
    run(connection, sql, params![numbers, changes]).map(drop)
}
