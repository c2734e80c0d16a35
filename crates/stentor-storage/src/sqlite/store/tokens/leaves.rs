//! Sorted pairs of a token's hash and a device, a page of them in one row.
//!
//! If each pair were a row, SQLite would search and change a page for each pair. With leaves as rows, it does so once for all pairs that
//! belong to one leaf. A leaf has the same length however full it is, so that it is overwritten in place.

use rusqlite::Connection;

use crate::sql::{Done, Row, SqlError, damaged, exists, one, params, run};
use crate::sqlite::store::leftovers::{Leftover, LeftoverKind};

/// A token's hash and the number of the device that holds it, both below 2^40.
pub(super) type HashPair = (i64, i64);

/// Bits of a hash, and of a device's number.
pub(super) const BITS: u32 = 40;
const NUMBER_BYTES: usize = BITS as usize / 8;
const PAIR_BYTES: usize = 2 * NUMBER_BYTES;
const HEAD_BYTES: usize = 12;
/// Pairs that fill a row of one page of 4,096 bytes (sqlite.org/fileformat2.html, 1.6: at most 4,061 bytes of a row stay in
/// its page, four are the row's own head).
const ROOM_COUNT: usize = 404;
/// The number of pairs per leaf when many are added, so that later ones find room.
const PART_COUNT: usize = ROOM_COUNT * 2 / 3;

/// A table of leaves. The leaves cover all hashes; an empty table is equivalent to one empty leaf for all.
pub(super) struct Leaves<'a> {
    pub(super) connection: &'a Connection,
    pub(super) table: &'static str,
}

/// The pairs taken, and the hash from which to continue.
pub(super) struct Taken {
    pub(super) pairs: Vec<HashPair>,
    pub(super) next: i64,
}

