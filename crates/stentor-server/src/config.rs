//! Configuration: the embedded default, one TOML file, the environment; nothing else reads the environment.

mod console;
mod engines;
mod explain;
mod gateway;
mod layers;
mod outbound;
mod secrets;
mod sender;
#[cfg(test)]
mod tests;
mod trace;
mod upstream;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use stentor_core::error::Invalid;

pub use console::{ConsoleConfig, MappedRole, OidcConfig};
pub use explain::{Explained, explain, explain_with};
pub use gateway::GatewayConfig;
pub use outbound::OutboundConfig;
pub use secrets::{SEAL_KEY_FILE, SecretsConfig};
pub use sender::SenderConfig;
pub use trace::TraceConfig;
pub use upstream::UpstreamConfig;

use crate::pipeline::NodeRoles;
use crate::pipeline::config::PipelineConfig;

/// The commented default file, the first layer.
pub const DEFAULT_TOML: &str = include_str!("config/default.toml");

/// A rejected configuration: every problem found, each with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.join("\n"))]
pub struct ConfigError {
    /// One sentence each.
    pub problems: Vec<String>,
}

impl ConfigError {
    pub(crate) fn one(problem: impl Into<String>) -> Self {
        Self { problems: vec![problem.into()] }
    }
}

/// All settings of an operator.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The data directory.
    pub data_dir: PathBuf,
    /// Roles of this server; empty for all.
    pub roles: NodeRoles,
    /// Settings of this server as a node among those that use the same store.
    pub node: NodeConfig,
    /// The key that seals credentials.
    pub secrets: SecretsConfig,
    /// The REST face.
    pub api: ApiConfig,
    /// The web console.
    pub console: ConsoleConfig,
    /// The ledger's engine.
    pub store: StoreConfig,
    /// The queue's engine.
    pub queue: QueueConfig,
    /// Connections of devices.
    pub gateway: GatewayConfig,
    /// Settings of the pipeline.
    pub pipeline: PipelineConfig,
    /// Settings of the connections to push services.
    pub sender: SenderConfig,
    /// Addresses to which the server may connect.
    pub outbound: OutboundConfig,
    /// Settings of upstream messages: their consumers and limits.
    pub upstream: UpstreamConfig,
    /// Settings of the shutdown.
    pub shutdown: ShutdownConfig,
    /// Settings of the log.
    pub log: LogConfig,
    /// Settings of the traces.
    pub trace: TraceConfig,
    /// Every setting as the layers have it, with its meaning and origin.
    #[serde(skip)]
    pub explained: Vec<Explained>,
}

/// Settings of a server among others.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Time without a heartbeat after which a server is considered dead.
    pub silence_max_ms: u64,
    /// Interval at which changes by other servers are read even without a notification.
    pub look_interval_ms: u64,
}

impl NodeConfig {
    /// Returns the span.
    #[must_use]
    pub const fn silence_max(&self) -> Duration {
        Duration::from_millis(self.silence_max_ms)
    }

    /// Returns the span.
    #[must_use]
    pub const fn look_interval(&self) -> Duration {
        Duration::from_millis(self.look_interval_ms)
    }
}

