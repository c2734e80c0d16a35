//! The stage: a directory, an emulator of each push service, a server, an app with its credentials.

use crate::child_process::ResourceUsage;
use crate::client::{ApiClient, segment};
use crate::devices::{DevicePopulation, StagedService, StagedServices};
use crate::emulated::elapsed_text;
use crate::emulator::{Emulators, StageCredentials};
use crate::engines::{EngineServers, StageQueue, StageStore};
use crate::failure::CommandFailure;
use crate::keys::Keys;
use crate::limits;
use crate::nodes;
use crate::policy::AnswerPolicy;
use crate::reporter::Reporter;
use crate::server::{Server, data_dir};
use crate::text::cell;
use crate::troubles::{self, AcceptanceCheck, Trouble, TroubleInjector};
use anyhow::Context;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

/// The options of a stage.
#[derive(Clone, Debug)]
pub struct StageOptions {
    /// The number of devices that the emulators have room for, dealt out to the push services.
    pub devices: u64,
    /// The push services.
    pub providers: StagedServices,
    /// The seed of tokens and responses.
    pub seed: u64,
    /// The directory of all files; if absent, a directory that is removed with the stage.
    pub keep: Option<PathBuf>,
    /// The stand-ins for the push services.
    pub services: PushServices,
    /// The latency of every response, in milliseconds; if absent, responses come at once.
    pub latency_ms: Option<f64>,
    /// The trouble to be injected below the server.
    pub trouble: Option<Trouble>,
    /// The store of the server.
    pub store: StageStore,
    /// The queue of the server.
    pub queue: StageQueue,
    /// The number of servers; several need a store that they can share.
    pub nodes: u32,
}

/// The stand-ins for the push services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushServices {
    /// Sinks, which accept everything and do nothing but count.
    Sinks,
    /// Emulators with this policy.
    Emulators(AnswerPolicy),
}

impl PushServices {
    /// Returns their response policy.
    pub const fn answers(self) -> AnswerPolicy {
        match self {
            Self::Sinks => AnswerPolicy::AcceptAll,
            Self::Emulators(policy) => policy,
        }
    }

    /// Returns true if they are sinks.
    pub const fn are_sinks(self) -> bool {
        matches!(self, Self::Sinks)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Sinks => "accept-all (sinks)",
            Self::Emulators(AnswerPolicy::Realistic) => "realistic",
            Self::Emulators(AnswerPolicy::AcceptAll) => "accept-all",
        }
    }
}

impl StageOptions {
    /// Sinks that answer at once.
    pub fn with_sinks(devices: u64) -> Self {
        Self { services: PushServices::Sinks, ..Self::with_emulators(devices) }
    }

    /// Emulators that accept all until they get another policy.
    pub const fn with_emulators(devices: u64) -> Self {
        let services = PushServices::Emulators(AnswerPolicy::AcceptAll);
        Self {
            devices,
            providers: StagedServices::USUAL,
            seed: 1,
            keep: None,
            services,
            latency_ms: None,
            trouble: None,
            store: StageStore::File,
            queue: StageQueue::File,
            nodes: 1,
        }
    }

    /// The devices of the stage.
    pub const fn population(&self) -> DevicePopulation {
        DevicePopulation::new(self.devices, self.seed).through(self.providers)
    }

    /// The settings of one push service: everything but address, TLS and the observer's file.
    fn settings(&self, service: StagedService, keys: &Keys) -> Value {
        // Every token fits in, with room for ones that should not be there.
        let capacity_tokens = self.population().devices_of(service) + 1000;
        let latency = self.latency_ms.map(|ms| json!({"kind": "fixed", "ms": ms}));
        let PushServices::Emulators(answers) = self.services else {
            return json!({"latency": latency, "observer": {"capacity_tokens": capacity_tokens}});
        };
        let mut policy = answers.of(service);
        if let Some(latency) = latency {
            policy["latency"] = latency;
        }
        let mut settings = json!({
            "seed": self.seed,
            "policy": policy,
            "observer": {"capacity_tokens": capacity_tokens},
            "control": "127.0.0.1:0",
        });
        keys.introduce(service, &mut settings);
        settings
    }
}

/// Everything that runs.
pub struct Stage {
    // The server is first, so that it is ended before those it talks to.
    /// The server that receives the requests.
    pub server: Server,
    /// The other servers over the same database.
    pub beside: Vec<Server>,
    /// End after the server that uses them.
    pub engines: EngineServers,
    /// The push services.
    pub emulators: Emulators,
    /// A client that acts for the app.
    pub client: ApiClient,
    /// The keys that its emulators know.
    pub keys: Keys,
    // Dropped before its directory, and after the server that depends on it.
    injector: TroubleInjector,
    directory: StageDirectory,
}

/// The directory for the files of all processes of a stage.
pub enum StageDirectory {
    /// Gone with the stage.
    Temporary(TempDir),
    /// Named by the user.
    Kept(PathBuf),
}

