//! `stentor emulate sink`: a push service that accepts everything, for load tests.

use super::options::{StartOptions, TlsOptions, facts};
use super::refused;
use crate::output::Output;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use stentor_emulators::policy::AnswerLatency;
use stentor_emulators::{SinkConfig, SinkEmulator};

/// The push service to be measured; a sink supports both, and announces itself as this one.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SinkServiceName {
    /// Firebase Cloud Messaging, with a token endpoint at /token
    Fcm,
    /// Apple Push Notification service
    Apns,
}

impl SinkServiceName {
    fn word(self) -> &'static str {
        match self {
            Self::Fcm => "fcm",
            Self::Apns => "apns",
        }
    }
}

/// Options of a sink.
#[derive(Debug, Args)]
pub(super) struct SinkOptions {
    /// The push service to announce
    #[arg(long, value_enum, default_value = "apns")]
    service: SinkServiceName,
    /// The address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Respond this many milliseconds after a request arrived
    #[arg(long, value_name = "N")]
    latency_ms: Option<f64>,
    /// The file with a counter for every token; it stays when the sink ends
    #[arg(long, value_name = "FILE")]
    observer: Option<PathBuf>,
    /// Capacity for different tokens; in memory if there is no file
    #[arg(long, value_name = "N")]
    capacity_tokens: Option<u64>,
    #[command(flatten)]
    tls: TlsOptions,
    /// Most open requests of a client on one connection
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    #[command(flatten)]
    start: StartOptions,
}

impl SinkOptions {
    /// Runs the sink until the process is terminated, and returns its counters.
    pub(super) async fn run(self, output: Output) -> anyhow::Result<()> {
        let ended = self.start.prepare()?;
        let running = SinkEmulator::start(self.sink()?).await.map_err(refused)?;
        let mut facts = facts(self.service.word(), running.addr(), running.ca_pem().is_some(), &self.tls);
        facts["kind"] = json!("sink");
        self.start.announce(&facts, output)?;
        ended.await;
        let counted = json!({"requests": running.requests(), "counts": running.totals()});
        running.stop().await;
        output.result(&counted, || format!("It answered {} requests", counted["requests"]))
    }

    fn sink(&self) -> anyhow::Result<SinkConfig> {
        let mut config: SinkConfig = self.start.configured()?;
        config.listen = self.listen.unwrap_or(config.listen);
        config.latency = self.latency_ms.map(|ms| AnswerLatency::Fixed { ms }).or(config.latency);
        config.max_concurrent_streams = self.streams.unwrap_or(config.max_concurrent_streams);
        config.tls = self.tls.apply(config.tls);
        if self.observer.is_some() || self.capacity_tokens.is_some() {
            let observer = config.observer.get_or_insert_default();
            observer.path = self.observer.clone().or(observer.path.take());
            observer.capacity_tokens = self.capacity_tokens.unwrap_or(observer.capacity_tokens);
        }
        Ok(config)
    }
}
