//! Header compression (RFC 7541): a full decoder, and an encoder that needs no table.

mod huffman;
mod integer;
mod table;
#[cfg(test)]
mod tests;

use integer::{read_integer, read_string};
use table::Table;

/// The size of the dynamic table that peers may use, in bytes; what applies without a SETTINGS value.
pub(crate) const TABLE_BYTES: usize = 4096;

const INDEXED: u8 = 0x80;
const LITERAL_INDEXED: u8 = 0x40;
const SIZE_UPDATE: u8 = 0x20;

/// What a header field is about, as far as framing or a service wants to know it quickly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Method,
    Scheme,
    Path,
    Authority,
    /// A pseudo-header field that requests do not have.
    Foreign,
    ContentLength,
    ApnsId,
    Te,
    /// A field about a connection, which HTTP/2 does not have (RFC 9113, section 8.2.2).
    Connection,
    /// A name or value that no field can have.
    Invalid,
    Other,
}

impl Kind {
    pub(crate) fn of(name: &[u8]) -> Self {
        match name {
            b":path" => Self::Path,
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b"apns-id" => Self::ApnsId,
            b"content-length" => Self::ContentLength,
            b"te" => Self::Te,
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
                Self::Connection
            }
            [b':', ..] => Self::Foreign,
            name if !is_name(name) => Self::Invalid,
            _ => Self::Other,
        }
    }

    /// Returns the kind of a field with this value, which has no control characters (RFC 9110, section 5.5) and no blanks
    /// around it (RFC 9113, section 8.2.1).
    #[inline]
    fn with_value(self, value: &[u8]) -> Self {
        let bad =
            value.iter().fold(false, |bad, byte| bad | (*byte < b' ' && *byte != b'\t') | (*byte == 0x7f));
        let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if bad || blank(value.first()) || blank(value.last()) { Self::Invalid } else { self }
    }
}

/// Returns whether a field can have this name (RFC 9113, section 8.2.1, and RFC 9110, section 5.6.2).
fn is_name(name: &[u8]) -> bool {
    let allowed =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(allowed)
}

/// One header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) kind: Kind,
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Says that a header block cannot be decoded; the connection's compression state is lost with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undecodable;

impl From<()> for Undecodable {
    fn from((): ()) -> Self {
        Self
    }
}

/// The decoder of one connection.
pub(crate) struct Decoder {
    table: Table,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self { table: Table::new(TABLE_BYTES), name: Vec::new(), value: Vec::new() }
    }

    /// Decodes a whole header block and visits its fields in their order.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        mut visit: impl FnMut(Field<'_>),
    ) -> Result<(), Undecodable> {
        let mut rest = self.resize(block)?;
        while let Some(first) = rest.first() {
            if first & INDEXED != 0 {
                let (index, after) = read_integer(rest, 7)?;
                visit(self.table.get(index).ok_or(Undecodable)?);
                rest = after;
            } else if first & LITERAL_INDEXED != 0 {
                rest = self.literal(rest, 6, true, &mut visit)?;
            } else if first & SIZE_UPDATE != 0 {
                // Allowed at the beginning of a block only.
                return Err(Undecodable);
            } else {
                rest = self.literal(rest, 4, false, &mut visit)?;
            }
        }
        Ok(())
    }

    /// Follows size updates at the beginning of a block.
    #[inline]
    fn resize<'b>(&mut self, block: &'b [u8]) -> Result<&'b [u8], Undecodable> {
        let mut rest = block;
        while rest.first().is_some_and(|first| first & 0xe0 == SIZE_UPDATE) {
            let (bytes, after) = read_integer(rest, 5)?;
            if bytes > TABLE_BYTES {
                return Err(Undecodable);
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
        keep: bool,
        visit: &mut impl FnMut(Field<'_>),
    ) -> Result<&'b [u8], Undecodable> {
        let (index, rest) = read_integer(block, prefix_bits)?;
        if index == 0 {
            let (name, rest) = read_string(rest, &mut self.name)?;
            let (value, rest) = read_string(rest, &mut self.value)?;
            let kind = Kind::of(name).with_value(value);
            visit(Field { kind, name, value });
            if keep {
                self.table.add(kind, name, value);
            }
            return Ok(rest);
        }
        let (value, rest) = read_string(rest, &mut self.value)?;
        let Field { kind, name, .. } = self.table.get(index).ok_or(Undecodable)?;
        // An entry may be invalid because of its value; under its name another value may be valid.
        let kind = if kind == Kind::Invalid { Kind::of(name) } else { kind }.with_value(value);
        visit(Field { kind, name, value });
        if keep {
            self.table.add_under(index, kind, value);
        }
        Ok(rest)
    }
}

/// Writes a status as the first field of a header block.
pub(crate) fn write_status(block: &mut Vec<u8>, status: u16) {
    let index: Option<u8> = match status {
        200 => Some(8),
        204 => Some(9),
        206 => Some(10),
        304 => Some(11),
        400 => Some(12),
        404 => Some(13),
        500 => Some(14),
        _ => None,
    };
    match index {
        Some(index) => block.push(INDEXED | index),
        None => {
            // A literal under the name of the static table's eighth entry.
            block.push(8);
            block.push(3);
            block.extend([status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8));
        }
    }
}

/// Writes a field as a literal that no table keeps.
pub(crate) fn write_field(block: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    block.push(0);
    write_text(block, name);
    write_text(block, value);
}

/// Says that the dynamic table for what we send is empty from now on: we never use it.
pub(crate) fn write_empty_table(block: &mut Vec<u8>) {
    block.push(SIZE_UPDATE);
}

fn write_text(block: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text.len();
    if rest < 0x7f {
        block.push(rest as u8);
    } else {
        block.push(0x7f);
        rest -= 0x7f;
        while rest >= 0x80 {
            block.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        block.push(rest as u8);
    }
    block.extend_from_slice(text);
}
