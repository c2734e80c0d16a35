//! Integers and strings of header blocks (RFC 7541, sections 5.1 and 5.2).

use super::huffman;

/// Larger integers than any limit of ours are refused before they overflow.
const MAX_INTEGER: usize = 1 << 28;
const HUFFMAN: u8 = 0x80;

/// Reads an integer with a prefix of some bits; returns it and what follows. Fails when it is cut off or too large.
#[inline]
pub(super) fn read_integer(block: &[u8], prefix_bits: u32) -> Result<(usize, &[u8]), ()> {
    let (first, mut rest) = block.split_first().ok_or(())?;
    let limit = (1_usize << prefix_bits) - 1;
    let mut value = usize::from(*first) & limit;
    if value < limit {
        return Ok((value, rest));
    }
    for shift in [0, 7, 14, 21, 28] {
        let (byte, after) = rest.split_first().ok_or(())?;
        rest = after;
        value += usize::from(byte & 0x7f) << shift;
        if value > MAX_INTEGER {
            return Err(());
        }
        if byte & 0x80 == 0 {
            return Ok((value, rest));
        }
    }
    Err(())
}

/// Reads a string; one in Huffman code is decoded into the scratch space, which only ever grows.
#[inline]
pub(super) fn read_string<'text, 'block: 'text>(
    block: &'block [u8],
    scratch: &'text mut Vec<u8>,
) -> Result<(&'text [u8], &'block [u8]), ()> {
    let huffman = block.first().ok_or(())? & HUFFMAN != 0;
    let (length, rest) = read_integer(block, 7)?;
    let (text, rest) = rest.split_at_checked(length).ok_or(())?;
    if !huffman {
        return Ok((text, rest));
    }
    let room = huffman::max_decoded_bytes(length);
    if scratch.len() < room {
        scratch.resize(room, 0);
    }
    let decoded = huffman::decode(text, scratch)?;
    Ok((&scratch[..decoded], rest))
}
