//! Messages of devices to their apps, channels of programs, and tokens that were replaced.

use std::collections::BTreeSet;

use async_trait::async_trait;
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, DeviceId, UpstreamId};
use stentor_core::limits::{
    CHANNELS_PER_AGENT_MAX_COUNT, UPSTREAM_DEAD_PER_DEVICE_MAX_COUNT, UPSTREAM_PER_DEVICE_MAX_COUNT,
};
use stentor_core::ports::store::{Channel, Page, StoreError, UpstreamChange, UpstreamStore};
use stentor_core::time::Timestamp;
use stentor_core::upstream::{UpstreamKind, UpstreamMessage, UpstreamWebhook};

use super::{app_providers, offered_tokens, sequences, webhooks};
use crate::sql::{
    Connection, Done, EngineParts as _, Row, Sql as _, SqlEngine, SqlStore, all, code, exists, int, limit,
    number, one, params, readable, run, text, time,
};
use crate::texts::check_texts;

pub(crate) const COLUMNS: &str = "id, app, device, key, body, created_at, expires_at, attempts, kind";
/// The condition for waiting rows; the partial indexes have the same text.
pub(crate) const WAITS: &str = "settled_at IS NULL AND dead_reason IS NULL";
/// The condition for messages sent by devices themselves.
pub(crate) const OF_MESSAGES: &str = "kind = 0";

#[async_trait]
impl<E: SqlEngine> UpstreamStore for SqlStore<E> {
    async fn keep_upstream(&self, messages: Vec<UpstreamMessage>) -> Result<Vec<bool>, StoreError> {
        for message in &messages {
            check_texts(&[&message.key, &message.body])?;
        }
        // A device waits for it.
        self.write_registry_first(move |connection| {
            messages.iter().map(|one| keep(connection, one)).collect()
        })
        .await
    }

