//! An emulator as a process of its own, which may be killed and comes back as itself.

use super::fleet::Half;
use crate::child::{Child, Usage};
use anyhow::Context;
use serde_json::Value;
use std::path::{Path, PathBuf};
use stentor_emulators::ObserverFile;

/// Where APNs' sink notes when single messages were answered: lines of a token and microseconds since 1970.
pub(crate) const ANSWERS: &str = "answers.log";

/// How the tokens begin whose answers are noted; no token of a fleet does.
pub(crate) const NOTED_TOKENS: &str = "000000000000000000000000000000000000000000000000";

/// An emulator of the demo.
pub(crate) struct Emulator {
    half: Half,
    is_sink: bool,
    directory: PathBuf,
    /// Where it listens; fixed by the first start.
    pub(crate) url: String,
    /// Where it is controlled, if its settings ask for that; another place after each start.
    pub(crate) control: Option<String>,
    settings: Value,
    child: Option<Child>,
}

impl Emulator {
    /// Starts an emulator with these settings (everything but address, TLS and observer).
    pub(crate) async fn start(
        half: Half,
        is_sink: bool,
        directory: &Path,
        mut settings: Value,
    ) -> anyhow::Result<Self> {
        settings["tls"] = serde_json::json!({"kind": "authority", "directory": directory.join("ca")});
        settings["observer"]["path"] = serde_json::json!(observer_path(directory, half));
        if is_sink && half == Half::Apns {
            let path = directory.join(ANSWERS);
            settings["log"] = serde_json::json!({"path": path, "token_prefix": NOTED_TOKENS});
        }
        let (directory, url) = (directory.to_owned(), String::new());
        let mut emulator = Self { half, is_sink, directory, url, control: None, settings, child: None };
        emulator.configure()?;
        let ready = emulator.launch().await?;
        // It comes back at the same address after a kill, or the server could not find it again.
        emulator.settings["listen"] = ready["address"].clone();
        emulator.configure()?;
        ready["url"].as_str().unwrap_or_default().clone_into(&mut emulator.url);
        Ok(emulator)
    }

    /// Stops it where it is (SIGSTOP): connections stay open and nobody answers.
    pub(crate) fn pause(&self) {
        self.child.iter().for_each(Child::pause);
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.child.iter().for_each(Child::resume);
    }

    /// Ends it and starts it again at the same address, with another policy and without any counts.
    pub(crate) async fn renew(&mut self, policy: Value) -> anyhow::Result<()> {
        self.stop();
        self.settings["policy"] = policy;
        self.configure()?;
        let counts = observer_path(&self.directory, self.half);
        std::fs::remove_file(&counts).with_context(|| format!("{} cannot be removed", counts.display()))?;
        self.launch().await.map(drop)
    }

    /// Kills it (kill -9) and starts it again.
    pub(crate) async fn kill_and_restart(&mut self) -> anyhow::Result<()> {
        if let Some(child) = self.child.take() {
            child.kill();
        }
        self.launch().await.map(drop)
    }

    /// Asks it to end.
    pub(crate) fn stop(&mut self) {
        if let Some(child) = self.child.take() {
            child.terminate();
        }
    }

    /// Returns what its process has used so far.
    pub(crate) fn usage(&mut self) -> Usage {
        self.child.as_mut().map(Child::usage).unwrap_or_default()
    }

    /// Fails when it has ended by itself.
    pub(crate) fn check_alive(&mut self) -> anyhow::Result<()> {
        self.child.as_mut().map_or(Ok(()), Child::check_alive)
    }

    /// Reads what it has counted.
    pub(crate) fn counted(&self) -> anyhow::Result<ObserverFile> {
        let path = observer_path(&self.directory, self.half);
        ObserverFile::open(&path).with_context(|| format!("the counts in {} cannot be read", path.display()))
    }

    fn configure(&self) -> anyhow::Result<()> {
        crate::process::publish(&self.file("json"), &self.settings.to_string())
    }

    async fn launch(&mut self) -> anyhow::Result<Value> {
        let ready = self.file("ready");
        match std::fs::remove_file(&ready) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let name = match self.half {
            Half::Fcm => "FCM emulator",
            Half::Apns => "APNs emulator",
        };
        let (config, log) = (self.file("json"), self.file("log"));
        let service = if self.is_sink { "sink" } else { self.half.word() };
        let arguments = [
            "emulate".into(),
            service.into(),
            "--config".into(),
            config.into(),
            "--ready-file".into(),
            ready.clone().into(),
            "--end-with-parent".into(),
        ];
        let child = self.child.insert(Child::start(name, &arguments, &log)?);
        let facts = child.ready(&ready).await?;
        self.control = facts["control"].as_str().map(str::to_owned);
        Ok(facts)
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.half.word()))
    }
}

fn observer_path(directory: &Path, half: Half) -> PathBuf {
    directory.join(format!("{}.observer", half.word()))
}
