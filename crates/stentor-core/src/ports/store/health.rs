//! The port for the state of the engine.

use async_trait::async_trait;

use super::StoreError;

/// The evidence that writes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteProof {
    /// A success within the last second, or else a small write.
    Recent,
    /// A write without meaning, now.
    Now,
}

/// Figures of a store for its operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Chunks that are quarantined and not yet pruned.
    pub quarantined_chunks: u64,
    /// Unreadable rows of any kind since the process began, each counted once: lists leave them out.
    pub damaged_rows: u64,
    /// Size of the engine's write-ahead log; 0 for an engine without one.
    pub log_bytes: u64,
}

/// The state of the engine, for its operator and for callers that a write failed.
#[async_trait]
pub trait HealthStore: Send + Sync {
    /// Fails if writes are not stored now.
    async fn keeps(&self, proof: WriteProof) -> Result<(), StoreError>;

    /// Returns the figures for the operator.
    async fn figures(&self) -> Result<StoreFigures, StoreError>;

    /// Waits until the engine has lost a part that it needs for storing and that only reopening restores; returns the cause.
    async fn broken(&self) -> String;
}
