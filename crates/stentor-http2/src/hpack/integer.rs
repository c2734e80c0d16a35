//! Integers with a prefix of some bits (RFC 7541, section 5.1).

use super::decoder::Malformed;

/// Octets after the prefix that are read at most: enough for 2^28, more than any length here.
const MORE_MAX_OCTETS: usize = 4;

/// Writes `value` with a prefix of `bits`; the bits above the prefix are those of `first`.
pub(crate) fn write(first: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if value < most {
        out.push(first | value as u8);
        return;
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Reads an integer with a prefix of `bits` and takes it off the front of `block`.
pub(super) fn read(block: &mut &[u8], bits: u32) -> Result<usize, Malformed> {
    let (&first, rest) = block.split_first().ok_or(Malformed("a header block ends early"))?;
    *block = rest;
    let most = (1_usize << bits) - 1;
    let prefix = usize::from(first) & most;
    if prefix < most { Ok(prefix) } else { Ok(most + more(block)?) }
}

fn more(block: &mut &[u8]) -> Result<usize, Malformed> {
    let mut value = 0;
    for (at, &octet) in block.iter().take(MORE_MAX_OCTETS).enumerate() {
        value |= (usize::from(octet) & 0x7f) << (7 * at);
        if octet & 0x80 == 0 {
            *block = &block[at + 1..];
            return Ok(value);
        }
    }
    Err(Malformed("an integer of a header block has no end"))
}
