//! `stentor emulate`: the other side of a push service, on this machine.

mod sink;

use crate::failure::Failure;
use crate::output::Output;
use crate::process;
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use stentor_emulators::control::Running;
use stentor_emulators::{ApnsConfig, ApnsEmulator, Engine, FcmConfig, FcmEmulator, Policy, TlsConfig};
use stentor_stage::files::publish;

/// Run an emulator of a push service until it is asked to end
#[derive(Debug, Args)]
pub(crate) struct Emulate {
    #[command(subcommand)]
    service: PushService,
}

#[derive(Debug, Subcommand)]
enum PushService {
    /// Firebase Cloud Messaging (HTTP v1), with its token endpoint and topics
    #[command(after_help = "\
Examples:
  stentor emulate fcm --listen 127.0.0.1:8443 --ca-dir emulator
  stentor emulate fcm --policy '{\"mix\":\"realistic\",\"latency\":{\"kind\":\"fixed\",\"ms\":50}}'
  stentor emulate fcm --control 127.0.0.1:8444 --observer fcm.observer")]
    Fcm(Settings),
    /// Apple Push Notification service (HTTP/2)
    #[command(after_help = "\
Examples:
  stentor emulate apns --listen 127.0.0.1:9443 --ca-dir emulator
  stentor emulate apns --policy policy.json --observer apns.observer")]
    Apns(Settings),
    /// A sink for either: answers 200 to everything with the least work, to measure a sender
    #[command(after_help = "\
Examples:
  stentor emulate sink --service apns --listen 127.0.0.1:9443 --ca-dir emulator
  stentor emulate sink --service fcm --observer fcm.observer --capacity-tokens 10000000 --latency-ms 50")]
    Sink(sink::Settings),
}

/// How an emulator is started.
#[derive(Debug, Args)]
struct Settings {
    /// Where to listen; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where to listen for control and test devices, in plain HTTP
    #[arg(long, value_name = "ADDRESS")]
    control: Option<SocketAddr>,
    /// What to answer: a JSON object, or a file that holds one
    #[arg(long, value_name = "FILE|JSON")]
    policy: Option<String>,
    /// The file in which every token is counted; it survives the emulator's end
    #[arg(long, value_name = "FILE")]
    observer: Option<PathBuf>,
    /// How many different tokens can be counted
    #[arg(long, value_name = "N")]
    capacity_tokens: Option<u64>,
    /// Where the certificate authority is kept; clients trust its ca.pem
    #[arg(long, value_name = "DIR", conflicts_with = "plaintext")]
    ca_dir: Option<PathBuf>,
    /// Speak without TLS
    #[arg(long)]
    plaintext: bool,
    /// Makes chance repeatable
    #[arg(long)]
    seed: Option<u64>,
    /// How many requests a client may have open on one connection
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// What HTTP/2 is spoken with; frames unless the file says otherwise
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
    /// All settings as a JSON file; options win
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the addresses to this file as JSON once everything is ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    #[arg(long, hide = true)]
    end_with_parent: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineName {
    /// The h2 library
    H2,
    /// Frames of our own
    Frames,
}

impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::H2 => Self::H2,
            EngineName::Frames => Self::Frames,
        }
    }
}

impl Emulate {
    /// Runs the emulator.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        match self.service {
            PushService::Fcm(settings) => {
                let ended = settings.prepare()?;
                let running = FcmEmulator::start(settings.fcm()?).await.map_err(refused)?;
                settings.serve("fcm", running, ended, output).await
            }
            PushService::Apns(settings) => {
                let ended = settings.prepare()?;
                let running = ApnsEmulator::start(settings.apns()?).await.map_err(refused)?;
                settings.serve("apns", running, ended, output).await
            }
            PushService::Sink(settings) => settings.run(output).await,
        }
    }
}

fn refused(error: stentor_emulators::EmulatorError) -> anyhow::Error {
    Failure::usage(format!("the emulator cannot start: {error}")).into()
}

impl Settings {
    fn prepare(&self) -> anyhow::Result<impl Future<Output = ()> + use<>> {
        if self.end_with_parent {
            process::end_with_parent();
        }
        process::use_small_pages();
        process::raise_file_limit();
        process::asked_to_end()
    }

    fn fcm(&self) -> anyhow::Result<FcmConfig> {
        let mut config: FcmConfig = self.base()?;
        config.listen = self.listen.unwrap_or(config.listen);
        config.control = self.control.or(config.control);
        config.seed = self.seed.unwrap_or(config.seed);
        config.max_concurrent_streams = self.streams.unwrap_or(config.max_concurrent_streams);
        config.engine = self.engine.map_or(config.engine, Engine::from);
        config.tls = self.tls(config.tls);
        config.policy = self.policy(config.policy)?;
        self.observe(&mut config.observer);
        Ok(config)
    }

