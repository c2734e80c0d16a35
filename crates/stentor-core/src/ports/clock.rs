//! The only source of time.

use crate::time::Timestamp;

/// The time; tests hold it still.
pub trait Clock: Send + Sync + 'static {
    /// Returns the present instant.
    fn now(&self) -> Timestamp;
}
