//! Tokens read ahead: what a producer saw of the devices of a chunk waits here until the chunk is leased, so that the
//! registry is walked once for a campaign and not twice, and not by the thread that writes.
//!
//! A device may change between the walk and the lease. SQLite tells of every row that the writing connection changes;
//! chunks that hold such a device are forgotten here, and their tokens are read from the registry when they are leased.
//! So nothing here is ever the truth: it may be empty at any moment.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use rusqlite::hooks::Action;
use stentor_core::chunk::TokenList;
use stentor_core::id::{ChunkId, DeviceId};

use super::app_providers::AppProvider;
use crate::sql::{Done, int};

/// Most bytes of memory for tokens and ids that wait.
const WAITING_MAX_BYTES: usize = 16 * 1_024 * 1_024;
/// Changes remembered; a walk during which more happened is not kept.
const CHANGES_MAX_COUNT: usize = 4_096;

/// The devices of one chunk as a walk saw them: all listed and unretired, with a token each.
#[derive(Debug)]
pub(super) struct Prefetched {
    pub(super) devices: Vec<DeviceId>,
    pub(super) tokens: TokenList,
}

/// A moment before a walk: changes up to it are in every snapshot that begins later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Snapshot(u64);

/// What was read ahead and is still true.
#[derive(Debug, Default)]
pub(super) struct PrefetchCache {
    state: Mutex<PrefetchState>,
}

#[derive(Debug, Default)]
struct PrefetchState {
    waiting: HashMap<ChunkId, PrefetchEntry>,
    bytes: usize,
    /// Keys of changed devices, and ids of changed chunks as negative numbers; the newest last.
    changes: VecDeque<i64>,
    /// How many changes went before those.
    forgotten: u64,
    /// How many are committed, or taken back.
    settled: u64,
}

#[derive(Debug)]
struct PrefetchEntry {
    first: i64,
    last: i64,
    bytes: usize,
    seen: Prefetched,
}

impl PrefetchCache {
    /// Learns of every device that the connection changes from now on.
    pub(super) fn watch(self: &Arc<Self>, connection: &Connection) -> Done<()> {
        let cache = Arc::clone(self);
        connection.update_hook(Some(move |action, _: &str, table: &str, key| match table {
            // Nobody can have walked over a device that was not there, and a chunk is inserted before its tokens are
            // kept.
            _ if action == Action::SQLITE_INSERT => {}
            "devices" => cache.note_device(key),
            "chunks" => cache.note_chunk(key),
            _ => {}
        }))?;
        Ok(())
    }

    /// Notes that the changes so far are committed or taken back.
    pub(super) fn note_settled(&self) {
        let mut state = self.lock();
        // Changes of a transaction that is open are in no reader's snapshot: a walk that begins now must count them as later.
        state.settled = state.forgotten + state.changes.len() as u64;
    }

    /// Marks the beginning of a walk; its snapshot must begin after this call.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot(self.lock().settled)
    }

    /// Keeps what a walk saw of a chunk, if there is room and none of its devices has changed since.
    pub(super) fn keep(&self, snapshot: Snapshot, chunk: ChunkId, fleet: AppProvider, mut seen: Prefetched) {
        let (Some(first), Some(last)) = (seen.devices.first(), seen.devices.last()) else { return };
        let (first, last) = (fleet.bound(*first), fleet.bound(*last));
        // It may wait for long, and spare room would count against the bound.
        seen.tokens.shrink();
        let bytes = seen.tokens.capacity_bytes() + seen.devices.capacity() * size_of::<DeviceId>();
        let mut state = self.lock();
        let fits = state.bytes + bytes <= WAITING_MAX_BYTES;
        // A token that could not be read is left to the lease, which finds its device gone.
        let is_whole = seen.tokens.len() == seen.devices.len();
        // Asked and kept under one lock, which the hook takes too: a change comes before, and is seen, or after, and
        // throws it out.
        if fits && is_whole && !state.has_changed_since(snapshot, chunk, first, last) {
            state.bytes += bytes;
            state.waiting.insert(chunk, PrefetchEntry { first, last, bytes, seen });
        }
    }

    /// Takes out what was seen of a chunk.
    pub(super) fn take(&self, chunk: ChunkId) -> Option<Prefetched> {
        self.lock().take(chunk)
    }

    fn note_device(&self, key: i64) {
        let mut state = self.lock();
        state.note(key);
        let mut freed = 0;
        // The range is enough: a device within it that is not in the chunk costs one read in vain.
        state.waiting.retain(|_, waiting| {
            let holds = (waiting.first..=waiting.last).contains(&key);
            freed += if holds { waiting.bytes } else { 0 };
            !holds
        });
        state.bytes -= freed;
    }

    /// A chunk whose row changes was leased, or will never be.
    fn note_chunk(&self, id: i64) {
        // Under one lock: what is kept in between would wait for a lease that has been.
        let mut state = self.lock();
        state.take(ChunkId::from_raw(id.unsigned_abs()));
        state.note(-id);
    }

    fn lock(&self) -> MutexGuard<'_, PrefetchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrefetchState {
    fn take(&mut self, chunk: ChunkId) -> Option<Prefetched> {
        let taken = self.waiting.remove(&chunk)?;
        self.bytes -= taken.bytes;
        Some(taken.seen)
    }

    fn note(&mut self, change: i64) {
        self.changes.push_back(change);
        if self.changes.len() > CHANGES_MAX_COUNT {
            self.changes.pop_front();
            // Counted, so that a walk that began before them knows that it does not know.
            self.forgotten += 1;
        }
    }

    fn has_changed_since(&self, snapshot: Snapshot, chunk: ChunkId, first: i64, last: i64) -> bool {
        let Some(skipped) = snapshot.0.checked_sub(self.forgotten) else { return true };
        let chunk = -int(chunk.raw());
        let touches = |change: &i64| *change == chunk || (first..=last).contains(change);
        self.changes.iter().skip(skipped as usize).any(touches)
    }
}

#[cfg(test)]
mod tests;
