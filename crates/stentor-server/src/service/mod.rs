//! What decides: authorization, idempotency, validation and limits, before anything is kept. Knows no HTTP.

mod accounts;
mod apps;
mod audit;
mod bulk;
mod calendar;
mod caller;
mod campaigns;
mod content;
mod credentials;
mod deliveries;
mod device_claims;
mod devices;
mod groups;
mod import;
mod keyring;
mod long_list;
mod messages;
mod precondition;
mod registry;
mod repeat;
mod schedules;
mod tokens;
mod topics;
mod upstream;
mod users;
mod vapid_keys;
mod webhooks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use stentor_core::chunk::Ticket;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, DeviceId, IdSource, MessageId};
use stentor_core::outbound::OutboundPolicy;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::Store;
use stentor_core::quota::Level;
use stentor_core::time::Timestamp;
use stentor_gateway::UpstreamBroker;
use tokio::sync::Notify;

use crate::arrival_limiter::{ArrivalLimiter, ArrivalRate};
use crate::pipeline::stats::QuotaStats;
use crate::pipeline::{AcceptGuard, Backlog, FullLane};
use crate::shares::Shares;

pub use crate::contract::{Caller, ErrorCode, Identity, Origin, Problem, ServiceResult};
pub(crate) use accounts::AssertionRefusal;
pub use credentials::{CheckFailure, ParkReason};
pub(crate) use device_claims::DeviceClaims;
pub use import::{
    ERRORS_MAX_COUNT, Format, ImportOptions, ImportProblem, ImportReport, LINE_MAX_BYTES, examine,
};
pub use keyring::Keyring;
pub(crate) use webhooks::webhook_key;

/// What a service tells the pipeline; it never waits for it.
pub trait PipelinePort: Send + Sync {
    /// Chunks were kept and may be leased.
    fn published(&self, tickets: Vec<Ticket>);

    /// There may be something new for scheduler and producers.
    fn wake(&self);

    /// A credential was put or removed.
    fn changed(&self, app: AppId, provider: ProviderKind);

    /// A device that may be connected to the gateway was removed or has another token; all of the app's when `None`.
    fn cut_off(&self, _app: AppId, _device: Option<DeviceId>) {}

    /// A message is held back from devices that are connected: its campaign is about to be paused or canceled.
    fn hold(&self, _app: AppId, _message: MessageId) {}

    /// Devices may have a message if the ledger says so.
    fn release(&self, _app: AppId, _message: MessageId) {}

    /// Counts a caller who waits for a message to be accepted, for as long as the guard lives.
    fn accepting(&self) -> AcceptGuard {
        Arc::<Backlog>::default().accepting()
    }

    /// Returns whether an app may queue more messages, beside those that are about to be kept before them.
    fn has_room(&self, _app: AppId, _before: u64) -> bool {
        true
    }

    /// Lists those credentials of an app that rest, and for which no more may wait.
    fn full_lanes(&self, _app: AppId) -> Vec<FullLane> {
        Vec::new()
    }

    /// Tries a credential without sending.
    fn check(&self, _app: AppId, _provider: ProviderKind) -> BoxFuture<'_, Result<(), CheckFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// An app was deleted: nothing of it is remembered, and what is queued for it goes.
    fn forget_app(&self, _app: AppId) {}

    /// Returns how a credential's quota stands, once it was used.
    fn quota(&self, _app: AppId, _provider: ProviderKind) -> Option<QuotaStats> {
        None
    }

    /// Returns how the quota of a credential stands that all nodes share: what it allows in a minute, and what the store has of it.
    fn shared_quota(&self, _key: (AppId, ProviderKind), _shared: (u32, Level)) -> Option<QuotaStats> {
        None
    }

    /// Returns why the lane of a credential is parked here, if it is.
    fn parked(&self, _app: AppId, _provider: ProviderKind) -> Option<ParkReason> {
        None
    }
}

