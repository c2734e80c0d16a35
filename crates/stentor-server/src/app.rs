//! The server as a whole: build, run, drain.

mod listening;
mod membership;
mod reload;
mod routes;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{JoiningNode, StoreError};
use stentor_gateway::ccs::CcsPort;
use stentor_gateway::{Gateway, GatewayKey, UpstreamBroker};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::config::{ApiConfig, Config, QueueEngine};
use crate::contract::REPLY_MAX_BYTES;
use crate::dns_sd::{AnnouncedAddress, Announcement, DnsSdError};
use crate::face::{Api, EntryPoint, RequestLimits, discovery};
use crate::front;
use crate::gateway::OwnNames;
use crate::keys::{Pepper, ServiceKey, root_key};
use crate::listen::{ListenerState, SocketCounts};
pub use crate::node::{AppError, Engines, LISTEN_FILE, SOCKET_FILE, prepare_folder};
use crate::node::{host_name, node_number, prepare};
use crate::oidc::IdentityProvider;
use crate::owner_rates::OwnerRates;
use crate::pipeline::{Dependencies, Failure, NodeRole, Pipeline, Threads};
use crate::providers::Adapters;
use crate::service::{Keyring, Service, ServiceLimits, ServiceSettings};
use crate::shares::Shares;
use crate::status::ServerStatus;
use crate::upstream::UpstreamWorkers;
use listening::{OpenAddresses, OpenListeners};
use membership::{JoinedNode, NodeIdentity, NodeTie};
use reload::Reloads;
use routes::NodeRoutes;

/// Most ledgers, and most health states, that are watched at once. Each of them is read once a second.
const WATCHES_MAX_COUNT: usize = 256;

/// Most long-lived requests: streams of devices, watches, long polls.
const LASTING_MAX_COUNT: usize = 65_536;
/// Memory of a request that waits for its body, beside the body. The memory for bodies divided by this gives the number of such requests.
const ARRIVING_BYTES: usize = 4 * 1_024;
/// The lower limit of that number.
const ARRIVING_MIN_COUNT: usize = 64;
/// The lower limit of the memory for replies that the clients have not read yet.
const REPLIES_MIN_BYTES: usize = 16 * 1_024 * 1_024;

/// File in the data directory that holds the remaining quotas.
const LEVELS_FILE: &str = "quotas";

/// Purpose from which the gateway's key is derived. The source is the pepper, so that a single file holds all that must not be lost.
const GATEWAY_PURPOSE: &str = "secrets of the gateway's devices";

/// Purpose of the hash by which nodes check that they hash keys with the same pepper.
const NODES_PURPOSE: &str = "nodes of one installation";

/// A server that is built and not yet serving.
pub struct BuiltServer {
    listeners: OpenListeners,
    addresses: OpenAddresses,
    routes: NodeRoutes,
    pipeline: Arc<Pipeline>,
    reloads: Reloads,
    upstream: UpstreamWorkers,
    tie: NodeTie,
    drain_timeout: Duration,
    /// Held while the server lives, so that no second server touches the same files.
    _lock: std::fs::File,
}

impl BuiltServer {
    /// Locks the data directory, opens the engines, binds the address, recovers the leases of a crash and starts the pipeline.
    pub async fn build(
        config: Config,
        clock: Arc<dyn Clock>,
        open: impl FnOnce(&Config, &Arc<dyn Clock>) -> Result<Engines, AppError>,
    ) -> Result<Self, AppError> {
        let lock = prepare(&config)?;
        let engines = open(&config, &clock)?;
        Self::assemble(config, clock, engines, lock).await
    }

    /// Builds a server over engines that are already open, regardless of the engines in the configuration.
    pub async fn build_over(
        config: Config,
        clock: Arc<dyn Clock>,
        engines: Engines,
    ) -> Result<Self, AppError> {
        Self::build(config, clock, |_, _| Ok(engines)).await
    }

