//! Deadlines of callers: the header `grpc-timeout`, with at most eight digits and a unit.

use std::time::Duration;

use axum::http::HeaderMap;

use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::http::headers::header_text;

const HEADER: &str = "grpc-timeout";
const DIGITS_MAX_COUNT: usize = 8;

/// Returns the timeout of the caller, if the request has one.
pub(super) fn deadline(headers: &HeaderMap) -> ServiceResult<Option<Duration>> {
    let Some(text) = header_text(headers, HEADER)? else { return Ok(None) };
    let wrong = || Problem::field(HEADER, "must be at most eight digits and one of H, M, S, m, u, n");
    read(text).map(Some).ok_or_else(wrong)
}

/// Waits for a result until the caller's timeout.
pub(super) async fn within<T>(
    wait: Option<Duration>,
    call: impl Future<Output = ServiceResult<T>>,
) -> ServiceResult<T> {
    match wait {
        None => call.await,
        Some(wait) if wait.is_zero() => Err(passed()),
        Some(wait) => tokio::time::timeout(wait, call).await.unwrap_or_else(|_| Err(passed())),
    }
}

/// Returns the error for a call with an expired deadline.
pub(super) fn passed() -> Problem {
    Problem::new(ErrorCode::RequestTimeout, "the deadline of the call has passed")
}

fn read(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number =
        (1..=DIGITS_MAX_COUNT).contains(&digits.len()) && digits.bytes().all(|one| one.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_number)?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3_600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_digits_and_a_unit() {
        assert_eq!(read("20S"), Some(Duration::from_secs(20)));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!(read("7u"), Some(Duration::from_micros(7)));
        for wrong in ["", "S", "1", "-1S", "+1S", "123456789S", "1s", "1 S", "1ß"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
