//! All processes of a cluster: servers, the database with its standby, nats-servers, push services.

use super::database::DatabaseOptions;
use super::database_pair::DatabasePair;
use super::fault::FaultKind;
use super::faults_state::FaultsState;
use super::network::{ClusterHost, ClusterNetwork};
use super::queue_servers::{QueueServers, SERVERS_COUNT};
use super::roles::ClusterRoles;
use super::{ClusterAbilities, ClusterOptions};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::devices::{DevicePopulation, StagedService, StagedServices};
use stentor_stage::emulator::{Emulators, StageCredentials};
use stentor_stage::engines::StageQueue;
use stentor_stage::keys::Keys;
use stentor_stage::reporter::Reporter;
use stentor_stage::server::{Server, ServerPlace, data_dir, share_secrets};
use stentor_stage::stage::{StageDirectory, make_app};
use stentor_stage::text::cell;
use stentor_stage::troubles::clock::ShiftedClock;

/// Time without a heartbeat after which a server counts as dead.
pub(super) const SILENCE_MAX_MS: u32 = 3_000;
/// Small, so that each server gets a share of a small campaign.
const CHUNK_MAX_DEVICES: u32 = 50;
/// Latency of every answer of a push service, so that a fault meets pushes under way.
const LATENCY_MS: f64 = 500.0;
/// Connections of one server to the database, including those that earlier processes left open.
const CONNECTIONS_PER_NODE: u32 = 40;
const CONNECTIONS_BESIDE: u32 = 20;
/// Purpose of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterApp {
    /// The app of the campaign.
    Campaign,
    /// The app of the other messages through push services.
    Beside,
    /// The app of campaigns that are canceled while they wait for their quota.
    Slow,
    /// The app of devices of the gateway.
    Gateway,
}

/// Quota of the credential of waiting campaigns, per minute: one a second, so that a chunk waits one second for each device that it may
/// have.
const SLOW_QUOTA: u32 = 60;

/// All processes of the cluster.
pub(crate) struct ClusterSite {
    // The servers come first, so that they are dropped before the processes that they connect to.
    pub(crate) nodes: Vec<ClusterNode>,
    pub(crate) database: DatabasePair,
    pub(crate) queue: Option<QueueServers>,
    pub(crate) emulators: Emulators,
    /// Host of the push services.
    pub(crate) push_services: ClusterHost,
    /// Progress of the faults.
    pub(crate) state: Arc<FaultsState>,
    /// An older program, which one of the servers runs.
    pub(crate) older: Option<PathBuf>,
    /// Credentials of the servers, without a quota.
    credentials: StageCredentials,
    /// The ids of the apps.
    apps: Vec<String>,
    network: ClusterNetwork,
    directory: StageDirectory,
}

/// One server.
pub(crate) struct ClusterNode {
    /// Its process.
    pub(crate) server: Server,
    /// Host of the server.
    pub(crate) host: ClusterHost,
    /// Roles of the server.
    pub(crate) roles: ClusterRoles,
    /// The server's clock, if it can be shifted.
    pub(crate) clock: Option<ShiftedClock>,
}

impl ClusterSite {
    /// Starts everything.
    pub(crate) async fn start(
        options: &ClusterOptions,
        abilities: ClusterAbilities,
        mut network: ClusterNetwork,
        reporter: &Arc<dyn Reporter>,
    ) -> anyhow::Result<Self> {
        let directory = StageDirectory::make(options.keep.as_deref())?;
        let (path, keys, push_services) = (directory.path(), Keys::make()?, network.emulators());
        let settings = |service| emulator_settings(options, service, &keys, &push_services);
        let emulators = Emulators::start(StagedServices::USUAL, false, path, settings).await?;
        let database = DatabaseOptions {
            connections_max: CONNECTIONS_BESIDE + options.nodes * CONNECTIONS_PER_NODE,
            has_standby: options.has_standby,
            is_small: abilities.has_small_disk,
            has_clock: abilities.has_clock && options.wants(FaultKind::DatabaseClock),
        };
        let database = DatabasePair::start(path, &mut network, &database, reporter)?;
        let queue = match options.queue {
            StageQueue::Nats => Some(QueueServers::start(path, &mut network)?),
            _ => None,
        };
        let credentials = emulators.credentials(&keys)?;
        let mut site = Self {
            nodes: Vec::new(),
            database,
            queue,
            emulators,
            push_services,
            state: Arc::default(),
            older: options.older.clone(),
            credentials,
            apps: Vec::new(),
            network,
            directory,
        };
        for roles in options.roles.spread(options.nodes, options.seed) {
            site.add_node(options, roles, abilities.has_clock).await?;
        }
        site.make_apps(options.quota_per_minute()).await?;
        Ok(site)
    }

    /// Returns clients of all servers with the API, acting for an app.
    pub(crate) fn clients(&self, app: ClusterApp) -> anyhow::Result<Vec<ApiClient>> {
        let app = &self.apps[app as usize];
        let serving = self.nodes.iter().filter(|node| node.roles.has_api());
        serving.map(|node| Ok(node.server.client()?.for_app(app.clone()))).collect()
    }

    /// Returns clients of all servers, regardless of their roles.
    pub(crate) fn all_clients(&self) -> anyhow::Result<Vec<ApiClient>> {
        self.nodes.iter().map(|node| node.server.client()).collect()
    }

