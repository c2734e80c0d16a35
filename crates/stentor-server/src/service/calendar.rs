//! Time zones and instants as callers write them.

use stentor_core::error::Invalid;
use stentor_core::name::TimeZoneName;
use stentor_core::ports::clock::Timestamp;

/// Tells whether the zone is in the time zone database.
pub(super) fn known_zone(name: &TimeZoneName) -> bool {
    jiff::tz::TimeZone::get(name.as_str()).is_ok()
}

/// Reads an RFC 3339 instant.
pub(crate) fn instant(field: &str, text: &str) -> Result<Timestamp, Invalid> {
    match text.parse::<jiff::Timestamp>() {
        Ok(instant) => Ok(Timestamp::from_millis(instant.as_millisecond())),
        Err(_) => Err(Invalid::new(field, "must be an RFC 3339 instant such as `2026-11-21T07:00:00Z`")),
    }
}