    async fn waiting_upstream(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError> {
        self.read(move |connection| waiting(connection, app, page, false, now)).await
    }

    async fn waiting_upstream_and_receipts(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError> {
        self.read(move |connection| waiting(connection, app, page, true, now)).await
    }

    async fn free_upstream(
        &self,
        app: AppId,
        page: Page,
        with_receipts: bool,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError> {
        self.read(move |connection| connection.free_upstream(app, page, with_receipts, now)).await
    }

    async fn claim_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Result<Vec<UpstreamId>, StoreError> {
        let asked = ids.to_vec();
        if self.inner.own_node().is_some() {
            return self.write_registry(move |connection| connection.claim_upstream(app, &asked)).await;
        }
        // A single server has no rival for the claim: only the attempt is counted.
        self.note_upstream_attempt(app, ids).await?;
        Ok(asked)
    }

    async fn let_go_of_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Result<(), StoreError> {
        if self.inner.own_node().is_none() {
            return Ok(());
        }
        let ids = ids.to_vec();
        self.write_registry(move |connection| connection.let_go_of_upstream(app, &ids)).await
    }

    async fn note_upstream_attempt(&self, app: AppId, ids: &[UpstreamId]) -> Result<(), StoreError> {
        let ids = ids.to_vec();
        let sql = "UPDATE upstream SET attempts = attempts + 1 WHERE app = ?1 AND id = ?2";
        self.write_registry(move |connection| {
            ids.iter().try_for_each(|id| run(connection, sql, [int(app.raw()), int(id.raw())]).map(drop))
        })
        .await
    }

    async fn settle_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        now: Timestamp,
    ) -> Result<UpstreamChange, StoreError> {
        let ids = ids.to_vec();
        self.write_registry_first(move |connection| {
            let is_named = connection.dialect().is_in("id", 2);
            let sql = format!(
                "UPDATE upstream SET settled_at = ?3 WHERE {WAITS} AND app = ?1 AND {is_named} RETURNING id"
            );
            change_all(connection, app, &ids, (&sql, now), "settled_at IS NOT NULL")
        })
        .await
    }

    async fn bury_upstream(&self, app: AppId, id: UpstreamId, reason: &str) -> Result<(), StoreError> {
        check_texts(&[reason])?;
        let reason = reason.to_owned();
        self.write_registry(move |connection| {
            let sql = format!("UPDATE upstream SET dead_reason = ?3 WHERE {WAITS} AND app = ?1 AND id = ?2");
            run(connection, &sql, params![int(app.raw()), int(id.raw()), reason.as_str()])?;
            forget_older_dead(connection, id)
        })
        .await
    }

    async fn dead_upstream(
        &self,
        app: AppId,
        page: Page,
    ) -> Result<Vec<(UpstreamMessage, String)>, StoreError> {
        self.read(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS}, dead_reason FROM upstream WHERE dead_reason IS NOT NULL AND app = ?1 AND id > ?2
                ORDER BY id"
            );
            let read = |row: &Row<'_>| Ok((read(row)?, text(row, 9, Ok)?));
            let values = [int(app.raw()), int(page.after)];
            Ok(readable(connection, "upstream", (&sql, values), page.limit, read)?.0)
        })
        .await
    }

    async fn revive_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        expires_at: Timestamp,
    ) -> Result<UpstreamChange, StoreError> {
        let ids = ids.to_vec();
        self.write_registry(move |connection| {
            let (is_named, unclaim) = (connection.dialect().is_in("id", 2), connection.dialect().unclaim);
            let sql = format!(
                "UPDATE upstream SET dead_reason = NULL, {unclaim} expires_at = ?3
                WHERE dead_reason IS NOT NULL AND app = ?1 AND {is_named} RETURNING id"
            );
            change_all(connection, app, &ids, (&sql, expires_at), WAITS)
        })
        .await
    }

    async fn prune_upstream(
        &self,
        now: Timestamp,
        dead_before: Timestamp,
        count: usize,
    ) -> Result<u64, StoreError> {
        let sql = "DELETE FROM upstream WHERE id IN (SELECT id FROM upstream WHERE expires_at < ?1
            AND (dead_reason IS NULL OR expires_at < ?2) ORDER BY expires_at LIMIT ?3)";
        self.write_registry(move |connection| {
            let gone = run(connection, sql, [now.as_millis(), dead_before.as_millis(), limit(count)])?;
            Ok(gone as u64)
        })
        .await
    }

    async fn upstream_webhook(&self, app: AppId) -> Result<UpstreamWebhook, StoreError> {
        let vault = self.vault();
        self.read(move |connection| webhooks::of_app(connection, &vault, app)).await
    }

    async fn upstream_webhooks(&self) -> Result<Vec<UpstreamWebhook>, StoreError> {
        let vault = self.vault();
        self.read(move |connection| webhooks::all(connection, &vault)).await
    }

    async fn put_channel(&self, agent: &str, channel: &Channel) -> Result<(), StoreError> {
        check_texts(&[agent, &channel.name])?;
        let (agent, channel) = (agent.to_owned(), channel.clone());
        self.write_registry_first(move |connection| put_channel(connection, &agent, &channel)).await
    }

    async fn channels(&self, agent: &str) -> Result<Vec<Channel>, StoreError> {
        let agent = agent.to_owned();
        self.read(move |connection| {
            let sql = "SELECT name, app, device FROM channels WHERE agent = ?1 ORDER BY name";
            let read = |row: &Row<'_>| {
                let (app, device) = (AppId::from_raw(number(row, 1)?), DeviceId::from_raw(number(row, 2)?));
                Ok(Channel { name: text(row, 0, Ok)?, app, device })
            };
            Ok(readable(connection, "channels", (sql, [agent.as_str()]), CHANNELS_PER_AGENT_MAX_COUNT, read)?
                .0)
        })
        .await
    }

    async fn remove_channel(&self, agent: &str, name: &str) -> Result<bool, StoreError> {
        let (agent, name) = (agent.to_owned(), name.to_owned());
        let sql = "DELETE FROM channels WHERE agent = ?1 AND name = ?2";
        self.write_registry(move |connection| Ok(run(connection, sql, [&agent, &name])? > 0)).await
    }

    async fn offer_token(
        &self,
        app: AppId,
        device: DeviceId,
        token: &PushToken,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let token = token.clone();
        self.write_registry_first(move |connection| {
            offered_tokens::offer(connection, (app, device), &token, now)
        })
        .await
    }

    async fn take_offered_token(
        &self,
        app: AppId,
        token: &PushToken,
        now: Timestamp,
    ) -> Result<Option<DeviceId>, StoreError> {
        let token = token.clone();
        self.write_registry_first(move |connection| {
            let taken = offered_tokens::take(connection, app, &token, now)?;
            if let Some(device) = taken {
                // Disconnects every session that was opened with the former token, on any node.
                connection.cut_off(app, device, ProviderKind::Gateway);
            }
            Ok(taken)
        })
        .await
    }

    async fn replaced_tokens(
        &self,
        app: AppId,
        tokens: &[String],
    ) -> Result<Vec<Option<DeviceId>>, StoreError> {
        let tokens = tokens.to_vec();
        self.read(move |connection| {
            let find = |token: &String| -> Done<Option<DeviceId>> {
                let sql = "SELECT device FROM replaced_tokens WHERE app = ?1 AND token = ?2";
                let read = |row: &Row<'_>| Ok(DeviceId::from_raw(number(row, 0)?));
                let device = one(connection, sql, params![int(app.raw()), token], read)?;
                // The token of a removed device leads to no device.
                Ok(device.filter(|device| app_providers::require(connection, app, *device).is_ok()))
            };
            tokens.iter().map(find).collect()
        })
        .await
    }
}

