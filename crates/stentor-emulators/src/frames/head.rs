//! The validation of every request's header fields, independent of the service (RFC 9113, section 8).

use super::field::{Field, HeaderKind};
use stentor_http2_codec::hpack::ENTRY_OVERHEAD_BYTES;

const METHOD: u8 = 1;
const SCHEME: u8 = 2;
const PATH: u8 = 4;
const AUTHORITY: u8 = 8;
const REQUIRED: u8 = METHOD | SCHEME | PATH;

/// The state of validating a request's header fields.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pseudo: u8,
    regular: bool,
    malformed: bool,
    list_bytes: usize,
    content_length: Option<u64>,
}

impl Head {
    #[inline]
    pub(crate) fn see(&mut self, field: &Field<'_>) {
        // A field counts for 32 bytes more than it has (RFC 9113, section 6.5.2).
        self.list_bytes += field.name.len() + field.value.len() + ENTRY_OVERHEAD_BYTES;
        match field.kind {
            HeaderKind::Method => self.see_pseudo(METHOD),
            HeaderKind::Scheme => self.see_pseudo(SCHEME),
            HeaderKind::Path => {
                // Neither http nor https has an empty path (RFC 9113, section 8.3.1).
                self.malformed |= field.value.is_empty();
                self.see_pseudo(PATH);
            }
            HeaderKind::Authority => self.see_pseudo(AUTHORITY),
            HeaderKind::Foreign | HeaderKind::Connection | HeaderKind::Invalid => self.malformed = true,
            HeaderKind::ContentLength => self.see_length(field.value),
            HeaderKind::Te => self.see_regular(field.value == b"trailers"),
            HeaderKind::ApnsId | HeaderKind::Other => self.regular = true,
        }
    }

    /// A pseudo-header field comes once, and before all others.
    #[inline]
    fn see_pseudo(&mut self, bit: u8) {
        self.malformed |= self.regular || self.pseudo & bit != 0;
        self.pseudo |= bit;
    }

    fn see_regular(&mut self, valid: bool) {
        self.regular = true;
        self.malformed |= !valid;
    }

    fn see_length(&mut self, value: &[u8]) {
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        let agrees = self.content_length.is_none() || self.content_length == length;
        self.see_regular(digits && length.is_some() && agrees);
        self.content_length = length;
    }

    pub(crate) fn is_malformed(&self) -> bool {
        self.malformed || self.pseudo & REQUIRED != REQUIRED
    }

    /// Returns true if the body has the length that the request states.
    pub(crate) fn fits(&self, body_bytes: u64) -> bool {
        self.content_length.is_none_or(|length| length == body_bytes)
    }

    pub(crate) fn list_bytes(&self) -> usize {
        self.list_bytes
    }
}
