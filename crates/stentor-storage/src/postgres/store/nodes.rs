//! The nodes that share the database: their liveness by heartbeats, and the election of the one that fires schedules.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::postgres::engine::Connection;
use async_trait::async_trait;
use stentor_core::chunk::Ticket;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId, MessageId, next_number};
use stentor_core::ledger;
use stentor_core::ports::settled::SettledChunk;
use stentor_core::ports::store::{
    Heartbeat, JoiningNode, Membership, NodeEvent, NodeEvents, NodeNotice, NodeRecord, NodeStore, QuotaClaim,
    StoreError,
};
use stentor_core::quota::Level;
use stentor_core::time::Timestamp;

use super::codes::LEASED;
use super::message_rows::MessageCache;
use super::node_events::PublishedEvents;
use super::rows::Rows;
use super::seen_nodes::{LifeSign, SeenNodes};
use super::{PostgresStore, apps, chunks, node_events, node_reports, quotas, receipt_rows, sequences};
use crate::postgres::migrations;
use crate::sql::{
    Done, Row, Value, all, conflict, damaged, exists, int, number, one, params, readable, run, time,
};

/// The number of places for nodes; ids are numbered modulo this.
const PLACES_COUNT: u64 = 256;
/// The sign of a heartbeat: a different number each time, however the database's clock behaves.
const SIGN: &str = "(extract(epoch FROM seen_at) * 1000000)::bigint";

/// The instance that this process is among the nodes.
#[derive(Debug, Default)]
pub(in crate::postgres) struct OwnInstance {
    /// Its number; 0 while it has not joined them.
    number: AtomicU64,
    /// True if there were other nodes at the last heartbeat.
    has_others: AtomicBool,
    /// The observed heartbeats of other nodes.
    seen: Mutex<SeenNodes>,
}

impl OwnInstance {
    /// Returns its number, when it has joined.
    pub(in crate::postgres) fn get(&self) -> Option<u64> {
        Some(self.number.load(Ordering::Acquire)).filter(|instance| *instance > 0)
    }

    /// Parses a NOTIFY payload. Returns true if it came from another node.
    pub(super) fn hears(&self, word: &str) -> bool {
        let is_anothers = word.parse().ok() != self.get();
        if is_anothers {
            // A hint whether other nodes need to be woken: if it is late, they check by themselves.
            self.has_others.store(true, Ordering::Relaxed);
        }
        is_anothers
    }

