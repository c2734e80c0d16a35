//! The static table (RFC 7541, appendix A) and a dynamic one.

use std::collections::VecDeque;

use super::{ENTRY_OVERHEAD_BYTES, TABLE_DEFAULT_BYTES};

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

/// One entry of a dynamic table: its name and value in one piece.
#[derive(Debug, Default)]
pub(super) struct Entry {
    bytes: Vec<u8>,
    name_len: usize,
}

impl Entry {
    pub(super) fn name(&self) -> &[u8] {
        &self.bytes[..self.name_len]
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.bytes[self.name_len..]
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len() + ENTRY_OVERHEAD_BYTES
    }
}

/// A dynamic table: the newest entry first, the oldest evicted when it is full.
#[derive(Debug)]
pub(super) struct Table {
    entries: VecDeque<Entry>,
    /// Evicted entries, whose memory serves the next ones.
    spare: Vec<Entry>,
    size: usize,
    max: usize,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { entries: VecDeque::new(), spare: Vec::new(), size: 0, max: TABLE_DEFAULT_BYTES }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn max(&self) -> usize {
        self.max
    }

    /// Returns the entry inserted `back` entries before the newest.
    pub(super) fn get(&self, back: usize) -> Option<&Entry> {
        self.entries.get(back)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Inserts an entry; one that is larger than the table empties it (RFC 7541, section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        self.shrink_to(self.max.saturating_sub(size));
        if size > self.max {
            return;
        }
        let mut entry = self.spare.pop().unwrap_or_default();
        entry.bytes.clear();
        entry.bytes.extend_from_slice(name);
        entry.bytes.extend_from_slice(value);
        entry.name_len = name.len();
        self.size += size;
        self.entries.push_front(entry);
    }

    pub(super) fn resize(&mut self, max: usize) {
        self.max = max;
        self.shrink_to(max);
    }

    /// Takes the newest entries back.
    pub(super) fn remove_newest(&mut self, count: usize) {
        for entry in self.entries.drain(..count.min(self.entries.len())) {
            self.size -= entry.size();
        }
    }

    fn shrink_to(&mut self, size: usize) {
        while self.size > size {
            let Some(entry) = self.entries.pop_back() else { return };
            self.size -= entry.size();
            self.spare.push(entry);
        }
    }
}
