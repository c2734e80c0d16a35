//! The only source of time.

use std::time::Duration;

use crate::time::Timestamp;

/// The clock; tests keep it fixed.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present instant.
    fn now(&self) -> Timestamp;

    /// Receives a reading of the clock that several servers share, taken at some instant of the span that ends now. A clock that follows no
    /// other ignores it.
    fn follow(&self, shown: Timestamp, span: Duration) {
        let _it_goes_on = (shown, span);
    }
}
