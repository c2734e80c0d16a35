//! Messages of devices to their apps, channels of programs, and tokens that were replaced.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, DeviceId, UpstreamId};
use stentor_core::limits::{
    CHANNELS_PER_AGENT_MAX_COUNT, UPSTREAM_DEAD_PER_DEVICE_MAX_COUNT, UPSTREAM_PER_DEVICE_MAX_COUNT,
};
use stentor_core::ports::store::{
    Channel, ChannelChange, Page, StoreError, UpstreamAction, UpstreamChange, UpstreamFilter, UpstreamStore,
};
use stentor_core::time::Timestamp;
use stentor_core::upstream::{UpstreamKind, UpstreamMessage, UpstreamWebhook};

use super::{app_providers, offered_tokens, sequences, webhooks};
use crate::sql::{
    Connection, Done, EngineParts as _, Row, SqlEngine, SqlStore, Value, all, code, exists, int, limit,
    maybe_text, number, one, params, readable, run, text, time,
};
use crate::texts::check_texts;

const COLUMNS: &str = "id, app, device, key, body, created_at, expires_at, attempts, kind, dead_reason";
/// The condition for waiting rows; the partial indexes have the same text.
pub(crate) const WAITS: &str = "settled_at IS NULL AND dead_reason IS NULL";
const IS_SETTLED: &str = "settled_at IS NOT NULL";
const IS_DEAD: &str = "dead_reason IS NOT NULL";
/// The condition for messages sent by devices themselves.
const OF_MESSAGES: &str = "kind = 0";

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

    async fn upstream(
        &self,
        app: AppId,
        filter: UpstreamFilter,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError> {
        self.read(move |connection| list(connection, app, filter, page, now)).await
    }

    async fn claim_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Result<Vec<UpstreamId>, StoreError> {
        let ids = ids.to_vec();
        if self.inner.own_node().is_some() {
            return self.write_registry(move |connection| connection.claim_upstream(app, &ids)).await;
        }
        // A single server has no rival for the claim: only the attempt is counted.
        self.change_upstream(app, &ids, UpstreamAction::NoteAttempt).await?;
        Ok(ids)
    }

    async fn change_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        action: UpstreamAction,
    ) -> Result<UpstreamChange, StoreError> {
        match &action {
            // A single server has claimed nothing.
            UpstreamAction::Release if self.inner.own_node().is_none() => {
                return Ok(UpstreamChange::default());
            }
            UpstreamAction::Bury { reason } => check_texts(&[reason])?,
            _ => {}
        }
        let (ids, is_urgent) = (ids.to_vec(), matches!(action, UpstreamAction::Settle { .. }));
        let work = move |connection: &E::Connection| change(connection, app, &ids, &action);
        if is_urgent { self.write_registry_first(work).await } else { self.write_registry(work).await }
    }

    async fn upstream_webhook(&self, app: AppId) -> Result<UpstreamWebhook, StoreError> {
        let vault = self.vault();
        self.read(move |connection| webhooks::of_app(connection, &vault, app)).await
    }

    async fn upstream_webhooks(&self) -> Result<Vec<UpstreamWebhook>, StoreError> {
        let vault = self.vault();
        self.read(move |connection| webhooks::all(connection, &vault)).await
    }

    async fn change_channel(&self, agent: &str, change: ChannelChange) -> Result<bool, StoreError> {
        let agent = agent.to_owned();
        match change {
            ChannelChange::Put(channel) => {
                check_texts(&[&agent, &channel.name])?;
                self.write_registry_first(move |connection| put_channel(connection, &agent, &channel)).await
            }
            ChannelChange::Remove(name) => {
                let sql = "DELETE FROM channels WHERE agent = ?1 AND name = ?2";
                self.write_registry(move |connection| Ok(run(connection, sql, [&agent, &name])? > 0)).await
            }
        }
    }

    async fn channels(&self, agents: &[String]) -> Result<Vec<Vec<Channel>>, StoreError> {
        let agents = agents.to_vec();
        self.read(move |connection| channels(connection, &agents)).await
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
            offered_tokens::offer(connection, app, device, &token, now)
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

fn channels(connection: &Connection, agents: &[String]) -> Done<Vec<Vec<Channel>>> {
    let is_asked = connection.dialect().is_in("agent", 1);
    let sql = format!("SELECT agent, name, app, device FROM channels WHERE {is_asked} ORDER BY agent, name");
    let read = |row: &Row<'_>| {
        let (app, device) = (AppId::from_raw(number(row, 2)?), DeviceId::from_raw(number(row, 3)?));
        Ok((row.get::<String>(0)?, Channel { name: text(row, 1, Ok)?, app, device }))
    };
    let asked = vec![Value::texts(agents, |agent| Some(agent.clone()))];
    let max = CHANNELS_PER_AGENT_MAX_COUNT * agents.len();
    let mut of_agents: HashMap<String, Vec<Channel>> = HashMap::new();
    for (agent, channel) in readable(connection, "channels", (&sql, asked), max, read)?.0 {
        of_agents.entry(agent).or_default().push(channel);
    }
    Ok(agents.iter().map(|agent| of_agents.get(agent).cloned().unwrap_or_default()).collect())
}

