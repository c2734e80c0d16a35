//! The repair of a `:scheme` field that ends with a colon.
//!
//! A widely used client in Node sends `:scheme: https:`, which is the name of a URL's protocol in JavaScript. The HTTP library resets a
//! request with such a scheme, which RFC 3986, 3.1, does not permit, but the vendor's own servers accept it. The field is repaired before
//! the library reads it. Its encoding (RFC 7541) keeps its length: six letters with Huffman codes become five without.

use std::io;
use std::task::{Context, Poll};

use super::watched::ReadWatch;

/// The beginning of HTTP/2 (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI";
/// The value `https:`: a length and five bytes of Huffman codes.
const WITH_COLON: [u8; 6] = [0x85, 0x9d, 0x29, 0xad, 0x17, 0x3f];
/// The value `https`: a length and five letters.
const WITHOUT: [u8; 6] = *b"\x05https";
/// The byte before the value: a new entry of the dynamic table with the name of the static entry 6 or 7.
const NAMES: [u8; 2] = [0x46, 0x47];
/// Most bytes up to the end of the first request; later requests refer to its entry.
const FIRST_REQUEST_MAX_BYTES: usize = 16_384;

/// Repairs the scheme of a connection's first request.
pub(super) struct SchemeRepair {
    /// Bytes that are still examined; 0 for a connection without HTTP/2.
    left_bytes: usize,
    has_begun: bool,
}

impl SchemeRepair {
    /// Starts with a new connection.
    pub(super) const fn new() -> Self {
        Self { left_bytes: FIRST_REQUEST_MAX_BYTES, has_begun: false }
    }

    fn repair(&mut self, read: &mut [u8]) {
        if self.left_bytes == 0 || read.is_empty() {
            return;
        }
        if !self.has_begun && !read.starts_with(PREFACE) {
            self.left_bytes = 0;
            return;
        }
        self.has_begun = true;
        self.left_bytes = if mend(read) { 0 } else { self.left_bytes.saturating_sub(read.len()) };
    }
}

/// Repairs the first such scheme. Returns true if there was one.
fn mend(bytes: &mut [u8]) -> bool {
    let found = bytes.windows(1 + WITH_COLON.len());
    let place = found.into_iter().position(|some| NAMES.contains(&some[0]) && some[1..] == WITH_COLON);
    if let Some(place) = place {
        bytes[place + 1..=place + WITHOUT.len()].copy_from_slice(&WITHOUT);
    }
    place.is_some()
}

impl ReadWatch for SchemeRepair {
    fn look(
        &mut self,
        _: &mut Context<'_>,
        brought: &mut [u8],
        read: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        self.repair(brought);
        read
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::super::watched::WatchedStream;
    use super::*;

    async fn read(parts: &[&[u8]]) -> Vec<u8> {
        let (mut peer, stream) = duplex(65_536);
        let mut stream = WatchedStream::new(stream, SchemeRepair::new());
        let mut all = Vec::new();
        for part in parts {
            peer.write_all(part).await.expect("written");
            let mut some = vec![0; part.len()];
            stream.read_exact(&mut some).await.expect("read");
            all.extend(some);
        }
        all
    }

    #[tokio::test]
    async fn the_first_scheme_with_a_colon_is_put_right_and_nothing_else() {
        let wrong = [&[0x46][..], &WITH_COLON].concat();
        let right = [&[0x46][..], &WITHOUT].concat();
        let both = [PREFACE, &wrong, &wrong].concat();
        assert_eq!(read(&[&both]).await, [PREFACE, &right, &wrong].concat());
        assert_eq!(read(&[PREFACE, &wrong]).await, [PREFACE, &right].concat());
    }

    #[tokio::test]
    async fn what_is_not_http2_or_comes_later_stays_as_it_is() {
        let wrong = [&[0x47][..], &WITH_COLON].concat();
        let other = [b"POST / HTTP/1.1\r\n\r\n", &wrong[..]].concat();
        assert_eq!(read(&[&other]).await, other);
        let late = vec![b'x'; FIRST_REQUEST_MAX_BYTES];
        assert_eq!(read(&[PREFACE, &late, &wrong]).await, [PREFACE, &late, &wrong].concat());
    }
}
