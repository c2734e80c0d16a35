//! Encoding of header fields without a dynamic table.

use super::integer::write_integer;

const INDEXED: u8 = 0x80;
const LITERAL: u8 = 0x00;
const TABLE_SIZE: u8 = 0x20;
/// `:status` in the static table.
const STATUS_INDEX: u8 = 8;

/// Appends a literal field that enters no table. Its strings are plain octets: they are as short as Huffman code, or cheaper to read.
#[inline]
pub fn write_literal(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(LITERAL);
    write_string(name, out);
    write_string(value, out);
}

/// Appends a status as the first field of a header block.
pub fn write_status(status: u16, out: &mut Vec<u8>) {
    // Hard-coded instead of searched in the static table, because every response of a server begins with a status.
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
        Some(index) => out.push(INDEXED | index),
        None => {
            let digits = [status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
            out.push(LITERAL | STATUS_INDEX);
            write_string(&digits, out);
        }
    }
}

/// Appends a size update of the dynamic table, which is allowed only at the beginning of a block (RFC 7541, section 4.2).
pub fn write_table_size(bytes: usize, out: &mut Vec<u8>) {
    write_integer(TABLE_SIZE, 5, bytes, out);
}

/// Appends a string without Huffman code.
#[inline]
pub(super) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    write_integer(0, 7, text.len(), out);
    out.extend_from_slice(text);
}
