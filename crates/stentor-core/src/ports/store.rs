//! The port to the store: the ledger and everything that must not be lost.
//!
//! Every method is one transaction: it is atomic, and its result is on disk when it returns. Methods with potentially much work are
//! documented as such: they use several transactions, each atomic, and work left over after a crash is continued later.

mod apps;
mod audit;
mod devices;
mod health;
mod leases;
mod messages;
mod nodes;
mod pipeline;
mod precondition;
mod proposals;
mod receipts;
mod registry;
mod schedules;
mod sessions;
mod upstream;

pub use apps::{AccountFilter, AppStore, KeyFilter};
pub use audit::{AuditFilter, AuditStore, Change, Changed, NewAuditEntry, NewSchedule};
pub use devices::{
    DeviceFilter, DeviceStore, GroupStore, MemberAction, Registered, Removal, RemovalStore, Replacement,
    SubscriptionAction, SubscriptionChange, TokenKind, TopicStore, UserStore,
};
pub use health::{HealthStore, StoreFigures, WriteProof};
pub use leases::{Lease, LeaseTerms, LeasedChunk, SendDecision};
pub use messages::{
    AT_ONCE_MAX_DEVICES, Accepted, AtOnce, AttemptFilter, AttemptRecord, AudienceCount, ChunkRecords,
    Idempotent, IdempotentReply, Listed, MessageStore, NewMessage, Page, StoredReply,
};
pub use nodes::{
    Heartbeat, JoiningNode, Membership, NodeEvent, NodeEvents, NodeNotice, NodeRecord, NodeStore, ParkedLane,
    QuotaClaim,
};
pub use pipeline::{
    Awaited, BrokenWork, Expanded, Expansion, LeaseReply, PipelineStore, ProducerTask, PruneTask, Pruned,
    QueuedFilter, Recovery, SettleReply, Started, Swept,
};
pub use precondition::Precondition;
pub use proposals::ProposalStore;
pub use receipts::{PendingDelivery, Receipt, ReceiptKind, ReceiptStore};
pub use registry::RegistryStore;
pub use schedules::{Occurrence, ScheduleStore};
pub use sessions::{EndedSession, SessionStore};
pub use upstream::{Channel, ChannelChange, UpstreamAction, UpstreamChange, UpstreamFilter, UpstreamStore};

/// The error of a store operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The thing does not exist in this app.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The thing is in a state that forbids it.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The precondition of the change does not hold; nothing was changed.
    #[error("the precondition does not hold")]
    PreconditionFailed,
    /// A limit of the store is reached.
    #[error("limit reached: {0}")]
    LimitReached(String),
    /// The engine cannot write now (disk full, busy): nothing was stored.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A part of the stored data cannot be read from the disk; nothing was stored, and the rest may be intact.
    #[error("the store cannot be read: {0}")]
    Unreadable(String),
    /// The stored data is inconsistent: a bug or a damaged file.
    #[error("the store is damaged: {0}")]
    Damaged(String),
}

impl StoreError {
    /// Returns true if the engine cannot read or write now, so that the same call may succeed later. All other errors are caused by the
    /// request and would recur.
    #[must_use]
    pub const fn is_of_the_engine(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Unreadable(_))
    }
}

/// Declares a trait of the parts of a store that a caller needs. A store that has the parts has the trait.
macro_rules! parts {
    ($(#[$doc:meta])* pub trait $name:ident: $($parts:tt)+) => {
        $(#[$doc])*
        pub trait $name: $($parts)+ {}

        impl<T: $($parts)+> $name for T {}
    };
}

parts! {
    /// The store of a gateway.
    pub trait GatewayStore: AppStore + AuditStore + DeviceStore + MessageStore + ReceiptWriterStore + RemovalStore + TopicStore
}

parts! {
    /// The store of the writer of receipts.
    pub trait ReceiptWriterStore: HealthStore + ReceiptStore + UpstreamStore
}

parts! {
    /// The store of a pipeline, which moves messages.
    pub trait WorkStore: AppStore + HealthStore + NodeStore + PipelineStore + ScheduleStore
}

parts! {
    /// The store of a server that shares it with others.
    pub trait SharedStore: MessageStore + NodeStore
}

parts! {
    /// The store of a server's status.
    pub trait StatusStore: HealthStore + NodeStore
}

parts! {
    /// All operations of a store.
    pub trait Store: GatewayStore + GroupStore + ProposalStore + RegistryStore + SessionStore + SharedStore + StatusStore + UserStore + WorkStore
}
