//! Chunks whose rows the disk does not give, while it gives others: left alone until the next start.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stentor_core::id::ChunkId;

/// Failures after which a chunk is left alone.
const TRIES_MAX_COUNT: u32 = 3;

/// What is known of such chunks, and which chunk is being worked on.
#[derive(Debug, Default)]
pub(super) struct Lost(Mutex<LostState>);

#[derive(Debug, Default)]
struct LostState {
    tries: HashMap<ChunkId, u32>,
    touched: Option<ChunkId>,
    /// Work on many failed and nobody knows at which: each is tried alone.
    alone: bool,
}

impl Lost {
    /// Returns whether a chunk is to be left alone.
    pub(super) fn has(&self, chunk: ChunkId) -> bool {
        self.lock().tries.get(&chunk).is_some_and(|tries| *tries >= TRIES_MAX_COUNT)
    }

    /// Returns whether there is one that may not be touched.
    pub(super) fn has_any(&self) -> bool {
        !self.lock().tries.is_empty()
    }

    /// Leaves a chunk alone from now on.
    pub(super) fn add(&self, chunk: ChunkId) {
        self.lock().tries.insert(chunk, TRIES_MAX_COUNT);
        tracing::error!(%chunk, "the disk does not give a chunk: it is left alone until the next start");
    }

    /// Notes which chunk is being worked on.
    pub(super) fn touch(&self, chunk: Option<ChunkId>) {
        self.lock().touched = chunk;
    }

    /// Returns whether each chunk is to be tried alone.
    pub(super) fn is_alone(&self) -> bool {
        self.lock().alone
    }

    /// Notes that work on chunks was done.
    pub(super) fn note_success(&self) {
        self.lock().alone = false;
    }

    /// Notes that the work on the chunk failed while other work does not; returns whether it is worth trying again.
    pub(super) fn note_failure(&self) -> bool {
        let mut state = self.lock();
        // Nobody knows which chunk it was: all are tried alone, once, and after that the failure is told.
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
