//! The port to the store: the ledger and everything that must not be lost.
//!
//! Every method is one transaction: it happens whole or not at all, and what it returns is on disk. Those that may have much
//! to do say so: they do it in several, each whole, and what a crash leaves over is gone on with later.

mod apps;
mod audit;
mod devices;
mod messages;
mod nodes;
mod pipeline;
mod precondition;
mod receipts;
mod registry;
mod schedules;
mod upstream;

pub use apps::AppStore;
pub use audit::{AuditFilter, AuditStore, Change, Changed, NewAuditEntry};
pub use devices::{
    DeviceFilter, DeviceStore, GroupStore, Registered, SubscriptionChange, TopicStore, UserStore,
};
pub use messages::{
    AttemptRecord, AudienceCount, ChunkRecords, Idempotent, IdempotentReply, MessageStore, NewMessage, Page,
    StoredReply,
};
pub use nodes::{
    Heartbeat, JoiningNode, Membership, NodeEvent, NodeEvents, NodeRecord, NodeStore, ParkedLane, QuotaClaim,
};
pub use pipeline::{
    Awaited, Expanded, Expansion, Lease, LeaseReply, LeaseTerms, LeasedChunk, PipelineStore, ProducerTask,
    Recovery, SendDecision, SettleReply, Started, StoreFigures, Swept,
};
pub use precondition::Precondition;
pub use receipts::{PendingDelivery, Receipt, ReceiptKind, ReceiptStore};
pub use registry::RegistryStore;
pub use schedules::{Occurrence, ScheduleStore};
pub use upstream::{Channel, UpstreamChange, UpstreamStore};

/// Why a store could not do as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no such thing in this app.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The thing is in a state that forbids it.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The thing is not as the precondition of its change says; nothing was changed.
    #[error("the precondition does not hold")]
    PreconditionFailed,
    /// A limit of the store is reached.
    #[error("limit reached: {0}")]
    LimitReached(String),
    /// The engine cannot write now (disk full, busy): nothing was kept.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The disk does not give a part of what is kept; nothing was kept, and the rest may be well.
    #[error("the store cannot be read: {0}")]
    Unreadable(String),
    /// What is kept does not make sense; a bug or a damaged file.
    #[error("the store is damaged: {0}")]
    Damaged(String),
}

impl StoreError {
    /// Returns whether it is the engine that cannot read or write now: the same may be done later. Everything else is said of what was
    /// asked, and is said again.
    #[must_use]
    pub const fn is_of_the_engine(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Unreadable(_))
    }
}

/// Everything a store does.
pub trait Store:
    AppStore
    + AuditStore
    + DeviceStore
    + TopicStore
    + UserStore
    + GroupStore
    + RegistryStore
    + MessageStore
    + ScheduleStore
    + PipelineStore
    + ReceiptStore
    + UpstreamStore
    + NodeStore
{
}

impl<T> Store for T where
    T: AppStore
        + AuditStore
        + DeviceStore
        + TopicStore
        + UserStore
        + GroupStore
        + RegistryStore
        + MessageStore
        + ScheduleStore
        + PipelineStore
        + ReceiptStore
        + UpstreamStore
        + NodeStore
{
}
