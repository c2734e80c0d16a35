//! `traceparent`: the span of the caller (W3C Trace Context, section 3.2).

use axum::http::HeaderMap;

use super::SpanPlace;

const TRACEPARENT: &str = "traceparent";
/// Bit of the flags: the caller keeps this trace.
const SAMPLED: u8 = 1;
/// The version that means nothing.
const INVALID_VERSION: u8 = 0xff;

/// The span of a caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) place: SpanPlace,
    pub(super) is_sampled: bool,
}

impl Parent {
    /// Reads the header. One that is not well formed, or stands twice, begins a new trace.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Self::parse(value.to_str().ok()?),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split('-');
        let version = u8::try_from(hex(fields.next()?, 2)?).ok()?;
        let trace = hex(fields.next()?, 32)?;
        let span = u64::try_from(hex(fields.next()?, 16)?).ok()?;
        let flags = u8::try_from(hex(fields.next()?, 2)?).ok()?;
        // Later versions may add fields, the first one has none.
        let is_known = version != INVALID_VERSION && (version > 0 || fields.next().is_none());
        let place = SpanPlace { trace, span };
        (is_known && trace != 0 && span != 0).then_some(Self { place, is_sampled: flags & SAMPLED != 0 })
    }
}

/// Reads lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u128::from_str_radix(text, 16).ok())?
}
