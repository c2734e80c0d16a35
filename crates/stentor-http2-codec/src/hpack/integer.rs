//! Prefixed integers (RFC 7541, section 5.1).

use super::malformed::Malformed;

/// Largest accepted integer: above every length in use, and small enough that no sum overflows.
const INTEGER_MAX: usize = 1 << 28;
/// Shift of each octet after the prefix: as many octets as [`INTEGER_MAX`] may need.
const SHIFTS: [u32; 5] = [0, 7, 14, 21, 28];

/// Appends `value` with a prefix of `bits`; the bits above the prefix are those of `first`.
#[inline]
pub fn write_integer(first: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
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

/// Reads an integer with a prefix of `bits`; returns it with the rest of the block.
#[inline]
pub(super) fn read_integer(block: &[u8], bits: u32) -> Result<(usize, &[u8]), Malformed> {
    let (first, mut rest) = block.split_first().ok_or(CUT_OFF)?;
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value < most {
        return Ok((value, rest));
    }
    for shift in SHIFTS {
        let (octet, after) = rest.split_first().ok_or(CUT_OFF)?;
        rest = after;
        value += usize::from(octet & 0x7f) << shift;
        if value > INTEGER_MAX {
            break;
        }
        if octet & 0x80 == 0 {
            return Ok((value, rest));
        }
    }
    Err(Malformed("an integer of a header block is too large or has no end"))
}

const CUT_OFF: Malformed = Malformed("a header block ends early");
