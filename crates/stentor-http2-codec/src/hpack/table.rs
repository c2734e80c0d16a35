//! The tables of header fields: the static one (RFC 7541, appendix A) and the dynamic one.

use std::collections::VecDeque;

use super::field::{ENTRY_OVERHEAD_BYTES, Field, FieldKind};

/// Initial size of a dynamic table (RFC 9113, section 6.5.2), and the largest size in use.
pub const TABLE_DEFAULT_BYTES: usize = 4_096;
/// Size of the arena before it is compacted: space for one table and three more of evicted entries, so that compaction costs less than a
/// copy for each entry.
const ARENA_BYTES: usize = 4 * TABLE_DEFAULT_BYTES;

/// Entries of the static table; index 1 is the first.
pub(super) const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// One entry of the dynamic table. Its texts are in the arena, the value after the name.
#[derive(Debug, Clone, Copy)]
struct Entry<K> {
    kind: K,
    start: u32,
    name_bytes: u32,
    value_bytes: u32,
}

impl<K: Copy> Entry<K> {
    fn bytes(self) -> usize {
        self.text_bytes() + ENTRY_OVERHEAD_BYTES
    }

    fn text_bytes(self) -> usize {
        (self.name_bytes + self.value_bytes) as usize
    }
}

/// Both tables of one direction of a connection. The dynamic table keeps its newest entry last and stores all texts in one arena.
#[derive(Debug)]
pub(super) struct Table<K> {
    /// The kinds of the static entries, computed once.
    static_kinds: [K; STATIC.len()],
    entries: VecDeque<Entry<K>>,
    /// The texts of the entries, in their order and without gaps, after the texts of evicted entries.
    arena: Vec<u8>,
    bytes: usize,
    max_bytes: usize,
}

impl<K: FieldKind> Table<K> {
    pub(super) fn new() -> Self {
        Self {
            static_kinds: STATIC.map(|(name, value)| {
                K::of_name(name.as_bytes()).with_value(name.as_bytes(), value.as_bytes())
            }),
            entries: VecDeque::new(),
            arena: Vec::new(),
            bytes: 0,
            max_bytes: TABLE_DEFAULT_BYTES,
        }
    }

    /// Returns the largest size of the dynamic table.
    pub(super) const fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Resolves an index (RFC 7541, section 2.3.3); `None` if there is no such entry.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<Field<'_, K>> {
        let at = index.checked_sub(1)?;
        if let Some((name, value)) = STATIC.get(at) {
            let kind = self.static_kinds[at];
            return Some(Field { kind, name: name.as_bytes(), value: value.as_bytes() });
        }
        self.dynamic(at - STATIC.len()).map(|entry| self.field(entry))
    }

    /// Lists the names and values of both tables in the order of their indices, the first of which is 1.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let fixed = STATIC.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let own = self.entries.iter().rev().map(|entry| self.field(*entry));
        fixed.chain(own.map(|field| (field.name, field.value)))
    }

    /// Adds an entry. An entry larger than the table empties the table instead (RFC 7541, section 4.4).
    pub(super) fn add(&mut self, kind: K, name: &[u8], value: &[u8]) {
        if !self.make_room(name.len() + value.len()) {
            return;
        }
        let start = self.arena.len();
        self.arena.extend_from_slice(name);
        self.arena.extend_from_slice(value);
        self.push(kind, start, name.len(), value.len());
    }

    /// Adds an entry with the name of an existing entry.
    pub(super) fn add_under(&mut self, index: usize, kind: K, value: &[u8]) {
        let Some(Field { name, .. }) = self.get(index) else { return };
        if index <= STATIC.len() {
            let name = STATIC[index - 1].0;
            return self.add(kind, name.as_bytes(), value);
        }
        let name_bytes = name.len();
        if !self.make_room(name_bytes + value.len()) {
            return;
        }
        // Resolved again, because `make_room` may have moved the texts. It evicted nothing, so the entry still exists.
        let Some(name_at) = self.dynamic(index - 1 - STATIC.len()).map(|entry| entry.start as usize) else {
            return;
        };
        let start = self.arena.len();
        self.arena.extend_from_within(name_at..name_at + name_bytes);
        self.arena.extend_from_slice(value);
        self.push(kind, start, name_bytes, value.len());
    }

    /// Sets the size limit (RFC 7541, section 4.3), at most the default.
    pub(super) fn resize(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes.min(TABLE_DEFAULT_BYTES);
        self.evict_to(self.max_bytes);
    }

    /// Removes the `count` newest entries.
    pub(super) fn remove_newest(&mut self, count: usize) {
        for _ in 0..count {
            let Some(newest) = self.entries.pop_back() else { return };
            self.bytes -= newest.bytes();
            self.arena.truncate(newest.start as usize);
        }
    }

    #[inline]
    fn dynamic(&self, age: usize) -> Option<Entry<K>> {
        let place = self.entries.len().checked_sub(age + 1)?;
        self.entries.get(place).copied()
    }

    #[inline]
    fn field(&self, entry: Entry<K>) -> Field<'_, K> {
        let texts = &self.arena[entry.start as usize..][..entry.text_bytes()];
        let (name, value) = texts.split_at(entry.name_bytes as usize);
        Field { kind: entry.kind, name, value }
    }

    /// Makes room in the arena. An entry larger than the table empties it instead; then the method returns false.
    fn make_room(&mut self, text_bytes: usize) -> bool {
        if text_bytes + ENTRY_OVERHEAD_BYTES > self.max_bytes {
            self.evict_to(0);
            return false;
        }
        if self.arena.len() + text_bytes > ARENA_BYTES {
            self.move_together();
        }
        true
    }

    fn push(&mut self, kind: K, start: usize, name_bytes: usize, value_bytes: usize) {
        let (start, name_bytes, value_bytes) = (start as u32, name_bytes as u32, value_bytes as u32);
        let entry = Entry { kind, start, name_bytes, value_bytes };
        // Evicts only after the name was copied, because the evicted entry may be its source.
        self.evict_to(self.max_bytes - entry.bytes());
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
    }

    fn evict_to(&mut self, bytes: usize) {
        while self.bytes > bytes {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    fn move_together(&mut self) {
        let start = self.entries.front().map_or(self.arena.len(), |entry| entry.start as usize);
        self.arena.copy_within(start.., 0);
        self.arena.truncate(self.arena.len() - start);
        for entry in &mut self.entries {
            entry.start -= start as u32;
        }
    }
}

#[cfg(test)]
impl<K: FieldKind> Table<K> {
    /// Returns the number of entries in the dynamic table and its size in bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.entries.len(), self.bytes)
    }
}
