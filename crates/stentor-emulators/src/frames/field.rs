//! Header fields as an emulator classifies them: the kind of each, and its validity.

#[cfg(test)]
mod tests;

use stentor_http2_codec::hpack::{self, FieldKind};

/// One header field of a request.
pub(crate) type Field<'a> = hpack::Field<'a, HeaderKind>;
/// The decoder of one connection.
pub(crate) type Decoder = hpack::Decoder<HeaderKind>;

/// The kind of a header field, as far as framing or a service needs it quickly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderKind {
    Method,
    Scheme,
    Path,
    Authority,
    /// A pseudo-header field that requests do not have.
    Foreign,
    ContentLength,
    ApnsId,
    Te,
    /// A field about a connection, which HTTP/2 does not have (RFC 9113, section 8.2.2).
    Connection,
    /// A name or value that no field can have.
    Invalid,
    Other,
}

impl FieldKind for HeaderKind {
    fn of_name(name: &[u8]) -> Self {
        match name {
            b":path" => Self::Path,
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b"apns-id" => Self::ApnsId,
            b"content-length" => Self::ContentLength,
            b"te" => Self::Te,
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
                Self::Connection
            }
            [b':', ..] => Self::Foreign,
            name if !is_name(name) => Self::Invalid,
            _ => Self::Other,
        }
    }

    /// A value has no control characters (RFC 9110, section 5.5) and no blanks around it (RFC 9113, section 8.2.1).
    #[inline]
    fn with_value(self, name: &[u8], value: &[u8]) -> Self {
        let bad =
            value.iter().fold(false, |bad, byte| bad | (*byte < b' ' && *byte != b'\t') | (*byte == 0x7f));
        let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if bad || blank(value.first()) || blank(value.last()) {
            Self::Invalid
        } else if self == Self::Invalid {
            // An entry may be invalid because of its value; under its name another value may be valid.
            Self::of_name(name)
        } else {
            self
        }
    }
}

/// Returns true if a field can have this name (RFC 9113, section 8.2.1, and RFC 9110, section 5.6.2).
fn is_name(name: &[u8]) -> bool {
    let allowed =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(allowed)
}