    async fn assemble(
        config: Config,
        clock: Arc<dyn Clock>,
        engines: Engines,
        lock: std::fs::File,
    ) -> Result<Self, AppError> {
        let keyring = keyring(&config)?;
        let service_key = ServiceKey::of(&config.data_dir).map_err(key_files)?;
        let identity_provider = IdentityProvider::new(&config);
        let identity_provider = identity_provider.map_err(AppError::Login)?;
        // Before the pipeline: a server that cannot listen must not have leased anything.
        let listeners = OpenListeners::open(&config).await?;
        let (store, joining) = (engines.store.clone(), joining_node(&config)?);
        let joined = NodeIdentity::join(store.as_ref(), clock.as_ref(), joining, config.node).await;
        let joined = joined.map_err(of_store)?;
        let key = gateway_key(&config.data_dir).map_err(key_files)?;
        let gateway = Gateway::start(store, clock.clone(), joined.ids.clone(), key);
        gateway.limit_sessions_per_app(config.gateway.app_sessions_max_count());
        let dependencies = dependencies(&config, engines, clock, &joined, &gateway)?;
        let pipeline = Pipeline::start(&dependencies, config.pipeline.clone()).await.map_err(of_store)?;
        let pipeline = Arc::new(pipeline);
        let settings = service_settings(&config, joined.last_event.is_some());
        let service =
            Service::open(&dependencies, pipeline.clone(), gateway.clone(), keyring, settings).await;
        let of_service = |cause: String| AppError::Engine { what: "the store", cause };
        let service = Arc::new(service.map_err(|problem| of_service(problem.to_string()))?);
        // The last step that can fail: a client that reads the address from the file finds a running server.
        let addresses = listeners.write_addresses(&config)?;
        let drain_timeout = config.shutdown.drain_timeout();
        let certificate = listeners.certificate.clone();
        let reloads = Reloads {
            service: service.clone(),
            pipeline: pipeline.clone(),
            certificate: certificate.clone(),
            clock: dependencies.clock.clone(),
            check_interval: config.api.tls_check_interval(),
        };
        let standing = dependencies.standing.clone();
        let upstream = UpstreamWorkers::new(service.clone(), &config.upstream, standing);
        let tie = NodeTie::new(joined, &dependencies, pipeline.clone(), service.clone(), gateway.clone());
        let limits = request_limits(&config.api);
        let state = listener_state(&listeners, &limits);
        let (roles, gateway_config) = (config.roles.clone(), config.gateway.clone());
        let server_status =
            ServerStatus::new(&dependencies, pipeline.clone(), gateway.clone(), config, state);
        let socket_port = addresses.socket.map(|address| address.port());
        let api =
            Api::new(service, Arc::new(server_status), service_key, identity_provider, limits, socket_port);
        let own = OwnNames { address: addresses.api, certificate };
        let routes = NodeRoutes { api, gateway, gateway_config, roles, own };
        Ok(Self {
            listeners,
            addresses,
            routes,
            pipeline,
            reloads,
            upstream,
            tie,
            drain_timeout,
            _lock: lock,
        })
    }

