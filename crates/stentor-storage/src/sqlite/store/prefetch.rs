//! Prefetched tokens. The tokens that a producer read for the devices of a chunk wait here until the chunk is leased. Thus the registry is
//! read once for a campaign and not twice, and not by the writer thread.
//!
//! A device may change between the read and the lease. SQLite reports every row that the writer's connection changes. Chunks with such a
//! device are dropped here, and their tokens are read from the registry when they are leased. The cache is never authoritative: it may be
//! empty at any moment.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use rusqlite::hooks::Action;
use stentor_core::chunk::TokenList;
use stentor_core::id::{ChunkId, DeviceId};

use super::app_providers::AppProvider;
use crate::sql::{Done, int};

/// The largest memory for waiting tokens and ids, in bytes.
const WAITING_MAX_BYTES: usize = 16 * 1_024 * 1_024;
/// The number of recorded changes; a read during which more happened is not cached.
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

/// Prefetched data that is still valid.
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
    /// The number of changes before those.
    forgotten: u64,
    /// The number of changes that were committed or rolled back.
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
    /// Observes every device that the connection changes from now on.
    pub(super) fn watch(self: &Arc<Self>, connection: &Connection) -> Done<()> {
        let cache = Arc::clone(self);
        connection.update_hook(Some(move |action, _: &str, table: &str, key| match table {
            // An inserted device cannot have been read before, and a chunk is inserted before its tokens are cached.
            _ if action == Action::SQLITE_INSERT => {}
            "devices" => cache.note_device(key),
            "chunks" => cache.note_chunk(key),
            _ => {}
        }))?;
        Ok(())
    }

    /// Records that the changes so far are committed or rolled back.
    pub(super) fn note_settled(&self) {
        let mut state = self.lock();
        // Changes of an open transaction are in no reader's snapshot: a read that begins now must count them as later.
        state.settled = state.forgotten + state.changes.len() as u64;
    }

    /// Marks the beginning of a walk; its snapshot must begin after this call.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot(self.lock().settled)
    }

    /// Caches the devices of a chunk as read, if there is room and none of them has changed since.
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
        // Checked and cached under one lock, which the hook takes too: a change comes either before and is seen, or after and drops the
        // entry.
        if fits && is_whole && !state.has_changed_since(snapshot, chunk, first, last) {
            state.bytes += bytes;
            state.waiting.insert(chunk, PrefetchEntry { first, last, bytes, seen });
        }
    }

    /// Takes the prefetched devices of a chunk.
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

    /// Handles a changed chunk: it was leased, or will never be.
    fn note_chunk(&self, id: i64) {
        // Under one lock: an entry cached in between would wait for a lease that is over.
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
            // Counted, so that a read which began before them cannot take its devices for unchanged.
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
