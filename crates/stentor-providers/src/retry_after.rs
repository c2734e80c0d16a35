//! `Retry-After`: the delay requested by a push service (RFC 9110, section 10.2.3).

use std::time::Duration;

use stentor_core::time::Timestamp;

/// Longest delay that is obeyed: a day.
pub const RETRY_AFTER_MAX_SECONDS: u64 = 86_400;

/// Parses seconds or an HTTP date; `None` for anything else. The delay is at most [`RETRY_AFTER_MAX_SECONDS`].
#[must_use]
pub fn parse(value: &[u8], now: Timestamp) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only digits: a number that overflows exceeds the limit anyway.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        date(text)?.since(now)
    };
    Some(wait.min(Duration::from_secs(RETRY_AFTER_MAX_SECONDS)))
}

/// Parses the one form of HTTP dates that may still be sent, `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(text: &str) -> Option<Timestamp> {
    let instant =
        // A wrong day of the week is no reason to retry at once.
        jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()?;
    Some(Timestamp::from_millis(instant.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000);

    #[test]
    fn seconds_and_dates_are_both_understood() {
        assert_eq!(parse(b"60", NOW), Some(Duration::from_secs(60)));
        assert_eq!(parse(b" 0 ", NOW), Some(Duration::ZERO));
        assert_eq!(parse(b"Sun, 06 Nov 1994 08:50:07 GMT", NOW), Some(Duration::from_secs(30)));
        assert_eq!(parse(b"Sun, 06 Nov 1994 08:00:00 GMT", NOW), Some(Duration::ZERO));
    }

    #[test]
    fn a_wait_of_hours_is_obeyed() {
        assert_eq!(parse(b"7200", NOW), Some(Duration::from_secs(7_200)));
        assert_eq!(parse(b"Mon, 07 Nov 1994 07:49:37 GMT", NOW), Some(Duration::from_secs(23 * 3_600)));
        assert_eq!(parse(b"86401", NOW), Some(Duration::from_secs(86_400)));
    }

    #[test]
    fn an_absurd_wait_is_cut() {
        let most = Some(Duration::from_secs(RETRY_AFTER_MAX_SECONDS));
        assert_eq!(parse(b"99999999999999999999999", NOW), most);
        assert_eq!(parse(b"Sun, 06 Nov 2094 08:49:37 GMT", NOW), most);
    }

    #[test]
    fn anything_else_is_no_wait() {
        for wrong in [&b""[..], b"-1", b"1.5", b"soon", b"\xff", b"Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(parse(wrong, NOW), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), now in any::<i64>()) {
            let _ = parse(&bytes, Timestamp::from_millis(now));
        }
    }
}
