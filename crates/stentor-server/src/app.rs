//! The server as a whole: build, run, drain.

mod listening;
mod membership;
mod reload;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{JoiningNode, StoreError};
use stentor_gateway::ccs::{CcsPort, CcsServer};
use stentor_gateway::{Gateway, GatewayKey, GatewayParts, UpstreamBroker};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::config::{ApiConfig, Config, GatewayConfig};
use crate::contract::REPLY_MAX_BYTES;
use crate::dns_sd::{AnnouncedAddress, Announcement, DnsSdError};
use crate::face::http::LimitedRouter;
use crate::face::{Api, ApiParts, EntryPoint, ReadTimeout, RequestLimits, discovery};
use crate::front;
use crate::gateway::{self, GatewayListeners, OwnNames};
use crate::keys::{Pepper, ServiceKey, root_key};
use crate::listen::{Http, Listener, ListenerState, SocketCounts};
pub use crate::node::{AppError, Engines, LISTEN_FILE, SOCKET_FILE, prepare_folder};
use crate::node::{Dependencies, PipelineHandle, host_name, node_number, prepare};
use crate::owner_rates::OwnerRates;
use crate::pipeline::{Failure, NodeRole, NodeRoles};
use crate::service::{Keyring, Service, ServiceLimits, ServiceParts};
use crate::shares::Shares;
use crate::status::ServerStatus;
use crate::upstream::UpstreamWorkers;
use listening::{open_listener, open_others, write_addresses};
use membership::{NodeIdentity, NodeTie};
use reload::Reloads;

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

/// Purpose from which the gateway's key is derived. The source is the pepper, so that a single file holds all that must not be lost.
const GATEWAY_PURPOSE: &str = "secrets of the gateway's devices";

/// Purpose of the hash by which nodes check that they hash keys with the same pepper.
const NODES_PURPOSE: &str = "nodes of one installation";