/// Lists the waiting messages of an app, with or without receipts.
pub(crate) fn waiting(
    connection: &Connection,
    app: AppId,
    page: Page,
    with_receipts: bool,
    now: Timestamp,
) -> Done<Vec<UpstreamMessage>> {
    let kinds = if with_receipts { "TRUE" } else { OF_MESSAGES };
    let sql = format!(
        "SELECT {COLUMNS} FROM upstream WHERE {WAITS} AND app = ?1 AND id > ?2 AND expires_at > ?3 AND {kinds} ORDER BY id"
    );
    let values = params![int(app.raw()), int(page.after), now.as_millis()];
    Ok(readable(connection, "upstream", (&sql, values), page.limit, read)?.0)
}

/// Keeps the newest dead letters of the device that sent a message.
fn forget_older_dead(connection: &Connection, id: UpstreamId) -> Done<()> {
    let sql = format!(
        "DELETE FROM upstream WHERE id IN (SELECT id FROM upstream WHERE dead_reason IS NOT NULL
        AND device = (SELECT device FROM upstream WHERE id = ?1) ORDER BY id DESC LIMIT {} OFFSET ?2)",
        i64::MAX
    );
    run(connection, &sql, [int(id.raw()), limit(UPSTREAM_DEAD_PER_DEVICE_MAX_COUNT)]).map(drop)
}

/// Stores a message of a device; returns true if it is new.
fn keep(connection: &Connection, message: &UpstreamMessage) -> Done<bool> {
    let (device, kind) = (int(message.device.raw()), message.kind.code());
    // Settled rows stay until they expire: a device that repeats its message is answered that it is known.
    let known = "SELECT 1 FROM upstream WHERE device = ?1 AND kind = ?2 AND key = ?3";
    if exists(connection, known, params![device, kind, &message.key])? {
        return Ok(false);
    }
    // A receipt is owed to the sender, so only messages that a device sends itself are counted.
    if message.kind == UpstreamKind::Message {
        check_room(connection, device)?;
    }
    // The row goes when it expires: without this its id might be given again after a start.
    sequences::advance(connection, "id", message.id.raw())?;
    let sql = "INSERT INTO upstream (id, app, device, key, body, created_at, expires_at, kind)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let values = params![
        int(message.id.raw()),
        int(message.app.raw()),
        device,
        &message.key,
        &message.body,
        message.created_at.as_millis(),
        message.expires_at.as_millis(),
        kind,
    ];
    run(connection, sql, values)?;
    Ok(true)
}

