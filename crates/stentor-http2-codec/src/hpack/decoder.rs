//! The decoder of header blocks.

use super::field::{Field, FieldKind};
use super::huffman;
use super::integer::read_integer;
use super::malformed::Malformed;
use super::table::{TABLE_DEFAULT_BYTES, Table};

const INDEXED: u8 = 0x80;
const LITERAL_ENTERING: u8 = 0x40;
const TABLE_SIZE: u8 = 0x20;
const TABLE_SIZE_MASK: u8 = 0xe0;
const HUFFMAN: u8 = 0x80;

/// Prefix bits of the index of a literal that enters the table. [`PASSING_BITS`] is the same for a literal that does not.
const ENTERING_BITS: u32 = 6;
const PASSING_BITS: u32 = 4;

/// Receives the fields of a header block, in their order.
pub trait FieldReader<K> {
    /// Receives one field.
    fn field(&mut self, field: Field<'_, K>);

    /// Returns true while the reader needs more fields of this block. After that, fields that change no table are checked but not decoded.
    fn wants_more(&self) -> bool {
        true
    }
}

impl<K, F: FnMut(Field<'_, K>)> FieldReader<K> for F {
    #[inline]
    fn field(&mut self, field: Field<'_, K>) {
        self(field);
    }
}

/// The decoding side of one connection's header compression.
#[derive(Debug)]
pub struct Decoder<K> {
    pub(super) table: Table<K>,
    /// Scratch space for decoding Huffman strings; it never shrinks.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl<K: FieldKind> Default for Decoder<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: FieldKind> Decoder<K> {
    /// Makes the decoder of a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self { table: Table::new(), name: Vec::new(), value: Vec::new() }
    }

    /// Returns the largest size of the table.
    #[must_use]
    pub const fn table_bytes(&self) -> usize {
        self.table.max_bytes()
    }

    /// Decodes one whole header block.
    pub fn decode(&mut self, block: &[u8], into: &mut impl FieldReader<K>) -> Result<(), Malformed> {
        let mut rest = self.resize(block)?;
        while let Some(first) = rest.first() {
            rest = if first & INDEXED != 0 {
                let (index, after) = read_integer(rest, 7)?;
                let field = self.table.get(index).ok_or(NO_SUCH_ENTRY)?;
                if into.wants_more() {
                    into.field(field);
                }
                after
            } else if first & LITERAL_ENTERING != 0 {
                self.literal(rest, ENTERING_BITS, into)?
            } else if first & TABLE_SIZE != 0 {
                return Err(Malformed("a table size update stands after a field"));
            } else if into.wants_more() {
                self.literal(rest, PASSING_BITS, into)?
            } else {
                self.skip_literal(rest)?
            };
        }
        Ok(())
    }

    /// Applies the size updates at the beginning of a block.
    #[inline]
    fn resize<'b>(&mut self, block: &'b [u8]) -> Result<&'b [u8], Malformed> {
        let mut rest = block;
        while rest.first().is_some_and(|first| first & TABLE_SIZE_MASK == TABLE_SIZE) {
            let (bytes, after) = read_integer(rest, 5)?;
            if bytes > TABLE_DEFAULT_BYTES {
                return Err(Malformed("a table size update is above the limit"));
            }
            self.table.resize(bytes);
            rest = after;
        }
        Ok(rest)
    }

    #[inline]
    fn literal<'b>(
        &mut self,
        block: &'b [u8],
        prefix_bits: u32,
        into: &mut impl FieldReader<K>,
    ) -> Result<&'b [u8], Malformed> {
        let enters = prefix_bits == ENTERING_BITS;
        let (index, rest) = read_integer(block, prefix_bits)?;
        if index == 0 {
            let (name, rest) = read_string(rest, &mut self.name)?;
            let (value, rest) = read_string(rest, &mut self.value)?;
            let kind = K::of_name(name).with_value(name, value);
            into.field(Field { kind, name, value });
            if enters {
                self.table.add(kind, name, value);
            }
            return Ok(rest);
        }
        let (value, rest) = read_string(rest, &mut self.value)?;
        let Field { kind, name, .. } = self.table.get(index).ok_or(NO_SUCH_ENTRY)?;
        let kind = kind.with_value(name, value);
        into.field(Field { kind, name, value });
        if enters {
            self.table.add_under(index, kind, value);
        }
        Ok(rest)
    }

    /// Skips a literal that does not enter the table. Its strings are not decoded.
    fn skip_literal<'b>(&self, block: &'b [u8]) -> Result<&'b [u8], Malformed> {
        let (index, mut rest) = read_integer(block, PASSING_BITS)?;
        if index == 0 {
            rest = cut_string(rest)?.2;
        } else {
            self.table.get(index).ok_or(NO_SUCH_ENTRY)?;
        }
        Ok(cut_string(rest)?.2)
    }
}

const NO_SUCH_ENTRY: Malformed = Malformed("a header block names an entry that does not exist");

/// Splits a string off. Returns its Huffman flag, its raw bytes and the rest of the block.
#[inline]
fn cut_string(block: &[u8]) -> Result<(bool, &[u8], &[u8]), Malformed> {
    let coded = block.first().is_some_and(|first| first & HUFFMAN != 0);
    let (length, rest) = read_integer(block, 7)?;
    let (text, rest) = rest.split_at_checked(length).ok_or(Malformed("a header string ends early"))?;
    Ok((coded, text, rest))
}

/// Reads a string. A Huffman string is decoded into the scratch space; a plain string is borrowed from the block.
#[inline]
fn read_string<'text, 'block: 'text>(
    block: &'block [u8],
    scratch: &'text mut Vec<u8>,
) -> Result<(&'text [u8], &'block [u8]), Malformed> {
    let (coded, text, rest) = cut_string(block)?;
    if !coded {
        return Ok((text, rest));
    }
    let room = huffman::max_decoded_bytes(text.len());
    if scratch.len() < room {
        scratch.resize(room, 0);
    }
    let decoded = huffman::decode(text, scratch)?;
    Ok((&scratch[..decoded], rest))
}