impl Leaves<'_> {
    /// Finds the pairs of hashes that are in order.
    pub(super) fn find(&self, hashes: &[i64], mut found: impl FnMut(HashPair)) -> Done<()> {
        let mut statement = self.connection.prepare_cached(&self.covering_sql())?;
        let mut rest = hashes;
        while let Some(hash) = rest.first() {
            let mut rows = statement.query([hash])?;
            let page = rows.next()?.map(|row| StoredLeaf::of_row(row, *hash)).transpose();
            let (until, page) = match page {
                Ok(Some(page)) => (page.until, Some(page)),
                Ok(None) => (self.gap(*hash)?.until, None),
                Err(fault) => (self.gap_for(fault, *hash)?.until, None),
            };
            let (here, beyond) = rest.split_at(rest.partition_point(|hash| *hash <= until));
            if let Some(page) = page {
                here.iter().for_each(|hash| page.find(*hash, &mut found));
            }
            rest = beyond;
        }
        Ok(())
    }

    /// Inserts empty leaves in place of unreadable or missing ones; returns true if there were any.
    pub(super) fn mend(&self) -> Done<bool> {
        let (mut next, mut mended) = (i64::MIN, false);
        if !exists(self.connection, &format!("SELECT 1 FROM {}", self.table), ())? {
            return Ok(false);
        }
        loop {
            let found = self.sound(next);
            let is_sound = matches!(found, Ok(Some(_)));
            let leaf = self.or_gap(found, next)?;
            if !is_sound {
                self.put(&leaf)?;
                mended = true;
            }
            match leaf.until.checked_add(1) {
                Some(after) => next = after,
                None => return Ok(mended),
            }
        }
    }

    /// Adds sorted pairs; returns the number of new ones.
    pub(super) fn add(&self, pairs: &[HashPair]) -> Done<usize> {
        let mut rest = pairs;
        let mut added = 0;
        while let Some((hash, _)) = rest.first() {
            let mut leaf = self.covering(*hash)?;
            let (here, beyond) = rest.split_at(rest.partition_point(|(hash, _)| *hash <= leaf.until));
            let before = leaf.pairs.len();
            leaf.pairs = merge(&leaf.pairs, here);
            added += leaf.pairs.len() - before;
            leaf.parts().iter().try_for_each(|part| self.put(part))?;
            rest = beyond;
        }
        Ok(added)
    }

    /// Removes sorted pairs; returns those that were not present.
    pub(super) fn remove(&self, pairs: &[HashPair]) -> Done<Vec<HashPair>> {
        let (mut rest, mut missing) = (pairs, Vec::new());
        while let Some((hash, _)) = rest.first() {
            let mut leaf = self.covering(*hash)?;
            let (here, beyond) = rest.split_at(rest.partition_point(|(hash, _)| *hash <= leaf.until));
            let before = leaf.pairs.len();
            for pair in here {
                match leaf.pairs.binary_search(pair) {
                    Ok(at) => drop(leaf.pairs.remove(at)),
                    Err(_) => missing.push(*pair),
                }
            }
            if leaf.pairs.len() < before {
                self.put(&leaf)?;
            }
            rest = beyond;
        }
        Ok(missing)
    }

    /// Empties leaves, beginning at a hash, until `most` pairs are taken or the last leaf is emptied.
    pub(super) fn take(&self, from: i64, most: usize) -> Done<Taken> {
        let mut taken = Taken { pairs: Vec::new(), next: from };
        loop {
            let mut leaf = self.covering(taken.next)?;
            // Behind the last leaf comes the first.
            taken.next = leaf.until.checked_add(1).unwrap_or(i64::MIN);
            if !leaf.pairs.is_empty() {
                // The leaf stays, empty: leaves must cover all hashes, and a gap counts as damage.
                taken.pairs.append(&mut leaf.pairs);
                self.put(&leaf)?;
            }
            if taken.next == i64::MIN || taken.pairs.len() >= most {
                return Ok(taken);
            }
        }
    }

    fn covering(&self, hash: i64) -> Done<Leaf> {
        self.or_gap(self.sound(hash), hash)
    }

    /// Reads the leaf that covers a hash.
    fn sound(&self, hash: i64) -> Done<Option<Leaf>> {
        one(self.connection, &self.covering_sql(), [hash], |row| {
            let page = StoredLeaf::of_row(row, hash)?;
            let pairs: Vec<HashPair> = (0..page.count()).map(|at| page.pair(at)).collect();
            let leaf = Leaf { first: row.get(0)?, until: page.until, pairs };
            if leaf.is_in_order() { Ok(leaf) } else { Err(damaged("a leaf of token hashes in no order")) }
        })
    }

    /// Returns the leaf read, or an empty one in its place.
    fn or_gap(&self, found: Done<Option<Leaf>>, hash: i64) -> Done<Leaf> {
        match found {
            Ok(Some(leaf)) => Ok(leaf),
            Ok(None) => self.gap(hash),
            Err(fault) => self.gap_for(fault, hash),
        }
    }

    fn gap_for(&self, fault: SqlError, hash: i64) -> Done<Leaf> {
        if !fault.is_damage() {
            return Err(fault);
        }
        let gap = self.gap(hash)?;
        crate::sql::note_damage(self.connection, self.table, gap.first, &fault);
        Ok(gap)
    }

    /// Returns an empty leaf for hashes that no leaf covers, and records that they are to be rebuilt.
    fn gap(&self, hash: i64) -> Done<Leaf> {
        // A different text from `covering_sql`: a caller in `find` is using that statement, so that the statement cache would not have it
        // and it would be parsed for each hash.
        let sql = format!(
            "SELECT first, leaf FROM {} WHERE first <= ?1 ORDER BY first DESC LIMIT 1 /* gap */",
            self.table
        );
        let before = one(self.connection, &sql, [hash], |row| {
            let first = row.get(0)?;
            let page = row.maybe_bytes(1).ok().flatten().and_then(StoredLeaf::decode);
            // An end before its beginning, or beyond the hash, is damaged as well.
            let until = page.map(|page| page.until).filter(|until| (first..hash).contains(until));
            Ok(until.map_or(first, |until| until + 1))
        })?;
        let sql = format!("SELECT min(first) FROM {} WHERE first > ?1", self.table);
        let after = one(self.connection, &sql, [hash], |row| row.get::<Option<i64>>(0))?.flatten();
        // An empty table has lost nothing.
        if before.or(after).is_some() {
            Leftover::of(LeftoverKind::Hashes, 0).note_if_writing(self.connection)?;
        }
        let (first, until) = (before.unwrap_or(i64::MIN), after.map_or(i64::MAX, |after| after - 1));
        Ok(Leaf { first, until, pairs: Vec::new() })
    }

    fn covering_sql(&self) -> String {
        format!("SELECT first, leaf FROM {} WHERE first <= ?1 ORDER BY first DESC LIMIT 1", self.table)
    }

    fn put(&self, leaf: &Leaf) -> Done<()> {
        let sql = format!("INSERT OR REPLACE INTO {} (first, leaf) VALUES (?1, ?2)", self.table);
        run(self.connection, &sql, params![leaf.first, leaf.encode()]).map(drop)
    }
}