    fn apns(&self) -> anyhow::Result<ApnsConfig> {
        let mut config: ApnsConfig = self.base()?;
        config.listen = self.listen.unwrap_or(config.listen);
        config.control = self.control.or(config.control);
        config.seed = self.seed.unwrap_or(config.seed);
        config.max_concurrent_streams = self.streams.unwrap_or(config.max_concurrent_streams);
        config.engine = self.engine.map_or(config.engine, Engine::from);
        config.tls = self.tls(config.tls);
        config.policy = self.policy(config.policy)?;
        self.observe(&mut config.observer);
        Ok(config)
    }

    fn base<T: DeserializeOwned + Default>(&self) -> anyhow::Result<T> {
        self.config
            .as_deref()
            .map_or_else(|| Ok(T::default()), |path| parse(&read(path)?, &path.display().to_string()))
    }

    fn tls(&self, configured: TlsConfig) -> TlsConfig {
        match &self.ca_dir {
            _ if self.plaintext => TlsConfig::Plaintext,
            Some(directory) => TlsConfig::Authority { directory: Some(directory.clone()) },
            None => configured,
        }
    }

    fn policy(&self, configured: Policy) -> anyhow::Result<Policy> {
        match self.policy.as_deref() {
            None => Ok(configured),
            Some(text) if text.trim_start().starts_with('{') => parse(text, "--policy"),
            Some(path) => parse(&read(Path::new(path))?, path),
        }
    }

    fn observe(&self, observer: &mut stentor_emulators::ObserverConfig) {
        if let Some(path) = &self.observer {
            observer.path = Some(path.clone());
        }
        observer.capacity_tokens = self.capacity_tokens.unwrap_or(observer.capacity_tokens);
    }

    async fn serve(
        &self,
        service: &str,
        running: Running,
        ended: impl Future<Output = ()>,
        output: Output,
    ) -> anyhow::Result<()> {
        let control = running.control_addr();
        let facts = facts(service, running.addr(), running.ca_pem().is_some(), self.ca_dir.as_deref());
        let facts = with(facts, "control", json!(control.map(|address| format!("http://{address}"))));
        announce(&facts, self.ready_file.as_deref(), output)?;
        ended.await;
        running.stop().await;
        Ok(())
    }
}

fn facts(service: &str, address: SocketAddr, tls: bool, ca_dir: Option<&Path>) -> Value {
    let scheme = if tls { "https" } else { "http" };
    json!({
        "service": service,
        "url": format!("{scheme}://{address}"),
        "address": address,
        "ca_file": ca_dir.map(|directory| directory.join("ca.pem")),
    })
}

fn with(mut facts: Value, name: &str, value: Value) -> Value {
    facts[name] = value;
    facts
}

/// Returns where the emulator is, to whoever looks at the terminal and to whoever waits for the file.
fn announce(facts: &Value, ready_file: Option<&Path>, output: Output) -> anyhow::Result<()> {
    if let Some(path) = ready_file {
        publish(path, &facts.to_string())?;
    }
    output.result(facts, || describe(facts))
}

fn describe(facts: &Value) -> String {
    let text = |field: &str| facts[field].as_str();
    let (service, url) = (text("service").unwrap_or_default(), text("url").unwrap_or_default());
    let kind = text("kind").unwrap_or("emulator");
    let mut lines = vec![format!("The {service} {kind} listens on {url}")];
    match (text("ca_file"), url.starts_with("https")) {
        (Some(ca), _) => {
            lines.push(format!("  clients trust      {ca}"));
            lines.push(format!(
                "  point Stentor here stentor app credential set --provider {service} … --endpoint {url} --ca {ca}"
            ));
        }
        (None, true) => {
            lines.push("  clients must trust its certificate: give --ca-dir to get a ca.pem".to_owned())
        }
        (None, false) => lines.push("  without TLS".to_owned()),
    }
    if service == "fcm" {
        lines.push(format!("  token endpoint     {url}/token"));
    }
    if let Some(control) = text("control") {
        lines.push(format!(
            "  control            {control}/counts  {control}/policy  {control}/device/register"
        ));
    }
    lines.join("\n")
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

fn parse<T: DeserializeOwned>(text: &str, name: &str) -> anyhow::Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("{name} cannot be understood: {error}")).into())
}
