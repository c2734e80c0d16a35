//! The encoder of header blocks. A repeated field enters the dynamic table once and takes one byte afterwards.

use super::field::ENTRY_OVERHEAD_BYTES;
use super::integer::write_integer;
use super::stateless::{write_literal, write_string, write_table_size};
use super::table::{TABLE_DEFAULT_BYTES, Table};

const INDEXED: u8 = 0x80;
const LITERAL_ENTERING: u8 = 0x40;
const LITERAL: u8 = 0x00;

/// A header field shared by many requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedField {
    /// The name, in lower case.
    pub name: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// True if the field is frequent enough to enter the table.
    pub repeats: bool,
}

impl OwnedField {
    fn size(&self) -> usize {
        self.name.len() + self.value.len() + ENTRY_OVERHEAD_BYTES
    }
}

/// A savepoint of the encoder, for rolling back a block that is not sent.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    inserted: u64,
    shrunk_to: Option<usize>,
    resize: bool,
}

impl Mark {
    /// Returns the generation at that point.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.inserted
    }
}

/// The encoding side of one connection's header compression.
#[derive(Debug)]
pub struct Encoder {
    table: Table<()>,
    inserted: u64,
    /// The smallest limit that the peer set since the last block, if it set one.
    shrunk_to: Option<usize>,
    resize: bool,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// Makes the encoder of a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self { table: Table::new(), inserted: 0, shrunk_to: None, resize: false }
    }

    /// Applies SETTINGS_HEADER_TABLE_SIZE; the next block announces the new size (RFC 7541, section 4.2).
    pub fn limit(&mut self, peer_max: usize) {
        let max = peer_max.min(TABLE_DEFAULT_BYTES);
        if max == self.table.max_bytes() && self.shrunk_to.is_none() {
            return;
        }
        self.shrunk_to = Some(self.shrunk_to.map_or(max, |least| least.min(max)));
        self.resize = true;
        self.table.resize(max);
    }

    /// Returns the largest size of the table.
    #[must_use]
    pub const fn table_bytes(&self) -> usize {
        self.table.max_bytes()
    }

    /// Returns the generation: a number that changes whenever the same fields would be encoded as different bytes.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.inserted
    }

    /// Returns true if the next block must begin with an announcement of the table's size.
    #[must_use]
    pub const fn is_resized(&self) -> bool {
        self.resize
    }

    /// Begins a block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.resize) {
            return;
        }
        let max = self.table.max_bytes();
        // The smallest size first: the peer must evict by it, as this encoder did (RFC 7541, section 4.2).
        if let Some(least) = self.shrunk_to.take().filter(|least| *least < max) {
            write_table_size(least, out);
        }
        write_table_size(max, out);
    }

    /// Writes a shared field. A repeating field also enters the table, and takes one byte afterwards.
    pub fn enter(&mut self, field: &OwnedField, out: &mut Vec<u8>) {
        let found = self.find(&field.name, &field.value);
        // A larger field would fill most of the table by itself.
        let enters = field.repeats && field.size() <= self.table.max_bytes() / 2;
        if matches!(found, Found::Whole(_)) || !enters {
            return write_found(found, field, out);
        }
        let name_at = if let Found::Name(index) = found { index } else { 0 };
        write_integer(LITERAL_ENTERING, 6, name_at, out);
        if name_at == 0 {
            write_string(&field.name, out);
        }
        write_string(&field.value, out);
        self.table.add((), &field.name, &field.value);
        self.inserted += 1;
    }

    /// Writes a shared field without changing the table.
    pub fn field(&self, field: &OwnedField, out: &mut Vec<u8>) {
        write_found(self.find(&field.name, &field.value), field, out);
    }

    /// Returns a savepoint for [`Self::roll_back`].
    #[must_use]
    pub const fn mark(&self) -> Mark {
        Mark { inserted: self.inserted, shrunk_to: self.shrunk_to, resize: self.resize }
    }

    /// Rolls back a block that is not sent.
    ///
    /// Entries evicted by that block stay evicted here. In the peer's table they are older than all entries of this one, so they change no
    /// index and are evicted first.
    pub fn roll_back(&mut self, mark: Mark) {
        self.table.remove_newest((self.inserted - mark.inserted) as usize);
        // Incremented, so that a generation is never reused for other entries.
        self.inserted += 1;
        (self.shrunk_to, self.resize) = (mark.shrunk_to, mark.resize);
    }

    fn find(&self, name: &[u8], value: &[u8]) -> Found {
        let mut found = Found::Nothing;
        for (at, (known_name, known_value)) in self.table.iter().enumerate() {
            if known_name == name {
                if known_value == value {
                    return Found::Whole(at + 1);
                }
                if matches!(found, Found::Nothing) {
                    found = Found::Name(at + 1);
                }
            }
        }
        found
    }
}

enum Found {
    Whole(usize),
    Name(usize),
    Nothing,
}

fn write_found(found: Found, field: &OwnedField, out: &mut Vec<u8>) {
    match found {
        Found::Whole(index) => write_integer(INDEXED, 7, index, out),
        Found::Name(index) => {
            write_integer(LITERAL, 4, index, out);
            write_string(&field.value, out);
        }
        Found::Nothing => write_literal(&field.name, &field.value, out),
    }
}
