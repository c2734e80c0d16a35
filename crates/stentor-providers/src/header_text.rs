//! Which texts can be values of headers.

/// Returns whether a header can carry a text: printable, and without a space at either end, which a peer takes for a broken
/// stream (RFC 9113, 8.2.1).
pub(crate) fn fits_header(text: &str) -> bool {
    !text.chars().any(char::is_control) && !text.starts_with(' ') && !text.ends_with(' ')
}

/// Returns whether a text can be the name of a header (RFC 9110, 5.1).
pub(crate) fn is_header_name(text: &str) -> bool {
    http::HeaderName::try_from(text).is_ok()
}
