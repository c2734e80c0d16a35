//! The services: authorization, idempotency, validation and limits, before anything is stored. Independent of HTTP.

mod accounts;
mod apps;
mod audit;
mod bulk;
mod calendar;
mod caller;
mod campaigns;
mod channels;
mod console;
mod content;
mod credentials;
mod deliveries;
mod device_claims;
mod devices;
mod groups;
mod import;
mod keyring;
mod live_activities;
mod long_list;
mod messages;
mod precondition;
mod proposals;
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

use stentor_core::id::{AppId, IdSource};
use stentor_core::outbound::OutboundPolicy;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::Store;
use stentor_core::time::Timestamp;
use stentor_gateway::{Gateway, UpstreamBroker};
use tokio::sync::Notify;

use crate::arrival_limiter::{ArrivalLimiter, ArrivalRate};
use crate::pipeline::{Dependencies, Pipeline};
use crate::shares::Shares;

pub use crate::contract::{Caller, ErrorCode, Identity, Origin, Problem, ServiceResult};
pub(crate) use accounts::AssertionRefusal;
pub(crate) use console::{ConsoleSession, LOGIN_LIFE};
pub(crate) use device_claims::DeviceClaims;
pub use import::{
    ERRORS_MAX_COUNT, Format, ImportOptions, ImportProblem, ImportReport, LINE_MAX_BYTES, examine,
};
pub use keyring::Keyring;
pub(crate) use webhooks::webhook_key;

/// Limits of the services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Most concurrent imports.
    pub imports_max_count: usize,
    /// Share of the free places for imports that one app may take, in percent.
    pub app_share_percent: usize,
    /// Most lines registered in one transaction.
    pub import_batch_max_lines: usize,
    /// Most schedules of one app that are active or paused.
    pub schedules_max_count: usize,
    /// Most entries of the audit trail of one kind in one app.
    pub audit_max_count: u64,
    /// Rate at which devices of one app may register themselves.
    pub joins: ArrivalRate,
    /// Longest delay of audiences for later that are due on a full minute.
    pub start_spread: Duration,
    /// Lifetime of a session of the console.
    pub session_life: Duration,
    /// Largest audience that a person reaches without an approval; `None` for any.
    pub unapproved_devices_max_count: Option<u64>,
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
            session_life: Duration::from_secs(3_600),
            unapproved_devices_max_count: None,
        }
    }
}

/// Counters of the services since the start.
#[derive(Debug, Default)]
pub struct ServiceCounters {
    /// Messages stored and answered with 202.
    pub messages_accepted: AtomicU64,
    /// Messages refused because the queue was full.
    pub messages_refused: AtomicU64,
    /// Requests answered from their idempotency key.
    pub replayed: AtomicU64,
    /// New devices.
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

/// Settings of the services.
pub struct ServiceSettings {
    /// Limits of the services.
    pub limits: ServiceLimits,
    /// Addresses to which the server may connect.
    pub outbound: OutboundPolicy,
    /// Addresses to which it may post upstream messages.
    pub webhook_policy: OutboundPolicy,
    /// Number of the settings of the identity provider; `None` if there is none.
    pub person_settings: Option<u64>,
    /// True if other servers may change the store.
    pub is_shared: bool,
}

/// All services of one server.
pub struct Service {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    pipeline: Arc<Pipeline>,
    gateway: Gateway,
    ids: Arc<IdSource>,
    keyring: Keyring,
    sessions: console::SessionTable,
    credentials: credentials::Kinds,
    settings: ServiceSettings,
    webhooks_changed: Notify,
    imports: Arc<Shares>,
    joins: ArrivalLimiter<AppId>,
    /// Locked while a Web Push key is put.
    vapid_keys: tokio::sync::Mutex<()>,
    activities: live_activities::ActivityClocks,
    refusals: audit::Refusals,
    counters: ServiceCounters,
    broker: Arc<UpstreamBroker>,
}

impl Service {
    /// Loads the caches (hashes of keys, credentials by app) and opens the services.
    pub async fn open(
        dependencies: &Dependencies,
        pipeline: Arc<Pipeline>,
        gateway: Gateway,
        keyring: Keyring,
        settings: ServiceSettings,
    ) -> ServiceResult<Self> {
        let (store, clock) = (dependencies.store.clone(), dependencies.clock.clone());
        let credentials = credentials::Kinds::of(&store.credentials().await?);
        // If other servers create keys, a key that is not known here may still exist.
        if !settings.is_shared {
            keyring.learn(store.as_ref()).await?;
        }
        let limits = settings.limits;
        let (vapid_keys, activities, refusals, counters, webhooks_changed) = Default::default();
        Ok(Self {
            broker: UpstreamBroker::new(store.clone(), clock.clone()),
            store,
            clock,
            pipeline,
            gateway,
            ids: dependencies.ids.clone(),
            keyring,
            sessions: console::SessionTable::default(),
            credentials,
            settings,
            webhooks_changed,
            imports: Shares::new(limits.imports_max_count, limits.app_share_percent, 1),
            joins: ArrivalLimiter::new(limits.joins),
            vapid_keys,
            activities,
            refusals,
            counters,
        })
    }

    /// Returns the counters since the start.
    #[must_use]
    pub const fn counters(&self) -> &ServiceCounters {
        &self.counters
    }

    /// Clears the cache of keys and accounts, because another server may have removed some.
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
