//! A `:scheme` of "https:" with a colon, as firebase-admin for Node writes it over HTTP/2.
//!
//! FCM takes it, but `h2` refuses the stream. So it is mended before `h2` sees it: the header block is walked field
//! by field (RFC 7541, section 6), and only the value of a literal `:scheme` is ever changed.

#[cfg(test)]
mod tests;

const FLAG_PADDED: u8 = 0x08;
const FLAG_PRIORITY: u8 = 0x20;
const PRIORITY_BYTES: usize = 5;
/// A length octet and "https:" in Huffman code (RFC 7541, appendix B), the only form that clients write.
const WITH_COLON: &[u8; 6] = &[0x85, 0x9d, 0x29, 0xad, 0x17, 0x3f];
/// A length octet and "https" in plain octets: as long as the former, so that nothing behind it moves.
const WITHOUT_COLON: &[u8; 6] = b"\x05https";
/// The indices of `:scheme` in the static table.
const SCHEME: std::ops::RangeInclusive<usize> = 6..=7;

/// Takes the colon out of each literal `:scheme` in the payload of a HEADERS frame.
///
/// A mended entry of the dynamic table is one byte shorter here than at the client. The table here thus holds all
/// that the client's holds and perhaps older entries, and as indices count from the newest, both find the same.
pub(super) fn mend_scheme(flags: u8, payload: &mut [u8]) {
    let Some(mut block) = block_of(flags, payload) else { return };
    while let Some(field) = Field::read(block) {
        if field.name_index.is_some_and(|index| SCHEME.contains(&index))
            && let Some(value) = block.get_mut(field.value_start..field.end)
            && value == WITH_COLON
        {
            value.copy_from_slice(WITHOUT_COLON);
        }
        block = &mut block[field.end..];
    }
}

/// Returns the header block between what the flags put before it and the padding (RFC 9113, section 6.2).
fn block_of(flags: u8, payload: &mut [u8]) -> Option<&mut [u8]> {
    let mut start = 0;
    let mut end = payload.len();
    if flags & FLAG_PADDED != 0 {
        end = end.checked_sub(usize::from(*payload.first()?))?;
        start = 1;
    }
    if flags & FLAG_PRIORITY != 0 {
        start += PRIORITY_BYTES;
    }
    payload.get_mut(start..end)
}

/// Where the parts of one field representation are.
struct Field {
    /// The table index of a literal's name.
    name_index: Option<usize>,
    value_start: usize,
    end: usize,
}

impl Field {
    /// Reads the representation at the front of a block; `None` when it is not whole.
    fn read(block: &[u8]) -> Option<Self> {
        let first = *block.first()?;
        let (prefix_bits, has_value) = match first {
            0x80.. => (7, false),
            0x40.. => (6, true),
            0x20.. => (5, false),
            _ => (4, true),
        };
        let (index, index_end) = integer(block, 0, prefix_bits)?;
        if !has_value {
            return Some(Self { name_index: None, value_start: index_end, end: index_end });
        }
        let value_start = if index == 0 { text_end(block, index_end)? } else { index_end };
        Some(Self { name_index: Some(index), value_start, end: text_end(block, value_start)? })
    }
}

/// Returns where the text that starts here ends.
fn text_end(block: &[u8], start: usize) -> Option<usize> {
    let (length, length_end) = integer(block, start, 7)?;
    length_end.checked_add(length).filter(|end| *end <= block.len())
}

/// Reads an integer with a prefix (RFC 7541, section 5.1) and returns it with its end.
fn integer(block: &[u8], start: usize, prefix_bits: u32) -> Option<(usize, usize)> {
    let prefix = (1_usize << prefix_bits) - 1;
    let mut value = usize::from(*block.get(start)?) & prefix;
    let mut end = start + 1;
    if value < prefix {
        return Some((value, end));
    }
    for shift in [0, 7, 14, 21] {
        let byte = usize::from(*block.get(end)?);
        end += 1;
        value += (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value, end));
        }
    }
    None
}