    /// Returns true if the API is served over TLS.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.listeners.certificate.is_some()
    }

    /// Returns the address that is listened on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.addresses.api
    }

    /// Announces the server on the networks it listens on, for as long as the announcement lives.
    pub fn announce(&self) -> Result<Announcement, DnsSdError> {
        let (address, is_encrypted) = (self.addresses.api, self.is_encrypted());
        let fingerprint = self.routes.api.service_key().id();
        let host = self.listeners.certificate.as_ref().and_then(|pair| pair.name_beside(address.ip()));
        let server = AnnouncedAddress { address, is_encrypted, host, fingerprint };
        Announcement::begin(&server, discovery::DOCUMENT)
    }

    /// Returns the address of the raw socket, when there is one.
    #[must_use]
    pub const fn socket_addr(&self) -> Option<SocketAddr> {
        self.addresses.socket
    }

    /// Returns every path that is served over HTTP, with the rule that bounds it.
    #[must_use]
    pub fn entry_points(&self) -> Vec<EntryPoint> {
        self.routes.router().entry_points().to_vec()
    }

    /// Returns the port for CCS app servers: it authenticates them and accepts their messages.
    #[must_use]
    pub fn app_servers(&self) -> Arc<dyn CcsPort> {
        front::app_servers(&self.routes.api)
    }

    /// Returns the broker that hands upstream messages to the consumers of an app.
    #[must_use]
    pub fn upstream_broker(&self) -> &Arc<UpstreamBroker> {
        self.routes.api.service().upstream_broker()
    }

    /// Serves until `shutdown`, then drains within the configured time. Each `reload` reloads credentials and certificate.
    ///
    /// Ends with [`AppError::Part`] when a part of the pipeline fails. Work in flight is settled as far as possible; until then the server
    /// answers and reports that it is not ready.
    pub async fn run(
        self,
        shutdown: impl Future<Output = ()> + Send,
        reload: mpsc::Receiver<()>,
    ) -> Result<(), AppError> {
        let Self { listeners, addresses, routes, pipeline, reloads, upstream, tie, drain_timeout, _lock } =
            self;
        let address = addresses.api;
        tracing::info!(%address, "serving");
        let (stop, gateway) = (CancellationToken::new(), routes.gateway.clone());
        let broker = Arc::clone(routes.api.service().upstream_broker());
        let arrivals = AbortOnDropHandle::new(tokio::spawn(broker.follow(gateway.upstream_arrivals())));
        let upstream = AbortOnDropHandle::new(tokio::spawn(upstream.run(stop.clone())));
        let tie = Arc::new(tie);
        let held = tie.clone().spawn();
        let serving = routes.serve(listeners, stop.clone());
        let server = pipeline.watched("listener", stop.clone(), serving);
        tokio::pin!(server);
        // The server is polled in the last branch as well: it must answer while the pipeline drains.
        tokio::select! {
            () = &mut server => {}
            () = shutdown => {}
            () = reloads.follow(reload) => {}
            _ = pipeline.failed() => tokio::select! {
                () = &mut server => {}
                () = pipeline.drain(drain_timeout) => {}
            },
        }
        tracing::info!(seconds = drain_timeout.as_secs(), "draining");
        stop.cancel();
        gateway.stop();
        drain(server, &pipeline, &gateway, drain_timeout).await;
        gateway.close().await;
        // After the last of its work: the other nodes at once take over leases under its number.
        tie.part().await;
        for task in [arrivals, upstream, held] {
            task.abort();
            // `abort` only requests the end: until then the task may still use the store.
            let _it_was_aborted = task.await;
        }
        drop(tie);
        tracing::info!("stopped");
        match pipeline.failures().into_iter().next() {
            Some(Failure { part, cause }) => Err(AppError::Part { part, cause }),
            None => Ok(()),
        }
    }
}

/// Waits until all work has ended, at most for `drain_timeout`.
async fn drain(
    server: impl Future<Output = ()>,
    pipeline: &Pipeline,
    gateway: &Gateway,
    drain_timeout: Duration,
) {
    let deadline = Instant::now() + drain_timeout;
    let both = async { tokio::join!(server, pipeline.drain(drain_timeout)) };
    if tokio::time::timeout_at(deadline.into(), both).await.is_err() {
        tracing::warn!("the drain timeout has passed; the next start recovers the remaining deliveries");
    }
    // References to the store must be dropped before the process ends, because its last connection empties the write-ahead log.
    if tokio::time::timeout_at(deadline.into(), gateway.flush()).await.is_err() {
        tracing::warn!(
            "not all receipts of devices are written; the messages that they confirm are delivered again"
        );
    }
}

fn gateway_key(data_dir: &Path) -> std::io::Result<GatewayKey> {
    Ok(GatewayKey::new(Pepper::of(data_dir)?.hash(GATEWAY_PURPOSE)))
}

/// Returns the function that derives the secret of a gateway device from its token. Needs read access to the data directory. Imported
/// devices whose tokens have the gateway's form can log in with such a secret.
pub fn device_secrets(data_dir: &Path) -> std::io::Result<impl Fn(&str) -> String + use<>> {
    let key = gateway_key(data_dir)?;
    Ok(move |token: &str| key.secret(token).expose_secret().to_owned())
}

fn key_files(cause: std::io::Error) -> AppError {
    AppError::File { what: "the key files".to_owned(), cause }
}

fn keyring(config: &Config) -> Result<Keyring, AppError> {
    let pepper = Pepper::of(&config.data_dir).map_err(key_files)?;
    let root: SecretString = match config.api.root_key() {
        Some(key) => key.clone(),
        None => root_key(&config.data_dir).map_err(key_files)?,
    };
    Ok(Keyring::new(pepper, root.expose_secret()))
}

