//! The system's clock: the only reader of time in the server.

use std::time::{SystemTime, UNIX_EPOCH};

use stentor_core::ports::clock::Clock;
use stentor_core::time::Timestamp;

/// The system's time.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(span) => i64::try_from(span.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |span| -span),
        };
        Timestamp::from_millis(millis)
    }
}
