//! The port for ended sessions of the web console.

use async_trait::async_trait;

use super::StoreError;
use crate::time::Timestamp;

/// A session that ended before its time. Its token stays authentic until it expires, so that every server has to know of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedSession {
    /// Random number of the session.
    pub number: u64,
    /// The time at which its token expires, from which on the end may be forgotten.
    pub expires_at: Timestamp,
}

/// Sessions that ended before their time.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Ends a session for every server of the store, and forgets those that have expired by now.
    async fn end_session(&self, ended: EndedSession, now: Timestamp) -> Result<(), StoreError>;

    /// Returns true if a session ended before its time.
    async fn is_session_ended(&self, number: u64) -> Result<bool, StoreError>;
}