impl StageDirectory {
    /// Creates a temporary directory, or takes the given one if it is empty.
    pub fn make(keep: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = keep else {
            let directory = tempfile::Builder::new().prefix("stentor-demo-").tempdir();
            return Ok(Self::Temporary(directory.context("no directory can be made for the demo")?));
        };
        let usable = std::fs::create_dir_all(path).and_then(|()| std::fs::read_dir(path));
        let mut entries = usable.with_context(|| format!("{} cannot be used", path.display()))?;
        if entries.next().is_some() {
            let sentence = format!("{} is not empty: name a new directory with --keep", path.display());
            return Err(CommandFailure::usage(sentence).into());
        }
        let path = std::path::absolute(path).context("the directory has no absolute path")?;
        Ok(Self::Kept(path))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        match self {
            Self::Temporary(directory) => directory.path(),
            Self::Kept(path) => path,
        }
    }
}

impl Stage {
    /// Starts everything, waits until it is ready, and reports its location and the settings in force.
    pub async fn build(options: &StageOptions, reporter: &Arc<dyn Reporter>) -> anyhow::Result<Self> {
        let started = Instant::now();
        let stage = Self::start(options, reporter).await?;
        reporter.line(&format!(
            "server and emulators are ready{} in {}",
            elapsed_text(" after ", started.elapsed()),
            stage.directory().display()
        ));
        let pace = match options.latency_ms {
            Some(ms) => format!("answers take {ms:.1} ms"),
            None => "answers come at once".to_owned(),
        };
        let limits = limits::describe(&stage.server.limits()?);
        reporter.line(&format!("policy {}, {pace}; limits in force: {limits}", options.services.word()));
        Ok(stage)
    }

    async fn start(options: &StageOptions, reporter: &Arc<dyn Reporter>) -> anyhow::Result<Self> {
        let directory = StageDirectory::make(options.keep.as_deref())?;
        let path = directory.path();
        let keys = Keys::make()?;
        let settings = |service| options.settings(service, &keys);
        let emulators =
            Emulators::start(options.providers, options.services.are_sinks(), path, settings).await?;
        let injector =
            TroubleInjector::prepare(options.trouble, path, &data_dir(path), options.devices, reporter)?;
        let settings = options.trouble.map(|_| troubles::settings(options.devices));
        let engines = EngineServers::start(options.store, &options.queue)?;
        let mut environment = injector.environment();
        environment.extend(engines.environment(&options.queue));
        let server = Server::start_with(path, settings.clone(), environment.clone()).await?;
        // Only when the first one runs: it makes the secrets that all must have alike.
        let beside = nodes::start_beside(path, options.nodes, settings.as_ref(), &environment).await?;
        let credentials = emulators.credentials(&keys)?;
        let client = make_app(server.client()?, "demo", &credentials).await?;
        Ok(Self { server, beside, engines, emulators, client, keys, injector, directory })
    }

    /// Returns the directory of all files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns all servers, beginning with the one that receives the requests.
    pub fn servers(&mut self) -> impl Iterator<Item = &mut Server> {
        std::iter::once(&mut self.server).chain(&mut self.beside)
    }

    /// Returns a client of each server that acts for the app.
    pub fn clients(&mut self) -> anyhow::Result<Vec<ApiClient>> {
        let app = self.client.app().map(ToOwned::to_owned).unwrap_or_default();
        self.servers().map(|server| Ok(server.client()?.for_app(app.clone()))).collect()
    }

    /// Restarts all servers, as [`Server::restart`] does, and returns their usage.
    pub async fn restart(&mut self) -> anyhow::Result<ResourceUsage> {
        let mut used = Vec::new();
        for server in self.servers() {
            used.push(server.restart().await?);
        }
        Ok(nodes::together(used.into_iter()))
    }

    /// Requests all servers to end and returns their usage.
    pub fn stop(&mut self) -> ResourceUsage {
        nodes::together(self.servers().map(Server::stop))
    }

    /// Returns the usage of all servers so far.
    pub fn usage(&mut self) -> ResourceUsage {
        nodes::together(self.servers().map(Server::usage))
    }

    /// Returns the usage of each server so far.
    pub fn usages(&mut self) -> Vec<ResourceUsage> {
        self.servers().map(Server::usage).collect()
    }

    /// Injects the trouble for which this stage was built.
    pub async fn inject(&mut self, acceptance: &mut AcceptanceCheck) -> anyhow::Result<()> {
        match self.server.process() {
            Some(server) => self.injector.inject(server, &self.client, acceptance).await,
            None => Ok(()),
        }
    }

    /// Fails if a process has ended by itself.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        self.servers().try_for_each(Server::check_alive)?;
        self.emulators.check_alive()
    }
}

/// Creates an app with all credentials. Returns a client that acts for it.
pub async fn make_app(
    root: ApiClient,
    name: &str,
    credentials: &StageCredentials,
) -> anyhow::Result<ApiClient> {
    let app = root.post("/v1/apps", &json!({"name": name})).await?;
    let app = cell(&app["id"]);
    let path = format!("/v1/apps/{}/credentials", segment(&app));
    for (service, credential) in credentials {
        root.put(&format!("{path}/{}", service.word()), credential).await?;
    }
    Ok(root.for_app(app))
}
