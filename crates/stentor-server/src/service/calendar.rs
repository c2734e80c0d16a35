//! Time zones and instants as written by callers.

use stentor_core::error::Invalid;
use stentor_core::name::TimeZoneName;
use stentor_core::time::Timestamp;

use crate::pipeline::calendar;

/// Returns true if the zone is in the time zone database.
pub(super) fn known_zone(name: &TimeZoneName) -> bool {
    calendar::zone(name.as_str()).is_some()
}

/// Parses an RFC 3339 instant. One beyond the supported range becomes the end of that range.
pub(crate) fn instant(field: &str, text: &str) -> Result<Timestamp, Invalid> {
    let wrong = || Invalid::new(field, "must be an RFC 3339 instant such as `2026-11-21T07:00:00Z`");
    let read = text.parse::<jiff::Timestamp>().ok().or_else(|| beyond(text)).ok_or_else(wrong)?;
    Ok(Timestamp::from_millis(read.as_millisecond()))
}

/// The last hours of the year 9999 are valid date and time, but beyond the instants that jiff supports.
fn beyond(text: &str) -> Option<jiff::Timestamp> {
    let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
    let civil = pieces.date().to_datetime(pieces.time()?);
    let offset = pieces.to_numeric_offset()?;
    let fits = offset.to_timestamp(civil).is_ok();
    let end = if civil.year() > 0 { jiff::Timestamp::MAX } else { jiff::Timestamp::MIN };
    (!fits).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instant_that_can_be_written_can_be_read() {
        for text in [
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999-11:00",
            "2026-11-21T07:00:60+01:00",
        ] {
            assert!(instant("send_at", text).is_ok(), "{text}");
        }
        for text in
            ["", "soon", "2026-11-21", "2026-11-21T07:00:00", "2026-13-21T07:00:00Z", "9999-12-31T23:59:59"]
        {
            assert_eq!(instant("send_at", text).expect_err(text).field, "send_at");
        }
    }
}
