//! Handwritten HTTP/2, for requests that no library would make.

/// The client's first bytes: the preface and empty SETTINGS.
pub(crate) const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;
/// The last frame of a stream; in SETTINGS and PING the same bit is the acknowledgement.
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
/// Length of a frame header.
pub(crate) const HEAD_BYTES: usize = 9;

/// Writes a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Writes the first headers of a request.
pub(crate) fn request(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let first = [(":method", method), (":scheme", "http"), (":authority", "server"), (":path", path)];
    first.iter().chain(more).flat_map(|(name, value)| header(0, name, value)).collect()
}

/// Writes a header as a literal: with 0 it is not indexed, with 0x40 it enters the reader's table (RFC 7541, section 6.2).
pub(crate) fn header(kind: u8, name: &str, value: &str) -> Vec<u8> {
    [&[kind][..], &text(name), &text(value)].concat()
}

/// Writes a text after its length, which is an integer with a prefix of seven bits.
fn text(text: &str) -> Vec<u8> {
    let (mut bytes, length) = (Vec::new(), text.len());
    match length.checked_sub(127) {
        None => bytes.push(length as u8),
        Some(mut rest) => {
            bytes.push(127);
            while rest >= 128 {
                bytes.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            bytes.push(rest as u8);
        }
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
