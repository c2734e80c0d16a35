//! Eight bytes of the hash of every key in the store: a guess is refused by them alone.

use std::collections::HashSet;

use parking_lot::RwLock;

use crate::keys::KeyHash;

/// Most keys that are marked (16 MiB); where there are more, every unknown key is looked up.
pub(super) const MAX_COUNT: usize = 1_048_576;

/// Which keys may be in the store. A mark too many costs a look-up; one too few would lock a key out, so nothing is refused
/// before all keys were read, nor once there were too many to mark.
#[derive(Debug, Default)]
pub(super) struct Marks(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    marks: HashSet<u64>,
    is_complete: bool,
}

impl Marks {
    /// Takes over the hashes of all keys in the store.
    pub(super) fn learn(&self, hashes: &[KeyHash]) {
        let mut state = self.0.write();
        state.marks.extend(hashes.iter().map(mark));
        state.is_complete = true;
        state.check();
    }

    /// Adds a key before it is kept.
    pub(super) fn add(&self, hash: &KeyHash) {
        let mut state = self.0.write();
        state.marks.insert(mark(hash));
        state.check();
    }

    /// Takes away a key that was looked up and is not in the store.
    pub(super) fn drop(&self, hash: &KeyHash) {
        self.0.write().marks.remove(&mark(hash));
    }

    /// Returns whether the key may be in the store.
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