/// Settings of the REST face.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiConfig {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Address of the raw socket; empty for none.
    #[serde(deserialize_with = "address_or_none")]
    pub socket_listen: Option<SocketAddr>,
    /// PEM certificate chain; empty for none.
    pub tls_cert_file: PathBuf,
    /// PEM private key; empty for none.
    pub tls_key_file: PathBuf,
    /// Interval at which both files are checked; 0 to check them at SIGHUP only.
    pub tls_check_interval_seconds: u64,
    /// The operator's key instead of the file's; empty for the file's.
    pub root_key: SecretString,
    /// Largest body of most requests.
    pub body_max_bytes: usize,
    /// Largest body of requests that may hold many names or a certificate.
    pub large_body_max_bytes: usize,
    /// Total bytes of all bodies held at once.
    pub bodies_max_bytes: usize,
    /// Longest time to receive a body.
    pub body_timeout_seconds: u64,
    /// Share of requests, bytes of bodies and imports that one app may take of the remainder that other apps leave.
    pub app_share_percent: usize,
    /// Requests worked on at once.
    pub requests_max_count: usize,
    /// Requests of one app in a second.
    pub app_requests_per_second_max_count: u32,
    /// Requests per second of one device, of one guest of an app, and of one address without a key.
    pub nameless_requests_per_second_max_count: u32,
    /// Connections held at once.
    pub connections_max_count: usize,
    /// Connections of one address held at once.
    pub connections_per_address_max_count: usize,
    /// Longest time without a request on an HTTP/2 connection.
    pub connection_idle_timeout_seconds: u64,
    /// Longest time for a TLS handshake, for the headers of a request, and until the first request.
    pub header_timeout_seconds: u64,
    /// Longest time of a request.
    pub request_timeout_seconds: u64,
    /// Longest idle time of an import's body; received bytes restore it.
    pub import_idle_timeout_seconds: u64,
    /// Bytes of an import that restore one second of idle time.
    pub import_min_bytes_per_second: u64,
    /// Longest total idle time of an import's body.
    pub import_timeout_seconds: u64,
    /// Imports that run at once.
    pub imports_max_count: usize,
    /// Lines registered in one transaction.
    pub import_batch_max_lines: usize,
    /// Schedules of one app that are active or paused.
    pub schedules_max_count: usize,
    /// Addresses or networks of trusted proxies, which may set X-Forwarded-For.
    pub trusted_proxies: Vec<String>,
    /// Most entries of the audit trail of one kind in one app.
    pub audit_max_count: u64,
    /// True to serve /docs.
    pub docs: bool,
    /// The folder of the documentation's site; empty for none.
    pub docs_dir: PathBuf,
}

/// The engine of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// A file in the data directory.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
    /// This process' memory, for trials and tests.
    Memory,
}

/// Settings of the store.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// The engine.
    pub engine: Engine,
    /// The address of the PostgreSQL database; empty for other engines.
    pub url: SecretString,
}

impl StoreConfig {
    fn problems(&self, formats: &FormatChecks) -> Vec<String> {
        let url = self.url.expose_secret();
        let is_given = !url.is_empty();
        match (self.engine, is_given) {
            (Engine::Postgres, false) => {
                vec!["store.url: must be the address of the PostgreSQL database".to_owned()]
            }
            (Engine::Postgres, true) => (formats.store_url)(url)
                .err()
                .map(|error| format!("store.url: {error}"))
                .into_iter()
                .collect(),
            (_, true) => vec!["store.url: requires store.engine = \"postgres\"".to_owned()],
            (_, false) => Vec::new(),
        }
    }
}

/// The engine of the queue, which carries chunk ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueEngine {
    /// A file in the data directory.
    Sqlite,
    /// A table beside those of the store.
    Postgres,
    /// This process' memory.
    Memory,
    /// A stream of NATS JetStream.
    Nats,
}

/// Settings of the queue.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// The engine.
    pub engine: QueueEngine,
    /// The addresses of the NATS servers; empty for other engines.
    pub url: SecretString,
    /// The stream's name at NATS.
    pub stream: String,
    /// NATS servers that keep each chunk.
    pub replicas_count: usize,
}

impl QueueConfig {
    fn problems(&self, store: Engine, formats: &FormatChecks) -> Vec<String> {
        let url = self.url.expose_secret();
        let is_given = !url.is_empty();
        let mut problems = match (self.engine, is_given) {
            (QueueEngine::Nats, false) => {
                vec!["queue.url: must be the addresses of the NATS servers".to_owned()]
            }
            (QueueEngine::Nats, true) => (formats.queue_url)(url)
                .err()
                .map(|error| format!("queue.url: {error}"))
                .into_iter()
                .collect(),
            (_, true) => vec!["queue.url: requires queue.engine = \"nats\"".to_owned()],
            (QueueEngine::Postgres, _) if store != Engine::Postgres => {
                vec!["queue.engine: postgres requires store.engine = \"postgres\"".to_owned()]
            }
            _ => Vec::new(),
        };
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        if self.stream.is_empty() || !self.stream.chars().all(is_word) {
            problems.push("queue.stream: must be a word of letters, digits, - and _".to_owned());
        }
        if !(1..=5).contains(&self.replicas_count) {
            problems.push("queue.replicas_count: must be 1 to 5".to_owned());
        }
        problems
    }
}

