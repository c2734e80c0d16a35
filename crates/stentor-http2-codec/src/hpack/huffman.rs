//! Huffman code of header strings (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes ascend with their length, and codes of one length ascend with the symbol. Therefore the table of lengths
//! defines the whole code.

use std::sync::LazyLock;

use super::malformed::Malformed;

/// The length of every symbol's code in bits; the last one is the end of string.
const CODE_BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];
const MAX_CODE_BITS: usize = 30;
const MAX_PADDING_BITS: u32 = 7;
/// Bits decoded by one table look-up; wide enough for two digits of a push token.
const LOOK_BITS: u32 = 12;

const END_OF_STRING: Malformed = Malformed("a Huffman string holds the end-of-string code");
const BAD_PADDING: Malformed = Malformed("a Huffman string is padded wrongly");

static CODE: LazyLock<Box<Code>> = LazyLock::new(Code::build);

/// An entry of the look-up table: up to two symbols. An entry without symbols stands for a code longer than a look-up.
#[derive(Clone, Copy, Default)]
struct Look {
    symbols: [u8; 2],
    count: u8,
    bits: u8,
}

struct Code {
    looks: [Look; 1 << LOOK_BITS],
    /// By length: the first code of that length, and the index of its symbol in `ordered`.
    first: [(u32, u16); MAX_CODE_BITS + 2],
    ordered: [u16; CODE_BITS.len()],
}

impl Code {
    fn build() -> Box<Self> {
        let mut code = Box::new(Self {
            looks: [Look::default(); 1 << LOOK_BITS],
            first: [(0, 0); MAX_CODE_BITS + 2],
            ordered: [0; CODE_BITS.len()],
        });
        code.order();
        for index in 0..code.looks.len() {
            code.looks[index] = code.look((index as u32) << (32 - LOOK_BITS));
        }
        code
    }

    fn order(&mut self) {
        let (mut next, mut place) = (0_u32, 0_u16);
        for bits in 1..=MAX_CODE_BITS {
            self.first[bits] = (next, place);
            let symbols = (0..CODE_BITS.len()).filter(|symbol| usize::from(CODE_BITS[*symbol]) == bits);
            for symbol in symbols {
                self.ordered[usize::from(place)] = symbol as u16;
                place += 1;
                next += 1;
            }
            next <<= 1;
        }
        self.first[MAX_CODE_BITS + 1] = (0, place);
    }

    /// Builds the table entry for these bits, left-aligned.
    fn look(&self, bits: u32) -> Look {
        let mut look = Look::default();
        for at in 0..look.symbols.len() {
            let rest = bits << look.bits;
            let Some((symbol, used)) = self.symbol(rest, LOOK_BITS - u32::from(look.bits)) else { break };
            look.symbols[at] = symbol as u8;
            look.bits += used as u8;
            look.count += 1;
        }
        look
    }

    /// Finds the symbol at the start of left-aligned bits, and the length of its code; `None` if the code exceeds `max_bits`.
    fn symbol(&self, bits: u32, max_bits: u32) -> Option<(u16, u32)> {
        (5..=max_bits.min(MAX_CODE_BITS as u32)).find_map(|length| {
            let (first, place) = self.first[length as usize];
            let count = u32::from(self.first[length as usize + 1].1 - place);
            let offset = (bits >> (32 - length)).checked_sub(first).filter(|offset| *offset < count)?;
            Some((self.ordered[usize::from(place) + offset as usize], length))
        })
    }
}

/// Returns the space that decoding may need, in bytes: a code takes five bits or more, and the last look-up may write one byte too many.
pub(super) fn max_decoded_bytes(coded_bytes: usize) -> usize {
    coded_bytes * 8 / 5 + 2
}

/// Decodes a string into a large enough buffer and returns its length. Fails if the string contains the end-of-string code, or if the
/// padding is too long or not all ones.
pub(super) fn decode(coded: &[u8], text: &mut [u8]) -> Result<usize, Malformed> {
    let code = &**CODE;
    let mut bits = Bits { rest: coded, window: 0, held: 0 };
    let mut length = 0;
    loop {
        bits.refill();
        if bits.held < LOOK_BITS {
            return decode_tail(code, bits, text, length);
        }
        while bits.held >= LOOK_BITS {
            let look = code.looks[bits.next_look()];
            if look.count == 0 {
                text[length] = decode_long(code, &mut bits)?;
                length += 1;
                continue;
            }
            // Copying both symbols unconditionally, even if the second is unused, saves an unpredictable branch.
            text[length..length + 2].copy_from_slice(&look.symbols);
            length += usize::from(look.count);
            bits.skip(u32::from(look.bits));
        }
    }
}

/// Decodes a symbol whose code is longer than a look-up.
fn decode_long(code: &Code, bits: &mut Bits<'_>) -> Result<u8, Malformed> {
    bits.refill();
    let (symbol, used) = code.symbol((bits.window >> 32) as u32, bits.held).ok_or(END_OF_STRING)?;
    bits.skip(used);
    // The only symbol beyond one byte is the end of string.
    u8::try_from(symbol).map_err(|_| END_OF_STRING)
}

/// Decodes the last bits, including the padding.
fn decode_tail(
    code: &Code,
    mut bits: Bits<'_>,
    text: &mut [u8],
    mut length: usize,
) -> Result<usize, Malformed> {
    while bits.held > 0 {
        let look = code.looks[bits.next_look()];
        let symbol = look.symbols[0];
        let used = u32::from(CODE_BITS[usize::from(symbol)]);
        if look.count == 0 || used > bits.held {
            return if bits.is_padding() { Ok(length) } else { Err(BAD_PADDING) };
        }
        text[length] = symbol;
        length += 1;
        bits.skip(used);
    }
    Ok(length)
}

/// The next bits of a string, left-aligned, and their number.
struct Bits<'a> {
    rest: &'a [u8],
    window: u64,
    held: u32,
}

impl Bits<'_> {
    fn refill(&mut self) {
        if self.held > 32 {
            return;
        }
        if let Some((four, rest)) = self.rest.split_first_chunk::<4>() {
            self.window |= u64::from(u32::from_be_bytes(*four)) << (32 - self.held);
            self.held += 32;
            self.rest = rest;
            return;
        }
        while let Some((byte, rest)) = self.rest.split_first() {
            self.window |= u64::from(*byte) << (56 - self.held);
            self.held += 8;
            self.rest = rest;
        }
    }

    fn next_look(&self) -> usize {
        (self.window >> (64 - LOOK_BITS)) as usize
    }

    fn skip(&mut self, bits: u32) {
        self.window <<= bits;
        self.held -= bits;
    }

    fn is_padding(&self) -> bool {
        self.held <= MAX_PADDING_BITS && self.window >> (64 - self.held) == (1 << self.held) - 1
    }
}
