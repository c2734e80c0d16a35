//! Marks: eight bytes of the hash of each key in the store, which suffice to refuse a guessed key.

use std::collections::HashSet;

use parking_lot::RwLock;

use crate::keys::KeyHash;

/// Most marks (16 MiB). With more keys, each unknown key is looked up.
pub(super) const MAX_COUNT: usize = 1_048_576;

/// Marks of the keys that may be in the store. An unnecessary mark costs a look-up; a missing one would lock out a key. So nothing is
/// refused before all keys were read, or once there are too many keys.
#[derive(Debug, Default)]
pub(super) struct Marks(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    marks: HashSet<u64>,
    is_complete: bool,
}

impl Marks {
    /// Loads the hashes of all keys in the store.
    pub(super) fn learn(&self, hashes: &[KeyHash]) {
        let mut state = self.0.write();
        state.marks.extend(hashes.iter().map(mark));
        state.is_complete = true;
        state.check();
    }

    /// Adds a key before it is stored.
    pub(super) fn add(&self, hash: &KeyHash) {
        let mut state = self.0.write();
        state.marks.insert(mark(hash));
        state.check();
    }

    /// Removes a key that was looked up and is not in the store.
    pub(super) fn drop(&self, hash: &KeyHash) {
        self.0.write().marks.remove(&mark(hash));
    }

    /// Returns true if the key may be in the store.
    pub(super) fn may_have(&self, hash: &KeyHash) -> bool {
        let state = self.0.read();
        !state.is_complete || state.marks.contains(&mark(hash))
    }
}

impl State {
    fn check(&mut self) {
        if self.marks.len() > MAX_COUNT {
            *self = Self::default();
        }
    }
}

fn mark(hash: &KeyHash) -> u64 {
    hash.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}
