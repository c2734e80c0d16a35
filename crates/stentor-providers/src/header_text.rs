//! Checks of texts for use in headers.

/// Returns true if a text can be a header value: printable, and without a space at either end, which a peer treats as a malformed message
/// (RFC 9113, 8.2.1).
pub(crate) fn fits_header(text: &str) -> bool {
    !text.chars().any(char::is_control) && !text.starts_with(' ') && !text.ends_with(' ')
}

/// Returns true if a text can be a header name (RFC 9110, 5.1).
pub(crate) fn is_header_name(text: &str) -> bool {
    http::HeaderName::try_from(text).is_ok()
}
