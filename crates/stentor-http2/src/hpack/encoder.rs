//! Writes header blocks: what repeats goes into the table once and is one byte from then on.

use super::table::{STATIC, Table};
use super::{ENTRY_OVERHEAD_BYTES, TABLE_DEFAULT_BYTES, integer};

const INDEXED: u8 = 0x80;
const LITERAL_ENTERING: u8 = 0x40;
const LITERAL: u8 = 0x00;
const TABLE_SIZE: u8 = 0x20;

/// A field that many requests share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// Whether it will come so often that it earns a place in the table.
    pub(crate) repeats: bool,
}

impl Field {
    fn size(&self) -> usize {
        self.name.len() + self.value.len() + ENTRY_OVERHEAD_BYTES
    }
}

/// A point to which the encoder can go back when what it wrote since is not sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    inserted: u64,
    shrunk_to: Option<usize>,
    resize: bool,
}

impl Mark {
    /// Returns the generation at that point.
    pub(crate) const fn generation(&self) -> u64 {
        self.inserted
    }
}

/// The writing side of one connection's header compression.
#[derive(Debug)]
pub(crate) struct Encoder {
    table: Table,
    inserted: u64,
    /// The smallest limit the peer has set since the last block, and whether there was any.
    shrunk_to: Option<usize>,
    resize: bool,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self { table: Table::new(), inserted: 0, shrunk_to: None, resize: false }
    }

    /// Obeys SETTINGS_HEADER_TABLE_SIZE; the next block says so (RFC 7541, section 4.2).
    pub(crate) fn limit(&mut self, peer_max: usize) {
        let max = peer_max.min(TABLE_DEFAULT_BYTES);
        if max == self.table.max() && self.shrunk_to.is_none() {
            return;
        }
        self.shrunk_to = Some(self.shrunk_to.map_or(max, |least| least.min(max)));
        self.resize = true;
        self.table.resize(max);
    }

    /// Returns the largest size of the table.
    pub(crate) const fn table_bytes(&self) -> usize {
        self.table.max()
    }

    /// Changes whenever bytes written for the same fields would be others.
    pub(crate) const fn generation(&self) -> u64 {
        self.inserted
    }

    /// Returns whether the next block must begin with an announcement of the table's size.
    pub(crate) const fn is_resized(&self) -> bool {
        self.resize
    }

    /// Begins a block.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.resize) {
            return;
        }
        let max = self.table.max();
        if let Some(least) = self.shrunk_to.take().filter(|least| *least < max) {
            integer::write(TABLE_SIZE, 5, least, out);
        }
        integer::write(TABLE_SIZE, 5, max, out);
    }

    /// Writes a shared field, and puts it into the table if it repeats: it is one byte from then on.
    pub(crate) fn enter(&mut self, field: &Field, out: &mut Vec<u8>) {
        let found = self.find(&field.name, &field.value);
        let enters = field.repeats && field.size() <= self.table.max() / 2;
        if matches!(found, Found::Whole(_)) || !enters {
            return write_found(found, field, out);
        }
        let name_at = if let Found::Name(index) = found { index } else { 0 };
        integer::write(LITERAL_ENTERING, 6, name_at, out);
        if name_at == 0 {
            write_string(&field.name, out);
        }
        write_string(&field.value, out);
        self.table.insert(&field.name, &field.value);
        self.inserted += 1;
    }

    /// Writes a shared field as the table is now.
    pub(crate) fn field(&self, field: &Field, out: &mut Vec<u8>) {
        write_found(self.find(&field.name, &field.value), field, out);
    }

    /// Remembers where the encoder stands before a block.
    pub(crate) const fn mark(&self) -> Mark {
        Mark { inserted: self.inserted, shrunk_to: self.shrunk_to, resize: self.resize }
    }

    /// Forgets a block that is not sent.
    ///
    /// Entries that it evicted stay evicted here and stand in the peer's table behind all of ours, where they change
    /// no index and go first.
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        self.table.remove_newest((self.inserted - mark.inserted) as usize);
        // Never an old number for other entries.
        self.inserted += 1;
        (self.shrunk_to, self.resize) = (mark.shrunk_to, mark.resize);
    }

    fn find(&self, name: &[u8], value: &[u8]) -> Found {
        let fixed = STATIC.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let own = self.table.iter().map(|entry| (entry.name(), entry.value()));
        let mut found = Found::Nothing;
        for (at, (known_name, known_value)) in fixed.chain(own).enumerate() {
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

fn write_found(found: Found, field: &Field, out: &mut Vec<u8>) {
    match found {
        Found::Whole(index) => integer::write(INDEXED, 7, index, out),
        Found::Name(index) => {
            integer::write(LITERAL, 4, index, out);
            write_string(&field.value, out);
        }
        Found::Nothing => literal(&field.name, &field.value, out),
    }
}

/// Writes a field that no table shall keep.
pub(crate) fn literal(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(LITERAL);
    write_string(name, out);
    write_string(value, out);
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    integer::write(0, 7, text.len(), out);
    out.extend_from_slice(text);
}
