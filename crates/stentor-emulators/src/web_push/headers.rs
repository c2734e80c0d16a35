//! The request headers of RFC 8030 and their validation.

use super::policy::{BAD_ENCODING, BAD_TOPIC, BAD_TTL, BAD_URGENCY};
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderName};

pub(super) const TTL: HeaderName = HeaderName::from_static("ttl");
const URGENCY: HeaderName = HeaderName::from_static("urgency");
const TOPIC: HeaderName = HeaderName::from_static("topic");

const MAX_TOPIC_CHARS: usize = 32;
const CODING: &[u8] = b"aes128gcm";

/// The validated headers of a request.
#[derive(Debug)]
pub(super) struct PushHeaders<'a> {
    /// The requested time to live, in seconds.
    pub(super) ttl_s: u64,
    pub(super) topic: Option<&'a str>,
    pub(super) is_urgent: bool,
}

impl<'a> PushHeaders<'a> {
    /// Reads the headers; the error is the reason.
    pub(super) fn read(map: &'a HeaderMap, has_body: bool) -> Result<Self, &'static str> {
        let ttl_s = read_ttl(map).ok_or(BAD_TTL)?;
        let is_urgent = read_urgency(map).ok_or(BAD_URGENCY)?;
        let topic = read_topic(map).ok_or(BAD_TOPIC)?;
        check_coding(map, has_body)?;
        Ok(Self { ttl_s, topic, is_urgent })
    }
}

/// Returns the only value of a header; `None` if there are several or none.
fn only<'a>(map: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = map.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then_some(first.as_bytes())
}

/// Reads the time to live, which must be given. A number that is too large for 64 bits is the largest one.
fn read_ttl(map: &HeaderMap) -> Option<u64> {
    let digits = only(map, &TTL).filter(|text| !text.is_empty() && text.iter().all(u8::is_ascii_digit))?;
    let text = std::str::from_utf8(digits).ok()?;
    Some(text.parse().unwrap_or(u64::MAX))
}

/// Returns true if the message is urgent; `None` if the header is not one of the four words.
fn read_urgency(map: &HeaderMap) -> Option<bool> {
    if !map.contains_key(URGENCY) {
        return Some(false);
    }
    match only(map, &URGENCY)? {
        b"high" => Some(true),
        b"very-low" | b"low" | b"normal" => Some(false),
        _ => None,
    }
}

/// Reads the topic, if there is one; `None` if it is not one.
fn read_topic(map: &HeaderMap) -> Option<Option<&str>> {
    if !map.contains_key(TOPIC) {
        return Some(None);
    }
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let text = only(map, &TOPIC)?;
    let sane = !text.is_empty() && text.len() <= MAX_TOPIC_CHARS && text.iter().all(allowed);
    sane.then(|| std::str::from_utf8(text).ok())
}

/// Checks the coding of a body. A message without one has no coding either.
fn check_coding(map: &HeaderMap, has_body: bool) -> Result<(), &'static str> {
    match only(map, &CONTENT_ENCODING) {
        Some(coding) if coding.eq_ignore_ascii_case(CODING) => Ok(()),
        None if !has_body && !map.contains_key(CONTENT_ENCODING) => Ok(()),
        _ => Err(BAD_ENCODING),
    }
}