/// Settings of the shutdown.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShutdownConfig {
    /// Longest time from the signal to the end.
    pub drain_timeout_seconds: u64,
}

impl ShutdownConfig {
    /// Returns the span.
    #[must_use]
    pub const fn drain_timeout(&self) -> Duration {
        Duration::from_secs(self.drain_timeout_seconds)
    }
}

/// Shape of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Settings of the log.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// Shape of a line.
    pub format: LogFormat,
    /// Level, also by module.
    pub level: String,
}

impl LogConfig {
    /// Finds a word that is no level. The log would take it for the name of a module, and log everything of that module and nothing else.
    fn problem(&self) -> Option<String> {
        const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
        let wrong = self.level.split(',').map(str::trim).find(|part| {
            let level = part.rsplit('=').next().unwrap_or(part);
            !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level))
        })?;
        let levels = LEVELS.join(", ");
        Some(format!(
            "log.level: `{wrong}` is none of {levels}; per module it is written `info,stentor_server=debug`"
        ))
    }
}

/// Format checks that belong to the engines. No error message repeats the text, which may be a secret.
#[derive(Debug, Clone, Copy)]
pub struct FormatChecks {
    /// Checks the address of a PostgreSQL database.
    pub store_url: fn(&str) -> Result<(), String>,
    /// Checks the addresses of NATS servers.
    pub queue_url: fn(&str) -> Result<(), String>,
    /// Checks keys that seal credentials.
    pub seal_keys: fn(&str) -> Result<(), String>,
}

impl FormatChecks {
    /// Accepts every text, for a configuration without engines of its own.
    pub const NONE: Self = Self { store_url: |_| Ok(()), queue_url: |_| Ok(()), seal_keys: |_| Ok(()) };
}

/// Reads the configuration: defaults, then the file if one is given, then the variables.
pub fn load_with(
    path: Option<&Path>,
    variables: impl IntoIterator<Item = (String, String)>,
    formats: &FormatChecks,
) -> Result<Config, ConfigError> {
    let figment = layers::figment(path, variables)?;
    let config: Config = figment.extract().map_err(layers::reworded)?;
    Config { explained: explain::listed(&figment), ..config }.checked(formats)
}

/// Returns the environment variables of the process that are valid UTF-8.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
}

impl Config {
    /// Returns the defaults of the embedded file.
    pub fn embedded() -> Result<Self, ConfigError> {
        load_with(None, [], &FormatChecks::NONE)
    }

    /// Refuses partial roles if no other server can share the store and take the remaining ones.
    pub fn check_roles(&self) -> Result<(), &'static str> {
        let may_be_some = self.store.engine == Engine::Postgres || self.roles.are_all();
        if may_be_some {
            Ok(())
        } else {
            Err("require store.engine = \"postgres\", which several servers share")
        }
    }

    fn checked(self, formats: &FormatChecks) -> Result<Self, ConfigError> {
        let mut problems = self.api.problems();
        problems.extend(self.console.problems());
        problems.extend(self.gateway.problems());
        problems.extend(self.secrets.problems(formats));
        problems.extend(self.store.problems(formats));
        problems.extend(self.queue.problems(self.store.engine, formats));
        if self.node.silence_max_ms < 1_000 {
            problems.push("node.silence_max_ms: must be at least 1000".to_owned());
        }
        if self.node.look_interval_ms < 10 {
            problems.push("node.look_interval_ms: must be at least 10".to_owned());
        }
        problems.extend(self.log.problem());
        problems.extend(self.trace.problem());
        problems.extend(self.check_roles().err().map(|problem| format!("roles: {problem}")));
        problems.extend(self.sender.problems());
        problems.extend(self.pipeline.clone().checked().err().map(|invalid| invalid.to_string()));
        if problems.is_empty() { Ok(self) } else { Err(ConfigError { problems }) }
    }
}

