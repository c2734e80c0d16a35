//! The Huffman code of HPACK (RFC 7541, appendix B), read only: what we write is as short or shorter to decode plain.

use super::decoder::Malformed;

/// Length in bits of each octet's code; the code is canonical, so the lengths say all.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
const SHORTEST_BITS: usize = 5;
const LONGEST_BITS: usize = 30;
/// Bits of padding that may follow the last code.
const PADDING_MAX_BITS: u32 = 7;

/// The canonical code: for each length its first code, and where its octets begin in the order of codes.
struct Code {
    octets: [u8; 256],
    first: [u32; LONGEST_BITS + 2],
    start: [u16; LONGEST_BITS + 2],
}

const CODE: Code = code();

const fn code() -> Code {
    let mut code = Code { octets: [0; 256], first: [0; LONGEST_BITS + 2], start: [0; LONGEST_BITS + 2] };
    let (mut next, mut filled, mut bits) = (0_u32, 0_usize, 1_usize);
    while bits <= LONGEST_BITS + 1 {
        code.first[bits] = next;
        code.start[bits] = filled as u16;
        let mut octet = 0;
        while octet < 256 {
            if LENGTHS[octet] as usize == bits {
                code.octets[filled] = octet as u8;
                filled += 1;
                next += 1;
            }
            octet += 1;
        }
        next <<= 1;
        bits += 1;
    }
    code
}

/// Appends what `coded` stands for.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (mut held, mut bits) = (0_u64, 0_u32);
    for &octet in coded {
        held = held << 8 | u64::from(octet);
        bits += 8;
        while let Some((octet, used)) = symbol(held, bits)? {
            out.push(octet);
            bits -= used;
        }
        held &= (1 << bits) - 1;
    }
    let padding = (1 << bits) - 1;
    if bits <= PADDING_MAX_BITS && held == padding { Ok(()) } else { Err(BAD_PADDING) }
}

const BAD_PADDING: Malformed = Malformed("a Huffman string is padded wrongly");

/// Finds the code at the front of the lowest `bits` of `held`, if it is whole.
fn symbol(held: u64, bits: u32) -> Result<Option<(u8, u32)>, Malformed> {
    for length in SHORTEST_BITS..=LONGEST_BITS {
        let Some(rest) = bits.checked_sub(length as u32) else { return Ok(None) };
        let front = (held >> rest) as u32 & ((1 << length) - 1);
        let place = front - CODE.first[length].min(front);
        let count = u32::from(CODE.start[length + 1] - CODE.start[length]);
        if front >= CODE.first[length] && place < count {
            let octet = CODE.octets[usize::from(CODE.start[length]) + place as usize];
            return Ok(Some((octet, length as u32)));
        }
    }
    Err(Malformed("a Huffman string holds the end-of-string code"))
}
