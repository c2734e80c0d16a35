//! Settings of a PostgreSQL database.

/// Settings of a PostgreSQL database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresSettings {
    /// Connections that read a few rows at once.
    pub readers_max_count: usize,
    /// Connections that walk over many rows at once.
    pub long_readers_max_count: usize,
    /// Most jobs of one commit.
    pub group_commit_max_jobs: usize,
    /// After this long no further job joins a commit.
    pub group_commit_max_ms: u32,
    /// Most jobs that wait; callers beyond wait for a place.
    pub waiting_max_jobs: usize,
    /// The longest time that a job waits for an unreachable server before it fails.
    pub patience_ms: u32,
    /// The longest duration of a statement before it is cancelled, and repeated or given up; a connection that is silent a third longer is
    /// replaced.
    pub statement_max_ms: u32,
    /// Longest wait of a start for a server that has no connection free.
    pub start_patience_ms: u32,
    /// The interval after which a task that waits for changes of the queue checks it without a notification.
    pub look_interval_ms: u32,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        Self {
            readers_max_count: 4,
            long_readers_max_count: 2,
            group_commit_max_jobs: 512,
            group_commit_max_ms: 20,
            waiting_max_jobs: 1_024,
            patience_ms: 10_000,
            statement_max_ms: 15_000,
            start_patience_ms: 60_000,
            look_interval_ms: 1_000,
        }
    }
}
