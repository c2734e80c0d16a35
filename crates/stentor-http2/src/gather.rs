//! The collector for the header block of a response.

use http::{HeaderMap, HeaderName, HeaderValue};
use stentor_http2_codec::hpack::{ENTRY_OVERHEAD_BYTES, Field, FieldReader};

/// Status and headers collected from one header block.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    /// True if headers are kept for every status. Otherwise those of 2xx are skipped.
    pub(crate) keep_all: bool,
    /// Largest size of the kept headers, in bytes.
    pub(crate) max_bytes: usize,
    /// The status, if there was one.
    pub(crate) status: Option<u16>,
    /// All other fields, as far as they are kept.
    pub(crate) headers: HeaderMap,
    /// True if a field was invalid HTTP.
    pub(crate) invalid: bool,
    bytes: usize,
}

impl Gather {
    pub(crate) fn new(keep_all: bool, max_bytes: usize) -> Self {
        Self { keep_all, max_bytes, ..Self::default() }
    }
}

impl FieldReader<()> for Gather {
    fn field(&mut self, Field { name, value, .. }: Field<'_, ()>) {
        self.bytes += name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        if name == b":status" {
            self.status = status(value);
            self.invalid |= self.status.is_none();
        } else if self.wants_more() && self.bytes <= self.max_bytes {
            match (HeaderName::from_lowercase(name), HeaderValue::from_bytes(value)) {
                (Ok(name), Ok(value)) => drop(self.headers.try_append(name, value)),
                _ => self.invalid = true,
            }
        }
    }

    fn wants_more(&self) -> bool {
        self.keep_all || !self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

fn status(value: &[u8]) -> Option<u16> {
    let digits: [u8; 3] = value.try_into().ok()?;
    let number = digits.iter().try_fold(0, |sum, digit| Some(sum * 10 + char::from(*digit).to_digit(10)?))?;
    (100..600).contains(&number).then_some(number as u16)
}

#[cfg(test)]
mod tests {
    use stentor_http2_codec::hpack::Decoder;

    use super::*;

    fn gathered(block: &[u8], keep_all: bool) -> Gather {
        let mut seen = Gather::new(keep_all, 1 << 20);
        Decoder::new().decode(block, &mut seen).expect("well-formed");
        seen
    }

    #[test]
    fn headers_of_a_success_are_kept_when_all_are() {
        let block = [&[0x88][..], b"\x00\x03aaa\x011\x00\x01b\x012"].concat();
        let seen = gathered(&block, false);
        assert_eq!((seen.status, seen.headers.len()), (Some(200), 0));
        let seen = gathered(&block, true);
        assert_eq!((seen.status, seen.headers.len()), (Some(200), 2));
        assert_eq!(seen.headers["aaa"], "1");
    }

    #[test]
    fn fields_that_are_no_http_are_told() {
        let cases: [&[u8]; 5] =
            [b"\x00\x01A\x011", b"\x00\x01a\x01\n", b"\x08\x0320x", b"\x08\x0220", b"\x00\x00\x011"];
        for block in cases {
            assert!(gathered(block, true).invalid, "{block:?}");
        }
    }
}
