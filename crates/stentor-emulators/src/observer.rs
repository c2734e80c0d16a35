//! The observer: counts of the attempts and outcomes per token, in a file that outlives the emulator.
//!
//! The file is memory-mapped, so a count survives `kill -9` the moment it is made (but not a power cut). It is cut into shards, each an
//! open-addressing table with a lock of its own.

mod file;
mod table;
#[cfg(test)]
mod tests;

use crate::error::EmulatorError;
pub use file::ObserverFile;
use file::{Geometry, Mapping};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The file of the counts and its capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObserverConfig {
    /// The file; without one the counts live in memory and die with the emulator.
    pub path: Option<PathBuf>,
    /// The maximum number of different tokens.
    pub capacity_tokens: u64,
}

impl Default for ObserverConfig {
    fn default() -> Self {
        Self { path: None, capacity_tokens: 1 << 20 }
    }
}

/// The counts of one token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests read for it, with any outcome.
    pub attempts: u32,
    /// Requests accepted, even if the response did not reach the client; more than one is a duplicate.
    pub accepted: u32,
    /// Requests refused with an error.
    pub rejected: u32,
    /// Valid requests for validation only.
    pub validate_only: u32,
}

/// The sums over all tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserverTotals {
    /// Different tokens.
    pub tokens: u64,
    /// Requests read.
    pub attempts: u64,
    /// Requests taken over.
    pub accepted: u64,
    /// Requests refused with an error.
    pub rejected: u64,
    /// Successes that were validation only.
    pub validate_only: u64,
    /// Tokens accepted more than once.
    pub tokens_accepted_twice: u64,
    /// Counts that were dropped because the table was full; more than 0 makes the file useless as a proof.
    pub overflow: u64,
}

/// The kind of a response, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerTally {
    Accepted,
    Rejected,
    ValidateOnly,
}

/// Counts per token. Cheap to share: the locks are one per shard.
pub struct Observer {
    shards: Vec<Mutex<Shard>>,
    // Keeps the lock on the file for as long as the counts are written.
    _file: Option<std::fs::File>,
}

/// Requests that are counted together, in the order of their shards.
pub(crate) struct CountBatch {
    by_shard: Vec<Vec<u64>>,
}

impl CountBatch {
    pub(crate) fn push(&mut self, token_hash: u64) {
        let shard = file::shard_of(token_hash, self.by_shard.len());
        self.by_shard[shard].push(token_hash);
    }
}

struct Shard {
    mapping: Mapping,
    sums: ObserverTotals,
    room_tokens: u64,
}

impl Observer {
    /// Opens or makes the file, or a table in memory. Fails when the file is foreign, too small or in use.
    pub fn open(config: &ObserverConfig) -> Result<Self, EmulatorError> {
        let geometry = Geometry::for_capacity(config.capacity_tokens);
        let (geometry, file, mappings) = match &config.path {
            Some(path) => file::open(path, geometry)?,
            None => (geometry, None, file::anonymous(geometry)?),
        };
        let shards = mappings.into_iter().map(|mapping| Mutex::new(Shard::new(mapping, geometry))).collect();
        Ok(Self { shards, _file: file })
    }

    /// Counts a request at its arrival and returns which attempt at the token it is, from 1.
    pub(crate) fn attempt(&self, token_hash: u64) -> u32 {
        self.update(token_hash, |counts| counts.attempts = counts.attempts.saturating_add(1)).attempts
    }

    /// Counts an outcome, before its answer is written.
    pub(crate) fn settle(&self, token_hash: u64, tally: AnswerTally) {
        self.update(token_hash, |counts| count(counts, tally));
    }

    /// Counts a request and its answer in one step.
    pub(crate) fn attempt_and_settle(&self, token_hash: u64, tally: AnswerTally) {
        self.update(token_hash, |counts| {
            counts.attempts = counts.attempts.saturating_add(1);
            count(counts, tally);
        });
    }

    /// Creates an empty batch of this observer.
    pub(crate) fn batch(&self) -> CountBatch {
        CountBatch { by_shard: vec![Vec::new(); self.shards.len()] }
    }

    /// Counts every request of a batch with one outcome, as [`Self::attempt_and_settle`] does; leaves it empty.
    ///
    /// The places of a large table are in no cache. So all are looked at first, which a processor does at the same
    /// time, and every lock is taken once.
    pub(crate) fn settle_batch(&self, batch: &mut CountBatch, tally: AnswerTally) {
        for (shard, hashes) in self.shards.iter().zip(&mut batch.by_shard) {
            if hashes.is_empty() {
                continue;
            }
            let mut shard = shard.lock();
            table::look_at(shard.mapping.slots_mut(), hashes);
            for hash in hashes.drain(..) {
                shard.change(hash, |counts| {
                    counts.attempts = counts.attempts.saturating_add(1);
                    count(counts, tally);
                });
            }
            shard.write_sums();
        }
    }