/// Refuses one message more of a device than may wait.
fn check_room(connection: &Connection, device: i64) -> Done<()> {
    let sql = format!("SELECT count(*) FROM upstream WHERE {WAITS} AND device = ?1 AND kind = 0");
    let waiting = one(connection, &sql, [device], |row| number(row, 0))?.unwrap_or_default();
    if waiting < UPSTREAM_PER_DEVICE_MAX_COUNT as u64 {
        return Ok(());
    }
    let why = format!("at most {UPSTREAM_PER_DEVICE_MAX_COUNT} messages of a device wait for its app");
    Err(StoreError::LimitReached(why).into())
}

fn put_channel(connection: &Connection, agent: &str, channel: &Channel) -> Done<()> {
    let others = "SELECT count(*) FROM channels WHERE agent = ?1 AND name <> ?2";
    let others = one(connection, others, params![agent, &channel.name], |row| number(row, 0))?;
    if others.unwrap_or_default() >= CHANNELS_PER_AGENT_MAX_COUNT as u64 {
        let why = format!("at most {CHANNELS_PER_AGENT_MAX_COUNT} registrations through one connection");
        return Err(StoreError::LimitReached(why).into());
    }
    let sql = "INSERT INTO channels (agent, name, app, device) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (agent, name) DO UPDATE SET app = excluded.app, device = excluded.device";
    let values = params![agent, &channel.name, int(channel.app.raw()), int(channel.device.raw())];
    run(connection, sql, values).map(drop)
}

/// Changes the rows that were named by a statement with a time that returns their ids; those for which `done` holds were changed
/// before. Two statements however many there are: each costs the way to the database and back.
fn change_all(
    connection: &Connection,
    app: AppId,
    ids: &[UpstreamId],
    (sql, at): (&str, Timestamp),
    done: &str,
) -> Done<UpstreamChange> {
    let raw: Vec<i64> = ids.iter().map(|id| int(id.raw())).collect();
    let (id, app) = (|row: &Row<'_>| Ok(UpstreamId::from_raw(number(row, 0)?)), int(app.raw()));
    let changed = all(connection, sql, params![app, raw.clone(), at.as_millis()], id)?;
    let is_named = connection.dialect().is_in("id", 2);
    let sql = format!("SELECT id FROM upstream WHERE {done} AND app = ?1 AND {is_named}");
    let done: BTreeSet<_> = all(connection, &sql, params![app, raw], id)?.into_iter().collect();
    let mut news: BTreeSet<_> = changed.into_iter().collect();
    let mut change = UpstreamChange::default();
    for id in ids {
        // One that is named twice is news once.
        let is_news = news.remove(id);
        change.note(*id, (is_news || done.contains(id)).then_some(is_news));
    }
    Ok(change)
}

/// Reads a message.
pub(crate) fn read(row: &Row<'_>) -> Done<UpstreamMessage> {
    Ok(UpstreamMessage {
        id: UpstreamId::from_raw(number(row, 0)?),
        app: AppId::from_raw(number(row, 1)?),
        device: DeviceId::from_raw(number(row, 2)?),
        key: text(row, 3, Ok)?,
        body: text(row, 4, Ok)?,
        created_at: time(row, 5)?,
        expires_at: time(row, 6)?,
        attempts: u32::try_from(number(row, 7)?).unwrap_or(u32::MAX),
        kind: code(row, 8, UpstreamKind::from_code)?,
    })
}
