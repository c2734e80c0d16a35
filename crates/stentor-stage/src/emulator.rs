//! An emulator as a process of its own. It may be killed, and keeps its address and counts after a restart.

use crate::child_process::{ChildProcess, ResourceUsage};
use crate::devices::{StagedService, StagedServices, TokenOrigins};
use crate::keys::Keys;
use anyhow::Context;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use stentor_emulators::ObserverFile;
use stentor_emulators::web_push::SyntheticSubscriptions;

/// The response log of APNs' sink for single messages: lines of a token and microseconds since 1970.
pub const ANSWERS: &str = "answers.log";

/// The prefix of the tokens with logged responses; no token of a population has it.
pub const NOTED_TOKENS: &str = "000000000000000000000000000000000000000000000000";

/// The push services of a stage: an emulator of each, in one directory.
pub struct Emulators {
    emulators: Vec<Emulator>,
    directory: PathBuf,
}

/// The credentials with which a server reaches the emulators of a stage.
pub type StageCredentials = Vec<(StagedService, Value)>;

impl Emulators {
    /// Starts one of each service, with its own settings.
    pub async fn start(
        services: StagedServices,
        are_sinks: bool,
        directory: &Path,
        settings: impl Fn(StagedService) -> Value,
    ) -> anyhow::Result<Self> {
        let mut emulators = Vec::new();
        for service in services.as_slice() {
            emulators.push(Emulator::start(*service, are_sinks, directory, settings(*service)).await?);
        }
        Ok(Self { emulators, directory: directory.to_owned() })
    }

    /// Returns the credentials with which a server reaches them, in their order.
    pub fn credentials(&self, keys: &Keys) -> anyhow::Result<StageCredentials> {
        let ca_pem = std::fs::read_to_string(self.directory.join("ca").join("ca.pem"))
            .context("the emulators left no ca.pem")?;
        let of = |emulator: &Emulator| {
            (emulator.service, keys.credential(emulator.service, &emulator.url, &ca_pem))
        };
        Ok(self.emulators.iter().map(of).collect())
    }

    /// Returns the addresses that tokens bear; `seed` is that of the emulators.
    pub fn origins(&self, seed: u64) -> anyhow::Result<TokenOrigins> {
        let url =
            |service| self.emulators.iter().find(|one| one.service == service).map(|one| one.url.as_str());
        let web_push = url(StagedService::WebPush).map(|url| SyntheticSubscriptions::new(url, seed));
        let wns = url(StagedService::Wns).unwrap_or_default().to_owned();
        Ok(TokenOrigins { web_push: web_push.transpose()?, wns })
    }

    /// Returns all of them.
    pub fn all(&self) -> &[Emulator] {
        &self.emulators
    }

    /// Returns all of them for changes.
    pub fn all_mut(&mut self) -> &mut [Emulator] {
        &mut self.emulators
    }

    /// Returns the one of a service. Fails if the stage has none.
    pub fn of(&self, service: StagedService) -> anyhow::Result<&Emulator> {
        let found = self.emulators.iter().find(|emulator| emulator.service == service);
        found.with_context(|| format!("the stage has no emulator of {}", service.word()))
    }

    /// Returns the one of a service for changes. Fails if the stage has none.
    pub fn of_mut(&mut self, service: StagedService) -> anyhow::Result<&mut Emulator> {
        let found = self.emulators.iter_mut().find(|emulator| emulator.service == service);
        found.with_context(|| format!("the stage has no emulator of {}", service.word()))
    }

    /// Ends all, so that their counts are final.
    pub fn stop(&mut self) {
        self.emulators.iter_mut().for_each(Emulator::stop);
    }

    /// Pauses all for a time, so that a campaign cannot end within it.
    pub async fn stall(&self, span: Duration) {
        self.emulators.iter().for_each(Emulator::pause);
        tokio::time::sleep(span).await;
        self.emulators.iter().for_each(Emulator::resume);
    }

    /// Fails if one has ended by itself.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        self.emulators.iter_mut().try_for_each(Emulator::check_alive)
    }
}

/// An emulator as a process.
pub struct Emulator {
    service: StagedService,
    is_sink: bool,
    directory: PathBuf,
    /// Its address; fixed by the first start.
    pub url: String,
    /// The address of its control port, if its settings request one; another one after each start.
    pub control: Option<String>,
    settings: Value,
    child: Option<ChildProcess>,
}