fn list(
    connection: &Connection,
    app: AppId,
    filter: UpstreamFilter,
    page: Page,
    now: Timestamp,
) -> Done<Vec<UpstreamMessage>> {
    let is_waiting = format!("{WAITS} AND expires_at > ?3");
    let mut values: Vec<Value<'_>> = vec![int(app.raw()).into(), int(page.after).into()];
    let condition = match filter {
        UpstreamFilter::Waiting => format!("{is_waiting} AND {OF_MESSAGES}"),
        UpstreamFilter::WaitingAndReceipts => is_waiting,
        UpstreamFilter::Free { with_receipts } => {
            let kinds = if with_receipts { "TRUE" } else { OF_MESSAGES };
            format!("{is_waiting} AND {kinds} AND {}", connection.is_free_upstream())
        }
        UpstreamFilter::Dead => IS_DEAD.to_owned(),
    };
    if filter != UpstreamFilter::Dead {
        values.push(now.as_millis().into());
    }
    let sql =
        format!("SELECT {COLUMNS} FROM upstream WHERE {condition} AND app = ?1 AND id > ?2 ORDER BY id");
    Ok(readable(connection, "upstream", (&sql, values), page.limit, read)?.0)
}

fn change(
    connection: &Connection,
    app: AppId,
    ids: &[UpstreamId],
    action: &UpstreamAction,
) -> Done<UpstreamChange> {
    let revived = format!("dead_reason = NULL, {} expires_at = ?3", connection.dialect().unclaim);
    let action = match action {
        UpstreamAction::NoteAttempt => {
            RowAction { set: "attempts = attempts + ?3", value: 1_i64.into(), of: "TRUE", done: "FALSE" }
        }
        UpstreamAction::Release => {
            let changed = connection.release_upstream(app, ids)?;
            return Ok(UpstreamChange { changed, ..UpstreamChange::default() });
        }
        UpstreamAction::Settle { now } => {
            RowAction { set: "settled_at = ?3", value: now.as_millis().into(), of: WAITS, done: IS_SETTLED }
        }
        UpstreamAction::Bury { reason } => {
            RowAction { set: "dead_reason = ?3", value: reason.into(), of: WAITS, done: IS_DEAD }
        }
        UpstreamAction::Revive { expires_at } => {
            RowAction { set: &revived, value: expires_at.as_millis().into(), of: IS_DEAD, done: WAITS }
        }
    };
    let change = change_all(connection, app, ids, &action)?;
    if action.done == IS_DEAD {
        ids.iter().try_for_each(|id| forget_older_dead(connection, *id))?;
    }
    Ok(change)
}

/// An action on rows of messages.
struct RowAction<'a> {
    /// The assignment of a value.
    set: &'a str,
    value: Value<'a>,
    /// The condition for rows that are changed.
    of: &'a str,
    /// The condition for rows that were changed before.
    done: &'a str,
}

/// Deletes expired messages, and dead letters that expired before another instant; returns their number.
pub(crate) fn prune(connection: &Connection, expired: Timestamp, dead: Timestamp, count: usize) -> Done<u64> {
    let sql = "DELETE FROM upstream WHERE id IN (SELECT id FROM upstream WHERE expires_at < ?1
        AND (dead_reason IS NULL OR expires_at < ?2) ORDER BY expires_at LIMIT ?3)";
    Ok(run(connection, sql, [expired.as_millis(), dead.as_millis(), limit(count)])? as u64)
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

fn put_channel(connection: &Connection, agent: &str, channel: &Channel) -> Done<bool> {
    let others = "SELECT count(*) FROM channels WHERE agent = ?1 AND name <> ?2";
    let others = one(connection, others, params![agent, &channel.name], |row| number(row, 0))?;
    if others.unwrap_or_default() >= CHANNELS_PER_AGENT_MAX_COUNT as u64 {
        let why = format!("at most {CHANNELS_PER_AGENT_MAX_COUNT} registrations through one connection");
        return Err(StoreError::LimitReached(why).into());
    }
    let sql = "INSERT INTO channels (agent, name, app, device) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (agent, name) DO UPDATE SET app = excluded.app, device = excluded.device";
    let values = params![agent, &channel.name, int(channel.app.raw()), int(channel.device.raw())];
    Ok(run(connection, sql, values)? > 0)
}

/// Performs an action on the named rows, by two statements however many rows there are: each costs the way to the database and back.
fn change_all(
    connection: &Connection,
    app: AppId,
    ids: &[UpstreamId],
    RowAction { set, value, of, done }: &RowAction<'_>,
) -> Done<UpstreamChange> {
    let raw: Vec<i64> = ids.iter().map(|id| int(id.raw())).collect();
    let (id, app) = (|row: &Row<'_>| Ok(UpstreamId::from_raw(number(row, 0)?)), int(app.raw()));
    let are_named = format!("app = ?1 AND {}", connection.dialect().is_in("id", 2));
    let sql = format!("UPDATE upstream SET {set} WHERE {of} AND {are_named} RETURNING id");
    let changed = all(connection, &sql, params![app, raw.clone(), value.clone()], id)?;
    let sql = format!("SELECT id FROM upstream WHERE {done} AND {are_named}");
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

fn read(row: &Row<'_>) -> Done<UpstreamMessage> {
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
        dead_reason: maybe_text(row, 9, Ok)?,
    })
}
