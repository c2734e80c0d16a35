//! The table of header fields: the static part (RFC 7541, appendix A) and the dynamic one.

use super::{Field, Kind};
use std::collections::VecDeque;

/// What an entry costs besides its texts (RFC 7541, section 4.1).
const ENTRY_BYTES: usize = 32;

const STATIC: [(&str, &str); 61] = [
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

/// The kinds of the static entries, found once.
static STATIC_KINDS: std::sync::LazyLock<[Kind; STATIC.len()]> =
    std::sync::LazyLock::new(|| STATIC.map(|(name, _)| Kind::of(name.as_bytes())));

/// One entry of the dynamic table; its texts lie in the arena, the value behind the name.
#[derive(Clone, Copy)]
struct Entry {
    kind: Kind,
    start: u32,
    name_bytes: u32,
    value_bytes: u32,
}

impl Entry {
    fn bytes(self) -> usize {
        (self.name_bytes + self.value_bytes) as usize + ENTRY_BYTES
    }
}

/// The dynamic table, newest entry last, over one arena that is moved together when its end is reached.
pub(super) struct Table {
    entries: VecDeque<Entry>,
    arena: Vec<u8>,
    bytes: usize,
    max_bytes: usize,
    arena_bytes: usize,
}

impl Table {
    pub(super) fn new(max_bytes: usize) -> Self {
        let arena_bytes = max_bytes * 4;
        let arena = Vec::with_capacity(arena_bytes);
        Self { entries: VecDeque::new(), arena, bytes: 0, max_bytes, arena_bytes }
    }

    /// Looks an index up (RFC 7541, section 2.3.3); `None` when there is no such entry.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<Field<'_>> {
        let index = index.checked_sub(1)?;
        if let Some((name, value)) = STATIC.get(index) {
            let kind = STATIC_KINDS[index];
            return Some(Field { kind, name: name.as_bytes(), value: value.as_bytes() });
        }
        let entry = self.dynamic(index - STATIC.len())?;
        let texts = &self.arena[entry.start as usize..][..(entry.name_bytes + entry.value_bytes) as usize];
        let (name, value) = texts.split_at(entry.name_bytes as usize);
        Some(Field { kind: entry.kind, name, value })
    }

    #[inline]
    fn dynamic(&self, age: usize) -> Option<Entry> {
        let place = self.entries.len().checked_sub(age + 1)?;
        self.entries.get(place).copied()
    }

    /// Adds an entry under the name of another one, which exists.
    pub(super) fn add_under(&mut self, index: usize, kind: Kind, value: &[u8]) {
        let Some(Field { name, .. }) = self.get(index) else { return };
        if index <= STATIC.len() {
            let name = STATIC[index - 1].0;
            return self.add(kind, name.as_bytes(), value);
        }
        let name_bytes = name.len();
        if !self.make_room(name_bytes + value.len()) {
            return;
        }
        // Making room may have moved the texts, and may have evicted this very entry: its bytes are still there.
        let Some(name_at) = self.dynamic(index - 1 - STATIC.len()).map(|entry| entry.start as usize) else {
            return;
        };
        let start = self.arena.len();
        self.arena.extend_from_within(name_at..name_at + name_bytes);
        self.arena.extend_from_slice(value);
        self.push(kind, start, name_bytes, value.len());
    }

    /// Adds an entry.
    pub(super) fn add(&mut self, kind: Kind, name: &[u8], value: &[u8]) {
        if !self.make_room(name.len() + value.len()) {
            return;
        }
        let start = self.arena.len();
        self.arena.extend_from_slice(name);
        self.arena.extend_from_slice(value);
        self.push(kind, start, name.len(), value.len());
    }

    /// Changes the size limit (RFC 7541, section 4.3).
    pub(super) fn resize(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        self.evict_to(max_bytes);
    }

    /// Makes room in the arena; an entry larger than the table empties it and is not kept.
    fn make_room(&mut self, text_bytes: usize) -> bool {
        if text_bytes + ENTRY_BYTES > self.max_bytes {
            self.evict_to(0);
            return false;
        }
        if self.arena.len() + text_bytes > self.arena_bytes {
            self.move_together();
        }
        true
    }

    fn push(&mut self, kind: Kind, start: usize, name_bytes: usize, value_bytes: usize) {
        let (start, name_bytes, value_bytes) = (start as u32, name_bytes as u32, value_bytes as u32);
        let entry = Entry { kind, start, name_bytes, value_bytes };
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