    /// Records the signs of the other nodes; returns those that were silent for `patience`.
    fn look(&self, signs: &[LifeSign], patience: Option<Duration>) -> Vec<LifeSign> {
        self.has_others.store(!signs.is_empty(), Ordering::Relaxed);
        let (mut seen, now) = (self.seen.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        seen.look(signs, now);
        patience.map(|patience| seen.silent(patience, now)).unwrap_or_default()
    }

    /// Returns its number if it has joined and there are other nodes that may wait for its writes.
    pub(super) fn among_others(&self) -> Option<u64> {
        self.get().filter(|_| self.has_others.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl NodeStore for PostgresStore {
    async fn join(&self, joining: JoiningNode, now: Timestamp) -> Result<Membership, StoreError> {
        let former = self.inner.own.get();
        let membership = self.write(move |connection| join(connection, &joining, former, now)).await?;
        // After the row is on disk: nothing may be leased under an instance that other nodes do not see.
        let own = &self.inner.own;
        own.number.store(membership.instance, Ordering::Release);
        // Until the first heartbeat counts them.
        own.has_others.store(true, Ordering::Relaxed);
        self.inner.listen()?;
        Ok(membership)
    }

    async fn beat(
        &self,
        instance: u64,
        judges: Option<Duration>,
        now: Timestamp,
    ) -> Result<Heartbeat, StoreError> {
        // Outside of the ledger's lock, for which transactions queue: a node with many writes is not dead.
        let (alive, signs) = self.write_rows(move |connection| show_life(connection, instance)).await?;
        let silent = self.inner.own.look(&signs, judges);
        if judges.is_none() || !alive.is_known {
            return Ok(alive);
        }
        // A read comes first: the ledger's lock is taken only if a node seems to be dead.
        if silent.is_empty() && !self.look_up(has_orphans).await? {
            return Ok(alive);
        }
        let released = self.write(move |connection| bury(connection, instance, &silent, now)).await?;
        Ok(Heartbeat { released, ..alive })
    }

    async fn leave(&self, instance: u64, now: Timestamp) -> Result<(), StoreError> {
        self.write(move |connection| {
            // First, so that its leases are found as orphaned.
            run(connection, "DELETE FROM nodes WHERE instance = $1", [int(instance)])?;
            release_orphans(connection, instance, now).map(drop)
        })
        .await
    }

    async fn events_after(&self, after: u64) -> Result<NodeEvents, StoreError> {
        let own = self.inner.own.get().unwrap_or_default();
        // In one snapshot: the last number and the events up to it belong together.
        self.read(move |connection| events_after(connection, own, after)).await
    }

    async fn changed(&self) {
        match self.inner.listener.get() {
            Some(listener) => listener.woken().await,
            None => std::future::pending().await,
        }
    }

    async fn draw(&self, claims: Vec<QuotaClaim>) -> Result<Vec<u64>, StoreError> {
        self.write_rows(move |connection| quotas::draw(connection, &claims)).await
    }

    async fn quota_level(&self, app: AppId, provider: ProviderKind) -> Result<Option<Level>, StoreError> {
        self.read(move |connection| quotas::level(connection, app, provider)).await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        let own = self.inner.own.get();
        self.read(move |connection| node_reports::nodes(connection, own)).await
    }

    async fn settled_chunks(&self, chunks: &[ChunkId]) -> Result<Vec<SettledChunk>, StoreError> {
        let known = Arc::clone(&self.inner.messages);
        let chunks: Vec<i64> = chunks.iter().map(|chunk| int(chunk.raw())).collect();
        self.read(move |connection| settled(connection, &known, &chunks)).await
    }

    async fn publish(&self, notice: NodeNotice) -> Result<(), StoreError> {
        if matches!(notice, NodeNotice::Event(NodeEvent::Upstream(_)))
            && self.inner.own.among_others().is_none()
        {
            // There is one such event for each message of a device; a node that has just joined reads the messages itself.
            return Ok(());
        }
        let own = self.inner.own.get().unwrap_or_default();
        self.write_rows(move |connection| match &notice {
            NodeNotice::Event(event) => {
                node_events::publish(connection, own, [event.clone()]);
                Ok(())
            }
            NodeNotice::Parked { instance, lanes } => {
                node_reports::replace_parked(connection, *instance, lanes)
            }
        })
        .await
    }
}

fn join(
    connection: &Connection,
    joining: &JoiningNode,
    former: Option<u64>,
    now: Timestamp,
) -> Done<Membership> {
    // After a pause of this node, the database may have been migrated beyond its version.
    migrations::check_usable(connection)?;
    if let Some(former) = former {
        refuse_double(connection, joining.node, former)?;
    }
    // Any other instance with this directory is dead, because two servers cannot hold the directory's lock.
    run(connection, "DELETE FROM nodes WHERE node = $1", [int(joining.node)])?;
    let differs = "SELECT 1 FROM nodes WHERE secrets_hash <> $1";
    if exists(connection, differs, params![joining.secrets_hash.to_vec()])? {
        return Err(conflict(
            "the servers that use this database have another key.pepper in their data directories: copy key.pepper and \
             root.key from one of them before the first start, or stop them",
        ));
    }
    let place = free_place(connection)?;
    let last = apps::last_id(connection)?;
    let instance = next_number(last, now, Some(place));
    let sql = "INSERT INTO nodes (node, instance, id_place, fires, secrets_hash, schema_version, host, roles, version, seen_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp())";
    let (secrets_hash, known) = (joining.secrets_hash.to_vec(), migrations::newest() as u64);
    let (node, fires) = (int(joining.node), joining.fires);
    let (host, roles, version) = (&joining.host, joining.roles.join(","), joining.version);
    let row = params![node, int(instance), place, fires, secrets_hash, int(known), host, roles, version];
    run(connection, sql, row)?;
    // Informs the other nodes that there is another receiver of events.
    node_events::wake(connection, instance);
    let (last_event, shown) = (node_events::last(connection)?, Some(clock_time(connection)?));
    Ok(Membership { instance, id_place: Some(place), last_event, shown })
}

/// Refuses a server that was among the nodes, and finds another server under its own name with a recent heartbeat: otherwise each would
/// remove the other again and again.
fn refuse_double(connection: &Connection, node: u64, former: u64) -> Done<()> {
    let sql = "SELECT host FROM nodes WHERE node = $1 AND instance <> $2
        AND seen_at > clock_timestamp() - interval '15 seconds'";
    let Some(host) = one(connection, sql, [int(node), int(former)], |row| row.get::<String>(0))? else {
        return Ok(());
    };
    Err(conflict(format!(
        "another server, on the host {host:?}, runs under the same node.id ({node:016x}): each needs a data directory of its own, and a copied \
         one must lose its node.id"
    )))
}

/// Returns a free place. The most recently freed ones come last, so that a suspended node does not meet its former numbers.
fn free_place(connection: &Connection) -> Done<u8> {
    for _ in 0..PLACES_COUNT {
        let place = sequences::next(connection, "place")? % PLACES_COUNT;
        if !exists(connection, "SELECT 1 FROM nodes WHERE id_place = $1", [int(place)])? {
            return u8::try_from(place).map_err(|_| damaged("a place out of its range"));
        }
    }
    Err(conflict("256 servers use this database already"))
}

/// Writes a heartbeat; returns its result and the signs of all other nodes.
fn show_life(connection: &Connection, instance: u64) -> Done<(Heartbeat, Vec<LifeSign>)> {
    let sql = "UPDATE nodes SET seen_at = clock_timestamp() WHERE instance = $1";
    let is_known = run(connection, sql, [int(instance)])? > 0;
    let is_first = is_known && is_firing(connection, Some(instance))?;
    let sql = format!("SELECT instance, {SIGN} FROM nodes WHERE instance <> $1");
    let signs = all(connection, &sql, [int(instance)], |row| Ok((number(row, 0)?, row.get::<i64>(1)?)))?;
    let shown = Some(clock_time(connection)?);
    Ok((Heartbeat { is_known, is_first, released: Vec::new(), shown }, signs))
}

/// Returns the time of the server's clock, the only clock that all nodes share.
pub(super) fn clock_time(connection: &Connection) -> Done<Timestamp> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    one(connection, sql, (), |row| time(row, 0))?.ok_or_else(|| damaged("a server without a clock"))
}

/// Returns true if chunks are leased by a node that is gone.
fn has_orphans(connection: &Connection) -> Done<bool> {
    let sql = format!(
        "SELECT 1 FROM chunks WHERE state = {LEASED} AND instance NOT IN (SELECT instance FROM nodes) LIMIT 1"
    );
    exists(connection, &sql, ())
}

/// Removes nodes with an expired heartbeat, unless they have sent another one since, and releases orphaned leases.
fn bury(connection: &Connection, own: u64, silent: &[LifeSign], now: Timestamp) -> Done<Vec<Ticket>> {
    let sql = format!(
        "DELETE FROM nodes WHERE (instance, {SIGN}) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[])) RETURNING instance"
    );
    let signs =
        params![Value::ints(silent, |(instance, _)| int(*instance)), Value::ints(silent, |(_, sign)| *sign),];
    for instance in all(connection, &sql, signs, |row| number(row, 0))? {
        tracing::warn!(instance, "a node gave no sign of life: what it had leased is released");
    }
    release_orphans(connection, own, now)
}

/// Releases the leases of nodes that are gone.
fn release_orphans(connection: &Connection, own: u64, now: Timestamp) -> Done<Vec<Ticket>> {
    let ids = orphans(connection)?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (recovery, tickets) = ledger::release_dead(&mut Rows::new(connection), &ids, now)?;
    tracing::warn!(
        chunks = recovery.chunks,
        deliveries = recovery.deliveries,
        "released what nodes had left unsettled that are gone"
    );
    node_events::publish(connection, own, [NodeEvent::Queued]);
    Ok(tickets)
}

/// Lists chunks leased by nodes that are gone.
pub(super) fn orphans(connection: &Connection) -> Done<Vec<ChunkId>> {
    let sql = format!(
        "SELECT id FROM chunks WHERE state = {LEASED} AND instance NOT IN (SELECT instance FROM nodes) ORDER BY id"
    );
    all(connection, &sql, (), |row| number(row, 0).map(ChunkId::from_raw))
}

/// Returns true if this instance fires schedules: the one that joined first of those that may.
///
/// It is checked in the transaction that fires. Nodes join and leave in transactions that hold the ledger's lock, as that one does,
/// so that an instance that lost its role fires nothing more.
pub(super) fn is_firing(connection: &Connection, own: Option<u64>) -> Done<bool> {
    let Some(own) = own else { return Ok(true) };
    let first =
        one(connection, "SELECT min(instance) FROM nodes WHERE fires", (), |row| row.get::<Option<i64>>(0))?;
    Ok(first.flatten() == Some(int(own)))
}

fn events_after(connection: &Connection, own: u64, after: u64) -> Done<NodeEvents> {
    let sql = "SELECT (SELECT value FROM sequences WHERE name = 'event'),
        (SELECT value FROM sequences WHERE name = 'chunk'), EXISTS (SELECT 1 FROM producers)";
    let read = one(connection, sql, (), |row| Ok((number(row, 0)?, number(row, 1)?, row.get::<bool>(2)?)))?;
    let (last_event, last_chunk, has_producers) = read.ok_or_else(|| damaged("a sequence is missing"))?;
    let found = match last_event == after {
        true => PublishedEvents { events: Vec::new(), last: last_event, is_gapped: false },
        false => node_events::after(connection, own, after, last_event)?,
    };
    let PublishedEvents { events, last, is_gapped } = found;
    let (last_chunk, has_more) = (ChunkId::from_raw(last_chunk), last < last_event);
    Ok(NodeEvents { last_event: last, events, has_more, is_gapped, last_chunk, has_producers })
}

/// Reads settled chunks with awaited receipts, as far as they can be read.
fn settled(connection: &Connection, known: &MessageCache, ids: &[i64]) -> Done<Vec<SettledChunk>> {
    let sql = "SELECT id, message, count, devices, records FROM chunks
        WHERE id = ANY($1) AND receipts_until IS NOT NULL ORDER BY id";
    let read = |row: &Row<'_>| {
        let records = receipt_rows::decode(row, 4, usize::from(row.get::<u16>(2)?))?;
        let devices = chunks::decode(row, 3)?.into_iter().zip(records);
        let waiting = devices.filter(|(_, record)| record.awaits_receipt()).map(|(device, _)| device);
        Ok((ChunkId::from_raw(number(row, 0)?), MessageId::from_raw(number(row, 1)?), waiting.collect()))
    };
    let mut chunks = Vec::new();
    let found = readable(connection, "chunks", (sql, params![ids.to_vec()]), ids.len(), read)?.0;
    for (chunk, message, devices) in found {
        match known.get(connection, message) {
            Ok(None) => {}
            Ok(Some(message)) => chunks.push(SettledChunk { chunk, message, devices, is_certain: true }),
            Err(fault) if fault.is_damage() => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(chunks)
}
