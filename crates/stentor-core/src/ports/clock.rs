//! The only source of time.

use std::time::Duration;

use crate::time::Timestamp;

/// The time; tests hold it still.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present instant.
    fn now(&self) -> Timestamp;

    /// Hears what a clock showed that several servers go by, at some instant of the span that ends now. One that follows nobody
    /// goes on as it is.
    fn follow(&self, shown: Timestamp, span: Duration) {
        let _it_goes_on = (shown, span);
    }
}
