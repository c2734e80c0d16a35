//! The log of rows of a store that could not be read.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Most damaged rows that are remembered so as not to name them again.
pub(super) const NAMED_MAX_COUNT: usize = 4_096;

/// The damaged rows logged since the store was opened, by table and number.
#[derive(Debug, Default)]
pub(super) struct DamageLog(Mutex<HashSet<(&'static str, i64)>>);

impl DamageLog {
    /// Counts the rows that could not be read, each once.
    pub(super) fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Records a row; returns true if it was not recorded before.
    pub(super) fn is_first(&self, table: &'static str, key: i64) -> bool {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        named.len() < NAMED_MAX_COUNT && named.insert((table, key))
    }
}