    /// Returns the counts of one token; zeros when it was never seen.
    pub fn lookup(&self, token: &str) -> Counts {
        let hash = token_hash(token.as_bytes());
        table::find(self.shard(hash).mapping.slots_mut(), hash).unwrap_or_default()
    }

    /// Returns the sums over all tokens.
    pub fn totals(&self) -> ObserverTotals {
        let mut totals = ObserverTotals::default();
        for shard in &self.shards {
            totals.merge(&shard.lock().sums);
        }
        totals
    }

    /// Forgets all counts.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            shard.lock().clear();
        }
    }

    fn update(&self, hash: u64, change: impl FnOnce(&mut Counts)) -> Counts {
        self.shard(hash).update(hash, change)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        let index = file::shard_of(hash, self.shards.len());
        self.shards[index].lock()
    }
}

impl Shard {
    fn new(mut mapping: Mapping, geometry: Geometry) -> Self {
        // Counted from the slots: a process that was killed may not have written its sums.
        let mut sums = ObserverTotals { overflow: mapping.overflow(), ..ObserverTotals::default() };
        table::for_each(mapping.slots_mut(), |_, counts| sums.add(counts));
        Self { mapping, sums, room_tokens: geometry.tokens_per_shard() }
    }

    fn update(&mut self, hash: u64, change: impl FnOnce(&mut Counts)) -> Counts {
        let counts = self.change(hash, change);
        self.write_sums();
        counts
    }

    fn change(&mut self, hash: u64, change: impl FnOnce(&mut Counts)) -> Counts {
        // Room is counted: a table that is nearly full would be probed from end to end.
        let room = self.sums.tokens < self.room_tokens;
        let updated = table::update(self.mapping.slots_mut(), hash, room, change);
        match updated {
            Some((before, after)) => self.sums.change(before, after),
            None => self.sums.overflow += 1,
        }
        updated.map_or_else(Counts::default, |(_, after)| after)
    }

    fn clear(&mut self) {
        self.mapping.slots_mut().fill(0);
        self.sums = ObserverTotals::default();
        self.write_sums();
    }

    fn write_sums(&mut self) {
        self.mapping.write_sums(&self.sums);
    }
}

fn count(counts: &mut Counts, tally: AnswerTally) {
    let counter = match tally {
        AnswerTally::Accepted => &mut counts.accepted,
        AnswerTally::Rejected => &mut counts.rejected,
        AnswerTally::ValidateOnly => &mut counts.validate_only,
    };
    *counter = counter.saturating_add(1);
}

impl ObserverTotals {
    fn add(&mut self, counts: Counts) {
        self.change(Counts::default(), counts);
    }

    fn change(&mut self, before: Counts, after: Counts) {
        self.tokens += u64::from(before == Counts::default());
        self.attempts += u64::from(after.attempts - before.attempts);
        self.accepted += u64::from(after.accepted - before.accepted);
        self.rejected += u64::from(after.rejected - before.rejected);
        self.validate_only += u64::from(after.validate_only - before.validate_only);
        self.tokens_accepted_twice += u64::from(before.accepted < 2 && after.accepted > 1);
    }

    fn merge(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.attempts += other.attempts;
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.validate_only += other.validate_only;
        self.tokens_accepted_twice += other.tokens_accepted_twice;
        self.overflow += other.overflow;
    }
}

/// Returns the stable 64-bit hash under which a token is counted; part of the file format, never 0.
pub fn token_hash(token: &[u8]) -> u64 {
    // These numbers are part of the file's format.
    let mut state = 0x2b99_2ddf_a232_49d6_u64 ^ token.len() as u64;
    let (words, rest) = token.as_chunks::<8>();
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word));
    }
    // The length is in the state already: zeros at a token's end make another token.
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    // 0 marks a free slot.
    fold(crate::dice::mix(state ^ u64::from_le_bytes(last))).max(1)
}

/// Multiplies into 128 bits and folds the halves: every input bit reaches every output bit's neighbourhood.
fn fold(value: u64) -> u64 {
    let wide = u128::from(value ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db_u128;
    (wide as u64) ^ ((wide >> 64) as u64)
}