    /// Returns the URLs for devices.
    pub(crate) fn gateway_urls(&self) -> anyhow::Result<Vec<String>> {
        let serving = self.nodes.iter().filter(|node| node.roles.has_gateway());
        serving.map(|node| Ok(node.server.client()?.server().to_owned())).collect()
    }

    /// Removes the quota of the campaign's credentials.
    pub(crate) async fn lift_quota(&self) -> anyhow::Result<()> {
        let root = self.nodes[0].server.client()?;
        for (service, credential) in &self.credentials {
            let path = format!("/v1/apps/{}/credentials/{}", segment(&self.apps[0]), service.word());
            root.put(&path, credential).await?;
        }
        Ok(())
    }

    /// Fails if a process has ended by itself.
    pub(crate) fn check_alive(&mut self) -> anyhow::Result<()> {
        self.nodes.iter_mut().try_for_each(|node| node.server.check_alive())?;
        self.queue.as_mut().map_or(Ok(()), QueueServers::check_alive)?;
        self.emulators.check_alive()
    }

    /// Directory of all files.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    async fn add_node(
        &mut self,
        options: &ClusterOptions,
        roles: ClusterRoles,
        has_clock: bool,
    ) -> anyhow::Result<()> {
        let host = self.network.add_host()?;
        let (first, place) = (self.directory.path().to_owned(), self.nodes.len() + 1);
        let own = if place == 1 { first.clone() } else { first.join(format!("node-{place}")) };
        if place > 1 {
            share_secrets(&data_dir(&first), &data_dir(&own))?;
        }
        let clock = has_clock.then(|| ShiftedClock::set_up(&own.join("clock"))).transpose()?;
        let mut environment = self.environment(&options.queue);
        environment.extend(clock.iter().flat_map(ShiftedClock::environment));
        let is_last = self.nodes.len() as u32 + 1 == options.nodes;
        let place = ServerPlace {
            listen: SocketAddr::new(host.ip.into(), 0),
            before: host.before(),
            program: self.older.clone().filter(|_| is_last),
            network: self.network.allowed(),
        };
        let server = Server::start_placed(&own, place, Some(node_settings(&roles)), environment).await?;
        self.nodes.push(ClusterNode { server, host, roles, clock });
        Ok(())
    }

    fn environment(&self, queue: &StageQueue) -> Vec<(&'static str, OsString)> {
        let mut environment: Vec<(&'static str, OsString)> = vec![
            ("STENTOR__STORE__ENGINE", "postgres".into()),
            ("STENTOR__STORE__URL", self.database.url().into()),
            ("STENTOR__QUEUE__ENGINE", queue.word().into()),
        ];
        if let Some(servers) = &self.queue {
            environment.push(("STENTOR__QUEUE__URL", servers.url().into()));
            environment.push(("STENTOR__QUEUE__REPLICAS_COUNT", SERVERS_COUNT.to_string().into()));
        }
        environment
    }

    async fn make_apps(&mut self, quota_per_minute: u32) -> anyhow::Result<()> {
        let limited = |quota: u32| {
            let mut credentials = self.credentials.clone();
            credentials.iter_mut().for_each(|(_, credential)| credential["quota"] = json!(quota));
            credentials
        };
        let root = || self.nodes[0].server.client();
        let sending = [
            ("campaign", limited(quota_per_minute)),
            ("beside", self.credentials.clone()),
            ("slow", limited(SLOW_QUOTA)),
        ];
        let mut apps = Vec::new();
        for (name, credentials) in sending {
            let client = make_app(root()?, name, &credentials).await?;
            apps.push(client.app().unwrap_or_default().to_owned());
        }
        // Devices of the gateway need no credential.
        let devices = root()?.post("/v1/apps", &json!({"name": "devices"})).await?;
        apps.push(cell(&devices["id"]));
        self.apps = apps;
        Ok(())
    }
}

/// Settings of a server. A credential that is refused because of a wrong clock is tried again soon.
fn node_settings(roles: &ClusterRoles) -> String {
    format!(
        "roles = {:?}\n[node]\nsilence_max_ms = {SILENCE_MAX_MS}\n\
         [pipeline]\nchunk_max_devices = {CHUNK_MAX_DEVICES}\nquota_ramp_ms = 0\ncredential_probe_ms = 2_000\n",
        roles.words()
    )
}

/// The settings of one push service: everything but TLS and the observer's file.
fn emulator_settings(
    options: &ClusterOptions,
    service: StagedService,
    keys: &Keys,
    place: &ClusterHost,
) -> Value {
    let tokens = |population: DevicePopulation| population.devices_of(service);
    // Room for every token, and for unexpected ones.
    let capacity_tokens = tokens(options.devices()) + tokens(options.others()) + 1_000;
    let mut policy = options.policy().of(service);
    policy["latency"] = json!({"kind": "fixed", "ms": LATENCY_MS});
    let mut settings = json!({
        "seed": options.seed,
        "policy": policy,
        "observer": {"capacity_tokens": capacity_tokens},
        "listen": SocketAddr::new(place.ip.into(), 0),
        "control": "127.0.0.1:0",
    });
    keys.introduce(service, &mut settings);
    settings
}