/// Limits of the services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Most imports that run at once.
    pub imports_max_count: usize,
    /// How much of the places that others leave one app may take.
    pub app_share_percent: usize,
    /// Most lines registered in one transaction.
    pub import_batch_max_lines: usize,
    /// Most schedules of one app that are active or paused.
    pub schedules_max_count: usize,
    /// Most entries of the audit trail of one kind in one app.
    pub audit_max_count: u64,
    /// How fast devices of one app register themselves.
    pub joins: ArrivalRate,
    /// By how much audiences for later may start after a full minute.
    pub start_spread: Duration,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self {
            imports_max_count: 4,
            app_share_percent: 50,
            import_batch_max_lines: 16_384,
            schedules_max_count: 10_000,
            audit_max_count: 10_000,
            joins: ArrivalRate { burst_max_count: 1_000, per_second_max_count: 100 },
            start_spread: Duration::ZERO,
        }
    }
}

/// How much the services did since start.
#[derive(Debug, Default)]
pub struct ServiceCounters {
    /// Messages kept, answered with 202.
    pub messages_accepted: AtomicU64,
    /// Messages refused because the queue was full.
    pub messages_refused: AtomicU64,
    /// Requests answered again from their idempotency key.
    pub replayed: AtomicU64,
    /// Devices made known.
    pub devices_created: AtomicU64,
    /// Devices registered again.
    pub devices_updated: AtomicU64,
    /// Import lines that were refused.
    pub import_lines_failed: AtomicU64,
}

impl ServiceCounters {
    fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// What the services stand on.
pub struct ServiceParts {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Numbers for new things, shared with the pipeline.
    pub ids: Arc<IdSource>,
    /// The pipeline.
    pub pipeline: Arc<dyn PipelinePort>,
    /// Keys known to this process.
    pub keyring: Keyring,
    /// The bounds of what may be asked.
    pub limits: ServiceLimits,
    /// Where the server may connect.
    pub outbound: OutboundPolicy,
    /// Where it may post what devices send.
    pub webhook_policy: OutboundPolicy,
    /// Whether other servers may change what is in the store.
    pub is_shared: bool,
}

/// All services of one server.
pub struct Service {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    pipeline: Arc<dyn PipelinePort>,
    ids: Arc<IdSource>,
    keyring: Keyring,
    credentials: credentials::Kinds,
    limits: ServiceLimits,
    outbound: OutboundPolicy,
    webhook_policy: OutboundPolicy,
    webhooks_changed: Notify,
    imports: Arc<Shares>,
    pending_schedules: schedules::PendingSchedules,
    joins: ArrivalLimiter<AppId>,
    /// Held by whoever puts a key of Web Push.
    vapid_keys: tokio::sync::Mutex<()>,
    refusals: audit::Refusals,
    counters: ServiceCounters,
    broker: Arc<UpstreamBroker>,
    /// Whether other servers may change what is in the store.
    is_shared: bool,
}

impl Service {
    /// Reads what must be known in memory (which keys there are, which app has which credential) and is ready.
    pub async fn open(parts: ServiceParts) -> ServiceResult<Self> {
        let ServiceParts {
            store,
            clock,
            ids,
            pipeline,
            keyring,
            limits,
            outbound,
            webhook_policy,
            is_shared,
        } = parts;
        let credentials = credentials::Kinds::of(&store.credentials().await?);
        // Where others make keys, one that is not known here may exist all the same.
        if !is_shared {
            keyring.learn(store.as_ref()).await?;
        }
        let imports = Shares::new(limits.imports_max_count, limits.app_share_percent, 1);
        let joins = ArrivalLimiter::new(limits.joins);
        let broker = UpstreamBroker::new(store.clone(), clock.clone());
        let (pending_schedules, vapid_keys, refusals, counters, webhooks_changed) = Default::default();
        Ok(Self {
            store,
            clock,
            pipeline,
            ids,
            keyring,
            credentials,
            limits,
            outbound,
            webhook_policy,
            webhooks_changed,
            imports,
            pending_schedules,
            joins,
            vapid_keys,
            refusals,
            counters,
            broker,
            is_shared,
        })
    }

    /// Returns what was done since start.
    #[must_use]
    pub const fn counters(&self) -> &ServiceCounters {
        &self.counters
    }

    /// Forgets what is remembered of keys and accounts: another server may have removed some.
    pub(crate) fn forget_keys(&self) {
        self.keyring.forget_all();
    }

    /// Returns the time by the server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn next_id(&self, now: Timestamp) -> u64 {
        self.ids.next(now)
    }
}
