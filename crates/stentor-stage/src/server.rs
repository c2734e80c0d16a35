//! The server as a process of its own. It may be killed, and continues after a restart.

use crate::child_process::{ChildProcess, ResourceUsage};
use crate::client::{ApiClient, Key, read_key};
use crate::failure::CommandFailure;
use crate::programs::Program;
use anyhow::Context;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The setting for the request rate of an address without a key. The servers of bench and tests get a very high rate unless they set one.
pub const NAMELESS_RATE: &str = "STENTOR__API__NAMELESS_REQUESTS_PER_SECOND_MAX_COUNT";
/// A killed server first recovers the deliveries in flight, over millions of devices.
const START_LIMIT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The secrets that all servers of an installation share.
const SECRETS: [&str; 3] = ["key.pepper", "root.key", "seal.key"];
/// Any free port of this machine.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Puts a process under limits that hold until this is dropped.
pub type ProcessLimit = Box<dyn Fn(u32) -> anyhow::Result<()> + Send + Sync>;

/// The place of a server among others.
#[derive(Clone, Debug)]
pub struct ServerPlace {
    /// The address to listen on; for port 0 the system chooses one.
    pub listen: SocketAddr,
    /// The command line before its program, which runs it in the right place.
    pub before: Vec<OsString>,
    /// The program, if it differs from this one.
    pub program: Option<PathBuf>,
    /// The network that it may send to although it is private: that of the emulators.
    pub network: String,
}

impl ServerPlace {
    /// On this machine, like everything else.
    fn here(listen: SocketAddr) -> Self {
        Self { listen, before: Vec::new(), program: None, network: "loopback".to_owned() }
    }
}

/// The server of the demo; sums up the usage of all its processes.
pub struct Server {
    data_dir: PathBuf,
    log: PathBuf,
    /// Its configuration file, if it has one.
    config: Option<PathBuf>,
    /// Environment variables beyond ours.
    environment: Vec<(&'static str, OsString)>,
    place: ServerPlace,
    address: Option<String>,
    /// The certificate authority; without it there is no TLS.
    authority: Option<Vec<u8>>,
    child: Option<ChildProcess>,
    /// Its limit, if any. Declared after the process, because the process must have ended before the limit is dropped.
    limit: Option<ProcessLimit>,
    past: ResourceUsage,
}

/// Returns the data directory of the server of a directory.
pub fn data_dir(directory: &Path) -> PathBuf {
    directory.join("server")
}

/// Copies the secrets of a server that has started for one to come that shares its database.
pub fn share_secrets(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for secret in SECRETS {
        std::fs::copy(from.join(secret), to.join(secret))
            .with_context(|| format!("{secret} cannot be copied to {}", to.display()))?;
    }
    Ok(())
}

fn publish_settings(data_dir: &Path, settings: &str) -> anyhow::Result<PathBuf> {
    let path = data_dir.with_extension("toml");
    crate::files::publish(&path, settings)?;
    Ok(path)
}

impl Server {
    /// Starts the server and waits until it is ready.
    pub async fn start(directory: &Path) -> anyhow::Result<Self> {
        Self::start_with(directory, None, Vec::new()).await
    }

    /// Starts the server at an address with settings of its own, now and after every kill.
    pub async fn start_at(directory: &Path, listen: SocketAddr, settings: String) -> anyhow::Result<Self> {
        Self::start_placed(directory, ServerPlace::here(listen), Some(settings), Vec::new()).await
    }

