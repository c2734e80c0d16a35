//! One open-addressing table over plain bytes: linear probing, nothing is ever removed.

use super::Counts;

/// One slot: the hash (8 bytes), then four counters of 4 bytes, all little-endian; hash 0 means free.
pub(super) const SLOT_BYTES: usize = 24;

/// Changes the counts of a hash and returns them before and after; `None` if it is new and the table is full.
pub(super) fn update(
    slots: &mut [u8],
    hash: u64,
    room: bool,
    change: impl FnOnce(&mut Counts),
) -> Option<(Counts, Counts)> {
    let index = probe(slots, hash)?;
    let slot = &mut slots[index * SLOT_BYTES..][..SLOT_BYTES];
    if slot_hash(slot) == 0 && !room {
        return None;
    }
    let before = slot_counts(slot);
    let mut after = before;
    change(&mut after);
    write_counts(slot, after);
    slot[..8].copy_from_slice(&hash.to_le_bytes());
    Some((before, after))
}

/// Returns the counts of a hash.
pub(super) fn find(slots: &[u8], hash: u64) -> Option<Counts> {
    let index = probe(slots, hash)?;
    let slot = &slots[index * SLOT_BYTES..][..SLOT_BYTES];
    (slot_hash(slot) == hash).then(|| slot_counts(slot))
}

/// Brings the slots of many hashes into the cache: the reads depend on nothing, so they overlap.
pub(super) fn look_at(slots: &[u8], hashes: &[u64]) {
    let count = slots.len() / SLOT_BYTES;
    let seen =
        hashes.iter().fold(0, |seen, hash| seen ^ slot_hash(&slots[*hash as usize % count * SLOT_BYTES..]));
    std::hint::black_box(seen);
}

/// Visits every used slot.
pub(super) fn for_each(slots: &[u8], mut visit: impl FnMut(u64, Counts)) {
    for slot in slots.chunks_exact(SLOT_BYTES) {
        let hash = slot_hash(slot);
        if hash != 0 {
            visit(hash, slot_counts(slot));
        }
    }
}

/// Returns the slot of a hash, or the free slot where it belongs; `None` when the table is full.
fn probe(slots: &[u8], hash: u64) -> Option<usize> {
    let count = slots.len() / SLOT_BYTES;
    let first = hash as usize % count;
    (first..count).chain(0..first).find(|index| {
        let found = slot_hash(&slots[index * SLOT_BYTES..]);
        found == hash || found == 0
    })
}

fn slot_hash(slot: &[u8]) -> u64 {
    slot.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn slot_counts(slot: &[u8]) -> Counts {
    let counter = |at: usize| slot[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    Counts { attempts: counter(8), accepted: counter(12), rejected: counter(16), validate_only: counter(20) }
}

fn write_counts(slot: &mut [u8], counts: Counts) {
    let counters = [counts.attempts, counts.accepted, counts.rejected, counts.validate_only];
    for (bytes, counter) in slot[8..].chunks_exact_mut(4).zip(counters) {
        bytes.copy_from_slice(&counter.to_le_bytes());
    }
}