fn of_store(cause: StoreError) -> AppError {
    AppError::Engine { what: "the store", cause: cause.to_string() }
}

/// Returns the description with which this server joins the nodes of its store.
fn joining_node(config: &Config) -> Result<JoiningNode, AppError> {
    let node = node_number(&config.data_dir).map_err(key_files)?;
    let secrets_hash = Pepper::of(&config.data_dir).map_err(key_files)?.hash(NODES_PURPOSE);
    let fires = config.roles.has(NodeRole::Scheduler);
    let (host, roles) = (host_name(), config.roles.names());
    Ok(JoiningNode { node, secrets_hash, fires, host, roles, version: env!("CARGO_PKG_VERSION") })
}

/// Gathers everything that the pipeline and the services share.
fn dependencies(
    config: &Config,
    Engines { store, queue }: Engines,
    clock: Arc<dyn Clock>,
    joined: &JoinedNode,
    gateway: &Gateway,
) -> Result<Dependencies, AppError> {
    let wrap = |cause: std::io::Error| AppError::Engine { what: "the threads", cause: cause.to_string() };
    let threads = Threads::start().map_err(wrap)?;
    let adapters = Adapters::new(clock.clone(), config.sender.limits(), config.outbound.policy());
    Ok(Dependencies {
        store,
        queue,
        clock,
        ids: joined.ids.clone(),
        factory: Arc::new(adapters.at_home_on(threads.handle())),
        threads: Some(Arc::new(threads)),
        standing: joined.identity.standing.clone(),
        roles: config.roles.clone(),
        shares_queue: matches!(config.queue.engine, QueueEngine::Postgres | QueueEngine::Nats),
        levels: Some(config.data_dir.join(LEVELS_FILE)),
        settled_feed: Some(Arc::new(gateway.clone())),
    })
}

fn service_settings(config: &Config, is_shared: bool) -> ServiceSettings {
    let limits = ServiceLimits {
        imports_max_count: config.api.imports_max_count,
        app_share_percent: config.api.app_share_percent,
        import_batch_max_lines: config.api.import_batch_max_lines,
        schedules_max_count: config.api.schedules_max_count,
        audit_max_count: config.api.audit_max_count,
        joins: config.gateway.joins(),
        start_spread: config.pipeline.start_spread(),
        session_life: config.console.session_life(),
        unapproved_devices_max_count: config.console.unapproved_devices_max_count(),
    };
    let outbound = config.outbound.policy();
    let webhook_policy = config.upstream.webhook_policy(&config.outbound);
    let person_settings = config.console.oidc.number();
    ServiceSettings { limits, outbound, webhook_policy, person_settings, is_shared }
}

fn listener_state(listeners: &OpenListeners, limits: &RequestLimits) -> ListenerState {
    ListenerState {
        certificate: listeners.certificate.clone(),
        connections: listeners.api.connections().clone(),
        requests: limits.places.clone(),
        bodies: limits.bodies.clone(),
        replies: limits.replies.clone(),
        socket: Arc::new(SocketCounts::default()),
    }
}

fn request_limits(config: &ApiConfig) -> Arc<RequestLimits> {
    let share = config.app_share_percent;
    let largest = config.body_max_bytes.max(config.large_body_max_bytes);
    let replies = config.bodies_max_bytes.max(REPLIES_MIN_BYTES);
    Arc::new(RequestLimits {
        places: Shares::new(config.requests_max_count, share, 1),
        lasting: Shares::new(LASTING_MAX_COUNT, share, 1),
        arriving: Shares::new((config.bodies_max_bytes / ARRIVING_BYTES).max(ARRIVING_MIN_COUNT), share, 1),
        bodies: Shares::new(config.bodies_max_bytes, share, largest),
        replies: Shares::new(replies, share, REPLY_MAX_BYTES),
        rates: OwnerRates::new(
            config.app_requests_per_second_max_count,
            config.nameless_requests_per_second_max_count,
        ),
        watches: Shares::new(WATCHES_MAX_COUNT, share, 1),
        health_watches: Shares::of_nameless(WATCHES_MAX_COUNT),
        body_timeout: Duration::from_secs(config.body_timeout_seconds),
        timeout: Duration::from_secs(config.request_timeout_seconds),
    })
}