    /// Starts the server with settings and variables of its own, now and after every kill.
    pub async fn start_with(
        directory: &Path,
        settings: Option<String>,
        environment: Vec<(&'static str, OsString)>,
    ) -> anyhow::Result<Self> {
        Self::start_placed(directory, ServerPlace::here(ANY_PORT), settings, environment).await
    }

    /// Starts the server at a place with settings and variables of its own, now and after every kill.
    pub async fn start_placed(
        directory: &Path,
        place: ServerPlace,
        settings: Option<String>,
        environment: Vec<(&'static str, OsString)>,
    ) -> anyhow::Result<Self> {
        let data_dir = data_dir(directory);
        let config = settings.map(|settings| publish_settings(&data_dir, &settings)).transpose()?;
        let mut server = Self {
            data_dir,
            log: directory.join("server.log"),
            config,
            environment,
            address: (place.listen.port() != 0).then(|| place.listen.to_string()),
            place,
            authority: None,
            child: None,
            limit: None,
            past: ResourceUsage::default(),
        };
        server.launch().await?;
        Ok(server)
    }

    /// The limits that it has from its configuration.
    pub fn limits(&self) -> anyhow::Result<serde_json::Value> {
        crate::limits::in_force(self.config.as_deref())
    }

    /// Its process, if it runs.
    pub fn process(&mut self) -> Option<&mut ChildProcess> {
        self.child.as_mut()
    }

    /// Returns a client with the root key.
    pub fn client(&self) -> anyhow::Result<ApiClient> {
        let key = read_key(&self.data_dir.join("root.key")).context("the server made no root key")?;
        self.client_with(Some(key))
    }

    fn client_with(&self, key: Option<Key>) -> anyhow::Result<ApiClient> {
        let client = ApiClient::new(&self.url(), key, None)?;
        self.authority.as_deref().map_or(Ok(client.clone()), |pem| client.with_authority(pem))
    }

    /// Stops the server and starts it again at the same address with these settings, which switch on TLS. `authority` is the certificate
    /// that the client trusts.
    pub async fn restart_with_tls(&mut self, settings: &str, authority: Vec<u8>) -> anyhow::Result<()> {
        self.stop();
        self.authority = Some(authority);
        self.restart_with(settings, None).await
    }

    /// Ends it and starts it again at the same address with these settings and under this limit. Its usage is counted from
    /// zero again.
    pub async fn restart_with(&mut self, settings: &str, limit: Option<ProcessLimit>) -> anyhow::Result<()> {
        self.stop();
        self.limit = limit;
        self.past = ResourceUsage::default();
        self.config = Some(publish_settings(&self.data_dir, settings)?);
        self.launch().await
    }

    /// Kills it (kill -9), starts it again at once, and waits until it is ready.
    pub async fn kill_and_restart(&mut self) -> anyhow::Result<()> {
        if let Some(child) = self.child.take() {
            self.remember(child.kill());
        }
        self.launch().await
    }

    /// Kills it (kill -9) and leaves it dead.
    pub fn kill(&mut self) {
        if let Some(child) = self.child.take() {
            self.remember(child.kill());
        }
    }

    /// Stops the server, starts it again, and returns its usage, as soon as its credentials have their access tokens and connections. From
    /// then on only the usage of the new process is counted.
    pub async fn restart(&mut self) -> anyhow::Result<ResourceUsage> {
        let used = self.stop();
        self.past = ResourceUsage::default();
        self.launch().await?;
        self.until_warm().await?;
        Ok(used)
    }

    /// Starts it again after it was stopped, and waits until it is ready.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.launch().await
    }

    /// Returns true if it runs another program than this process.
    pub const fn is_of_another_program(&self) -> bool {
        self.place.program.is_some()
    }

    /// Stops the server, and starts another program in its place, or this process's own, with the same data.
    pub async fn exchange(&mut self, program: Option<PathBuf>) -> anyhow::Result<()> {
        self.stop();
        self.place.program = program;
        self.launch().await
    }

    /// Requests the server to end and returns the usage of all its processes.
    pub fn stop(&mut self) -> ResourceUsage {
        if let Some(child) = self.child.take() {
            self.remember(child.terminate());
        }
        self.past
    }

    /// Returns the usage of all its processes so far.
    pub fn usage(&mut self) -> ResourceUsage {
        let now = self.child.as_mut().map(ChildProcess::usage).unwrap_or_default();
        ResourceUsage {
            cpu_seconds: self.past.cpu_seconds + now.cpu_seconds,
            peak_rss_bytes: self.past.peak_rss_bytes.max(now.peak_rss_bytes),
        }
    }

    /// Fails if it has ended by itself.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        self.child.as_mut().map_or(Ok(()), ChildProcess::check_alive)
    }

    fn remember(&mut self, usage: ResourceUsage) {
        self.past.cpu_seconds += usage.cpu_seconds;
        self.past.peak_rss_bytes = self.past.peak_rss_bytes.max(usage.peak_rss_bytes);
    }

    fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address.as_deref().unwrap_or_default())
    }

    async fn launch(&mut self) -> anyhow::Result<()> {
        let listen = self.address.clone().unwrap_or_else(|| self.place.listen.to_string());
        let mut arguments: Vec<OsString> = vec![
            "serve".into(),
            "--data-dir".into(),
            self.data_dir.clone().into(),
            "--listen".into(),
            listen.into(),
            "--end-with-parent".into(),
            // The emulators are on this machine.
            "--allow-network".into(),
            self.place.network.clone().into(),
        ];
        if let Some(config) = &self.config {
            arguments.extend(["--config".into(), config.clone().into()]);
        }
        let program = self.place.program.clone().map_or_else(|| Program::Product.find(), Ok)?;
        let words: Vec<OsString> = self.place.before.iter().cloned().chain([program.into()]).collect();
        let mut environment = self.environment.clone();
        // A server of another version may know no such setting.
        if self.place.program.is_none() && !environment.iter().any(|(name, _)| *name == NAMELESS_RATE) {
            environment.push((NAMELESS_RATE, "1000000".into()));
        }
        let child = ChildProcess::start_behind("server", &words, &arguments, &environment, &self.log)?;
        let child = self.child.insert(child);
        if let Some(limit) = &self.limit {
            // Before the wait for its answer: the resources of its start are limited and counted as well.
            limit(child.id())?;
        }
        let started = Instant::now();
        while !self.is_ready().await {
            self.check_alive()?;
            if started.elapsed() > START_LIMIT {
                return Err(CommandFailure::not_done(
                    "the server does not get ready: look at its log (--keep DIR)",
                )
                .into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn until_warm(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        let client = self.client_with(None)?;
        while client.probe("/readyz").await.is_ok_and(|(_, body)| body["getting_ready"] == true) {
            self.check_alive()?;
            if started.elapsed() > START_LIMIT {
                return Err(
                    CommandFailure::not_done("the push services give no access token or connection").into()
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn is_ready(&mut self) -> bool {
        // Once known it stays: after a kill the server must be where its clients look for it.
        if self.address.is_none() {
            let written = std::fs::read_to_string(self.data_dir.join("listen.addr"));
            self.address = written.ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        }
        if self.address.is_none() {
            return false;
        }
        let Ok(client) = self.client_with(None) else { return false };
        client.probe("/readyz").await.is_ok_and(|(status, _)| status.is_success())
    }
}