impl Emulator {
    /// Starts an emulator with these settings (everything but address, TLS and observer).
    pub async fn start(
        service: StagedService,
        is_sink: bool,
        directory: &Path,
        mut settings: Value,
    ) -> anyhow::Result<Self> {
        settings["tls"] = serde_json::json!({"kind": "authority", "directory": directory.join("ca")});
        settings["observer"]["path"] = serde_json::json!(observer_path(directory, service));
        if is_sink && service == StagedService::Apns {
            let path = directory.join(ANSWERS);
            settings["log"] = serde_json::json!({"path": path, "token_prefix": NOTED_TOKENS});
        }
        let (directory, url) = (directory.to_owned(), String::new());
        let mut emulator = Self { service, is_sink, directory, url, control: None, settings, child: None };
        emulator.configure()?;
        let ready = emulator.launch().await?;
        // It comes back at the same address after a kill, or the server could not find it again.
        emulator.settings["listen"] = ready["address"].clone();
        emulator.configure()?;
        ready["url"].as_str().unwrap_or_default().clone_into(&mut emulator.url);
        Ok(emulator)
    }

    /// Returns its push service.
    pub const fn service(&self) -> StagedService {
        self.service
    }

    /// Pauses it (SIGSTOP): connections stay open and get no responses.
    pub fn pause(&self) {
        self.child.iter().for_each(ChildProcess::pause);
    }

    /// Resumes it.
    pub fn resume(&self) {
        self.child.iter().for_each(ChildProcess::resume);
    }

    /// Ends it and starts it again at the same address, with another policy and without any counts.
    pub async fn renew(&mut self, policy: Value) -> anyhow::Result<()> {
        self.stop();
        self.settings["policy"] = policy;
        self.configure()?;
        let counts = observer_path(&self.directory, self.service);
        std::fs::remove_file(&counts).with_context(|| format!("{} cannot be removed", counts.display()))?;
        self.launch().await.map(drop)
    }

    /// Kills it (kill -9) and starts it again.
    pub async fn kill_and_restart(&mut self) -> anyhow::Result<()> {
        if let Some(child) = self.child.take() {
            child.kill();
        }
        self.launch().await.map(drop)
    }

    /// Requests it to end.
    pub fn stop(&mut self) {
        if let Some(child) = self.child.take() {
            child.terminate();
        }
    }

    /// Returns the usage of its process so far.
    pub fn usage(&mut self) -> ResourceUsage {
        self.child.as_mut().map(ChildProcess::usage).unwrap_or_default()
    }

    /// Fails if it has ended by itself.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        self.child.as_mut().map_or(Ok(()), ChildProcess::check_alive)
    }

    /// Opens its counts.
    pub fn counted(&self) -> anyhow::Result<ObserverFile> {
        let path = observer_path(&self.directory, self.service);
        ObserverFile::open(&path).with_context(|| format!("the counts in {} cannot be read", path.display()))
    }

    fn configure(&self) -> anyhow::Result<()> {
        crate::files::publish(&self.file("json"), &self.settings.to_string())
    }

    async fn launch(&mut self) -> anyhow::Result<Value> {
        let ready = self.file("ready");
        match std::fs::remove_file(&ready) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let name = match self.service {
            StagedService::Fcm => "FCM emulator",
            StagedService::Apns => "APNs emulator",
            StagedService::Hms => "HMS emulator",
            StagedService::Gcm => "GCM emulator",
            StagedService::WebPush => "Web Push emulator",
            StagedService::Wns => "WNS emulator",
        };
        let (config, log) = (self.file("json"), self.file("log"));
        // Commands have hyphens.
        let service = if self.is_sink { "sink".to_owned() } else { self.service.word().replace('_', "-") };
        let arguments = [
            "emulate".into(),
            service.into(),
            "--config".into(),
            config.into(),
            "--ready-file".into(),
            ready.clone().into(),
            "--end-with-parent".into(),
        ];
        let child = self.child.insert(ChildProcess::start(name, &arguments, &log)?);
        let facts = child.ready(&ready).await?;
        self.control = facts["control"].as_str().map(str::to_owned);
        Ok(facts)
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.service.word()))
    }
}

fn observer_path(directory: &Path, service: StagedService) -> PathBuf {
    directory.join(format!("{}.observer", service.word()))
}
