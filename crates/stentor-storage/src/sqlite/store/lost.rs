//! Chunks with rows that the disk cannot read, while it reads others: they are skipped until the next start.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stentor_core::id::ChunkId;

/// The number of failures after which a chunk is skipped.
const TRIES_MAX_COUNT: u32 = 3;

/// The unreadable chunks, and the chunk being worked on.
#[derive(Debug, Default)]
pub(super) struct Lost(Mutex<LostState>);

#[derive(Debug, Default)]
struct LostState {
    tries: HashMap<ChunkId, u32>,
    touched: Option<ChunkId>,
    /// True if work on several chunks failed at an unknown one, so that each is tried alone.
    alone: bool,
}

impl Lost {
    /// Returns true if a chunk is to be skipped.
    pub(super) fn has(&self, chunk: ChunkId) -> bool {
        self.lock().tries.get(&chunk).is_some_and(|tries| *tries >= TRIES_MAX_COUNT)
    }

    /// Returns true if there are chunks with failures.
    pub(super) fn has_any(&self) -> bool {
        !self.lock().tries.is_empty()
    }

    /// Skips a chunk from now on.
    pub(super) fn add(&self, chunk: ChunkId) {
        self.lock().tries.insert(chunk, TRIES_MAX_COUNT);
        tracing::error!(%chunk, "the disk does not give a chunk: it is left alone until the next start");
    }

    /// Records the chunk being worked on.
    pub(super) fn touch(&self, chunk: Option<ChunkId>) {
        self.lock().touched = chunk;
    }

    /// Returns true if each chunk is to be tried alone.
    pub(super) fn is_alone(&self) -> bool {
        self.lock().alone
    }

    /// Records that work on chunks succeeded.
    pub(super) fn note_success(&self) {
        self.lock().alone = false;
    }

    /// Records that work on a chunk failed while other work succeeds; returns true if a retry makes sense.
    pub(super) fn note_failure(&self) -> bool {
        let mut state = self.lock();
        // The failed chunk is unknown: all are tried alone, once, and after that the failure is reported.
        let Some(chunk) = state.touched.take() else { return !std::mem::replace(&mut state.alone, true) };
        let tries = state.tries.entry(chunk).or_default();
        *tries += 1;
        if *tries == TRIES_MAX_COUNT {
            tracing::error!(%chunk, "the disk does not give a chunk: it is left alone until the next start");
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, LostState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