/// The pairs with a hash between two, both included.
struct Leaf {
    first: i64,
    until: i64,
    pairs: Vec<HashPair>,
}

impl Leaf {
    /// Returns true if the pairs are sorted and within the leaf's range.
    fn is_in_order(&self) -> bool {
        let ends = [self.pairs.first(), self.pairs.last()];
        let within = ends.iter().flatten().all(|(hash, _)| (self.first..=self.until).contains(hash));
        within && self.pairs.is_sorted()
    }

    /// Splits a leaf with too many pairs; equal hashes stay together, however many there are.
    fn parts(self) -> Vec<Self> {
        if self.pairs.len() <= ROOM_COUNT {
            return vec![self];
        }
        let (mut rest, mut first) = (self.pairs.as_slice(), self.first);
        // Evenly, so that the last part is not left nearly empty.
        let each = rest.len().div_ceil(rest.len().div_ceil(PART_COUNT));
        let mut parts = Vec::new();
        loop {
            let last = rest.get(each - 1).map_or(i64::MAX, |(hash, _)| *hash);
            let (here, beyond) = rest.split_at(rest.partition_point(|(hash, _)| *hash <= last));
            // Up to where the next part begins: a hash that comes later must fall into one of them.
            let until = if beyond.is_empty() { self.until } else { last };
            parts.push(Self { first, until, pairs: here.to_vec() });
            if beyond.is_empty() {
                return parts;
            }
            (rest, first) = (beyond, last + 1);
        }
    }

    /// Writes the last hash, the count, the pairs and zeros: all little-endian.
    fn encode(&self) -> Vec<u8> {
        let length = HEAD_BYTES + PAIR_BYTES * self.pairs.len().max(ROOM_COUNT);
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&self.until.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(self.pairs.len()).unwrap_or(u32::MAX).to_le_bytes());
        for (hash, device) in &self.pairs {
            debug_assert!((hash | device) >> BITS == 0, "a number of more bits than are kept");
            bytes.extend_from_slice(&hash.to_le_bytes()[..NUMBER_BYTES]);
            bytes.extend_from_slice(&device.to_le_bytes()[..NUMBER_BYTES]);
        }
        bytes.resize(length, 0);
        bytes
    }
}

/// A leaf in its stored form.
struct StoredLeaf<'a> {
    until: i64,
    pairs: &'a [[u8; PAIR_BYTES]],
}

impl<'a> StoredLeaf<'a> {
    /// Reads the leaf in a row, which must cover a hash.
    fn of_row(row: &'a Row<'_>, hash: i64) -> Done<Self> {
        let page =
            Self::decode(row.bytes(1)?).ok_or_else(|| damaged("a leaf of token hashes that is cut off"))?;
        if page.until < hash {
            return Err(damaged("a token hash that no leaf covers"));
        }
        Ok(page)
    }

    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (until, rest) = bytes.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (pairs, _) = rest.as_chunks();
        let pairs = pairs.get(..usize::try_from(u32::from_le_bytes(*count)).ok()?)?;
        Some(Self { until: i64::from_le_bytes(*until), pairs })
    }

    fn count(&self) -> usize {
        self.pairs.len()
    }

    fn pair(&self, at: usize) -> HashPair {
        read(&self.pairs[at])
    }

    fn find(&self, hash: i64, found: &mut impl FnMut(HashPair)) {
        let from = self.pairs.partition_point(|pair| read(pair).0 < hash);
        self.pairs[from..].iter().map(read).take_while(|pair| pair.0 == hash).for_each(found);
    }
}

fn read(bytes: &[u8; PAIR_BYTES]) -> HashPair {
    let [a, b, c, d, e, f, g, h, i, j] = *bytes;
    (i64::from_le_bytes([a, b, c, d, e, 0, 0, 0]), i64::from_le_bytes([f, g, h, i, j, 0, 0, 0]))
}

/// Merges two lists in order into one in order without repeats.
fn merge(old: &[HashPair], new: &[HashPair]) -> Vec<HashPair> {
    let mut merged = Vec::with_capacity(old.len() + new.len());
    let mut rest = old;
    for pair in new {
        let (before, after) = rest.split_at(rest.partition_point(|old| old < pair));
        merged.extend_from_slice(before);
        if after.first() != Some(pair) && merged.last() != Some(pair) {
            merged.push(*pair);
        }
        rest = after;
    }
    merged.extend_from_slice(rest);
    merged
}

#[cfg(test)]
mod tests;