impl ApiConfig {
    /// Returns the certificate and key files, if TLS is configured.
    #[must_use]
    pub fn tls_files(&self) -> Option<(&Path, &Path)> {
        let given = !self.tls_cert_file.as_os_str().is_empty() && !self.tls_key_file.as_os_str().is_empty();
        given.then_some((self.tls_cert_file.as_path(), self.tls_key_file.as_path()))
    }

    /// Returns the interval at which certificate and key are checked without a signal; `None` for never.
    #[must_use]
    pub fn tls_check_interval(&self) -> Option<Duration> {
        (self.tls_check_interval_seconds > 0).then(|| Duration::from_secs(self.tls_check_interval_seconds))
    }

    /// Returns the operator's key, when one is set.
    #[must_use]
    pub fn root_key(&self) -> Option<&SecretString> {
        (!self.root_key.expose_secret().is_empty()).then_some(&self.root_key)
    }

    /// Returns the networks of trusted proxies, which may set X-Forwarded-For.
    #[must_use]
    pub fn trusted_proxies(&self) -> Vec<IpNet> {
        self.trusted_proxies.iter().filter_map(|text| network(text)).collect()
    }

    fn problems(&self) -> Vec<String> {
        let one_file = self.tls_cert_file.as_os_str().is_empty() != self.tls_key_file.as_os_str().is_empty();
        let bad_key = self.root_key().is_some_and(|key| !crate::keys::looks_like_key(key.expose_secret()));
        let seconds = |seconds: u64| usize::try_from(seconds).unwrap_or(usize::MAX);
        let zero = [
            ("body_max_bytes", self.body_max_bytes),
            ("requests_max_count", self.requests_max_count),
            ("connections_max_count", self.connections_max_count),
            ("connections_per_address_max_count", self.connections_per_address_max_count),
            ("connection_idle_timeout_seconds", seconds(self.connection_idle_timeout_seconds)),
            ("header_timeout_seconds", seconds(self.header_timeout_seconds)),
            ("body_timeout_seconds", seconds(self.body_timeout_seconds)),
            ("import_min_bytes_per_second", seconds(self.import_min_bytes_per_second)),
            ("import_timeout_seconds", seconds(self.import_timeout_seconds)),
            ("imports_max_count", self.imports_max_count),
            ("import_batch_max_lines", self.import_batch_max_lines),
            ("schedules_max_count", self.schedules_max_count),
            ("app_requests_per_second_max_count", self.app_requests_per_second_max_count as usize),
            ("nameless_requests_per_second_max_count", self.nameless_requests_per_second_max_count as usize),
        ];
        let zero = zero.iter().filter(|(_, value)| *value == 0);
        let mut problems: Vec<Invalid> =
            zero.map(|(key, _)| Invalid::new(format!("api.{key}"), "must be at least 1")).collect();
        if !(1..=100).contains(&self.app_share_percent) {
            problems.push(Invalid::new("api.app_share_percent", "must be 1 to 100"));
        }
        if self.bodies_max_bytes < self.body_max_bytes.max(self.large_body_max_bytes) {
            problems.push(Invalid::new("api.bodies_max_bytes", "must hold the largest body at least"));
        }
        if one_file {
            problems.push(Invalid::new("api.tls_cert_file", "requires api.tls_key_file: give both or none"));
        }
        if let Some(wrong) = self.trusted_proxies.iter().find(|text| network(text).is_none()) {
            let problem = format!("{wrong:?} is neither an address nor a network such as 10.0.0.0/8");
            problems.push(Invalid::new("api.trusted_proxies", problem));
        }
        if self.audit_max_count == 0 {
            problems.push(Invalid::new("api.audit_max_count", "must be at least 1"));
        }
        if bad_key {
            problems.push(Invalid::new("api.root_key", "must be sk_ and 43 letters of base64url"));
        }
        problems.iter().map(ToString::to_string).collect()
    }
}

/// Deserializes an address; an empty text is none.
fn address_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = |error| D::Error::custom(format!("{text:?}: {error}"));
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(wrong) }
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<std::net::IpAddr>().ok().map(IpNet::from))
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Memory => "memory",
        })
    }
}