/// A server that is built and not yet serving.
pub struct BuiltServer {
    listener: Listener,
    address: SocketAddr,
    socket: Option<Listener>,
    socket_address: Option<SocketAddr>,
    api: Api,
    gateway: Gateway,
    devices: GatewayListeners,
    gateway_config: GatewayConfig,
    pipeline: Arc<PipelineHandle>,
    reloads: Reloads,
    upstream: UpstreamWorkers,
    roles: NodeRoles,
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
        Engines { store, queue }: Engines,
        lock: std::fs::File,
    ) -> Result<Self, AppError> {
        let keyring = keyring(&config)?;
        let service_key = ServiceKey::of(&config.data_dir).map_err(key_files)?;
        // Before the pipeline: a server that cannot listen must not have leased anything.
        let (listener, certificate) = open_listener(&config.api).await?;
        let (socket, devices) = open_others(&config, certificate.as_ref(), listener.connections()).await?;
        let joining = joining_node(&config)?;
        let joined = NodeIdentity::join(store.as_ref(), clock.as_ref(), joining, config.node).await;
        let (identity, ids, last_event) = joined.map_err(of_store)?;
        let key = gateway_key(&config.data_dir).map_err(key_files)?;
        let own = GatewayParts { store: store.clone(), clock: clock.clone(), ids: ids.clone(), key };
        let gateway = Gateway::start(own);
        gateway.limit_sessions_per_app(config.gateway.app_sessions_max_count());
        let dependencies = Dependencies {
            store: store.clone(),
            queue: queue.clone(),
            clock: clock.clone(),
            ids,
            gateway: gateway.clone(),
            standing: identity.standing.clone(),
        };
        let pipeline = Arc::new(PipelineHandle::start(&dependencies, &config).await?);
        let service = Arc::new(
            open_service(&config, &dependencies, (keyring, last_event.is_some()), pipeline.clone()).await?,
        );
        // The last step that can fail: a client that reads the address from the file finds a running server.
        let (address, socket_address) = write_addresses(&listener, socket.as_ref(), &config)?;
        let (drain_timeout, gateway_config) = (config.shutdown.drain_timeout(), config.gateway.clone());
        let parts_of = config.api.clone();
        let reloads = Reloads {
            service: service.clone(),
            pipeline: pipeline.clone(),
            certificate: certificate.clone(),
            clock: clock.clone(),
            check_interval: parts_of.tls_check_interval(),
        };
        let upstream = UpstreamWorkers::new(service.clone(), &config.upstream, identity.standing.clone());
        let tie = NodeTie::new(identity, last_event, (&dependencies, pipeline.clone(), service.clone()));
        let roles = config.roles.clone();
        let limits = request_limits(&parts_of);
        let (requests, bodies) = (limits.places.clone(), limits.bodies.clone());
        let replies = limits.replies.clone();
        let connections = listener.connections().clone();
        let counts = Arc::new(SocketCounts::default());
        let state =
            ListenerState { certificate, connections, requests, bodies, replies, socket: counts.clone() };
        let server_status = ServerStatus::new(store, queue, clock, pipeline.clone(), config, state);
        let parts = parts(&parts_of, service_key, limits, service, Arc::new(server_status), counts);
        let socket_port = socket_address.map(|address| address.port());
        let api = Api::new(ApiParts { socket_port, ..parts });
        Ok(Self {
            listener,
            address,
            socket,
            socket_address,
            api,
            gateway,
            devices,
            gateway_config,
            pipeline,
            reloads,
            upstream,
            roles,
            tie,
            drain_timeout,
            _lock: lock,
        })
    }

    /// Returns true if the API is served over TLS.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.reloads.certificate.is_some()
    }

    /// Returns the address that is listened on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Announces the server on the networks it listens on, for as long as the announcement lives.
    pub fn announce(&self) -> Result<Announcement, DnsSdError> {
        let (address, is_encrypted) = (self.address, self.is_encrypted());
        let fingerprint = self.api.service_key().id();
        let host = self.reloads.certificate.as_ref().and_then(|pair| pair.name_beside(address.ip()));
        let server = AnnouncedAddress { address, is_encrypted, host, fingerprint };
        Announcement::begin(&server, discovery::DOCUMENT)
    }

    /// Returns the address of the raw socket, when there is one.
    #[must_use]
    pub const fn socket_addr(&self) -> Option<SocketAddr> {
        self.socket_address
    }

    /// Returns every path that is served over HTTP, with the rule that bounds it.
    #[must_use]
    pub fn entry_points(&self) -> Vec<EntryPoint> {
        let roles = (&self.roles, self.own_names());
        routes(&self.api, &self.gateway, &self.gateway_config, roles).entry_points().to_vec()
    }

    fn own_names(&self) -> OwnNames {
        OwnNames { address: self.address, certificate: self.reloads.certificate.clone() }
    }

    /// Returns the port for CCS app servers: it authenticates them and accepts their messages.
    #[must_use]
    pub fn app_servers(&self) -> Arc<dyn CcsPort> {
        front::app_servers(&self.api)
    }

    /// Returns the broker that hands upstream messages to the consumers of an app.
    #[must_use]
    pub fn upstream_broker(&self) -> &Arc<UpstreamBroker> {
        self.api.service().upstream_broker()
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
        let own = self.own_names();
        let Self {
            listener,
            address,
            socket,
            api,
            gateway,
            devices,
            gateway_config,
            pipeline,
            reloads,
            upstream,
            roles,
            tie,
            drain_timeout,
            _lock,
            ..
        } = self;
        tracing::info!(%address, "serving");
        let stop = CancellationToken::new();
        let broker = Arc::clone(api.service().upstream_broker());
        let arrivals = AbortOnDropHandle::new(tokio::spawn(broker.follow(gateway.upstream_arrivals())));
        let upstream = AbortOnDropHandle::new(tokio::spawn(upstream.run(stop.clone())));
        let tie = Arc::new(tie);
        let held = tie.clone().spawn();
        let server = pipeline.watched(
            "listener",
            stop.clone(),
            serve(
                (listener, socket, devices),
                (api, gateway.clone(), gateway_config, own),
                roles,
                stop.clone(),
            ),
        );
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
    pipeline: &PipelineHandle,
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

/// Serves all faces until `stop`.
async fn serve(
    (listener, socket, devices): (Listener, Option<Listener>, GatewayListeners),
    (api, gateway, config, own): (Api, Gateway, GatewayConfig, OwnNames),
    roles: NodeRoles,
    stop: CancellationToken,
) {
    let broker = Arc::clone(api.service().upstream_broker());
    let app_servers = CcsServer::new(gateway.clone(), broker, front::app_servers(&api));
    let router = routes(&api, &gateway, &config, (&roles, own));
    let over_http = listener.serve(Http::new(router), stop.clone().cancelled_owned());
    let over_socket = async {
        if let Some(socket) = socket {
            socket.serve(api.socket(), stop.clone().cancelled_owned()).await;
        }
    };
    tokio::join!(over_http, over_socket, devices.serve(&gateway, app_servers, stop.clone()));
}

/// Returns the routes of a node with these roles.
fn routes(
    api: &Api,
    gateway: &Gateway,
    config: &GatewayConfig,
    (roles, own): (&NodeRoles, OwnNames),
) -> LimitedRouter {
    let router = match roles.has(NodeRole::Api) {
        true => front::router(api).merge(api.router()),
        false => api.bare_router(),
    };
    match roles.has(NodeRole::Gateway) {
        true => router.merge(gateway::router(api, gateway, config, own)),
        false => router,
    }
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

async fn open_service(
    config: &Config,
    dependencies: &Dependencies,
    (keyring, is_shared): (Keyring, bool),
    pipeline: Arc<PipelineHandle>,
) -> Result<Service, AppError> {
    let limits = ServiceLimits {
        imports_max_count: config.api.imports_max_count,
        app_share_percent: config.api.app_share_percent,
        import_batch_max_lines: config.api.import_batch_max_lines,
        schedules_max_count: config.api.schedules_max_count,
        audit_max_count: config.api.audit_max_count,
        joins: config.gateway.joins(),
        start_spread: config.pipeline.start_spread(),
    };
    let (store, clock, ids) =
        (dependencies.store.clone(), dependencies.clock.clone(), dependencies.ids.clone());
    let outbound = config.outbound.policy();
    let webhook_policy = config.upstream.webhook_policy(&config.outbound);
    let parts =
        ServiceParts { store, clock, ids, pipeline, keyring, limits, outbound, webhook_policy, is_shared };
    let service = Service::open(parts).await;
    service.map_err(|problem| AppError::Engine { what: "the store", cause: problem.to_string() })
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

fn parts(
    config: &ApiConfig,
    service_key: ServiceKey,
    limits: Arc<RequestLimits>,
    service: Arc<Service>,
    server_status: Arc<ServerStatus>,
    socket: Arc<SocketCounts>,
) -> ApiParts {
    let import_timeout = ReadTimeout {
        idle: Duration::from_secs(config.import_idle_timeout_seconds),
        min_bytes_per_second: config.import_min_bytes_per_second,
        total: Duration::from_secs(config.import_timeout_seconds),
    };
    let body_max_bytes = config.body_max_bytes;
    let large_body_max_bytes = body_max_bytes.max(config.large_body_max_bytes);
    let trusted_proxies = config.trusted_proxies();
    let docs = config.docs;
    ApiParts {
        service_key,
        service,
        server_status,
        limits,
        body_max_bytes,
        large_body_max_bytes,
        import_timeout,
        trusted_proxies,
        docs,
        socket,
        socket_port: None,
    }
}
