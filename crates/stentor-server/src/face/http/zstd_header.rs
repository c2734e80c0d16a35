//! Header of a zstd frame (RFC 8878, 3.1.1.1): the required window, known before decompression.

/// First bytes of a frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Result of parsing the first bytes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZstdHeader {
    /// More bytes are needed.
    TooShort,
    /// Not a frame with content.
    Other,
    /// The first frame needs a window of this many bytes.
    Window(u64),
}

/// Parses the header of a body's first frame.
pub(super) fn read(bytes: &[u8]) -> ZstdHeader {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return ZstdHeader::Other;
    }
    let Some((&descriptor, rest)) = bytes.get(MAGIC.len()..).and_then(<[u8]>::split_first) else {
        return ZstdHeader::TooShort;
    };
    let is_single = descriptor & 0b10_0000 != 0;
    if !is_single {
        return rest.first().map_or(ZstdHeader::TooShort, |window| ZstdHeader::Window(window_of(*window)));
    }
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 0b11)];
    let size_bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let Some(size) = rest.get(dictionary_bytes..dictionary_bytes + size_bytes) else {
        return ZstdHeader::TooShort;
    };
    let mut number = [0; 8];
    number[..size_bytes].copy_from_slice(size);
    let added = if size_bytes == 2 { 256 } else { 0 };
    ZstdHeader::Window(u64::from_le_bytes(number).saturating_add(added))
}

fn window_of(byte: u8) -> u64 {
    let base = 1_u64 << (10 + u32::from(byte >> 3));
    base + base / 8 * u64::from(byte & 0b111)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_says_how_large_a_window_it_asks_for() {
        let head = |rest: &[u8]| read(&[&MAGIC[..], rest].concat());
        assert_eq!(head(&[0, 11 << 3]), ZstdHeader::Window(2 << 20));
        assert_eq!(head(&[0, 0b111]), ZstdHeader::Window(1_920));
        assert_eq!(head(&[0b10_0000, 200]), ZstdHeader::Window(200));
        assert_eq!(head(&[0b110_0000, 1, 1]), ZstdHeader::Window(513));
        assert_eq!(head(&[0b1010_0000, 0, 0, 1, 0]), ZstdHeader::Window(65_536));
        for short in [&[][..], &[0], &[0b110_0000, 1]] {
            assert_eq!(head(short), ZstdHeader::TooShort);
        }
        assert_eq!(read(&MAGIC[..2]), ZstdHeader::TooShort);
        assert_eq!(read(b"text"), ZstdHeader::Other);
    }
}
