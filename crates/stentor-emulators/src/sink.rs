//! The server that does nothing: answers 200 to every request with the least work, for load.
//!
//! It accepts the requests of APNs and FCM, counts every token if configured to, and validates nothing.

mod host;
mod http1;
mod log;
mod request;
#[cfg(test)]
mod tests;

use crate::error::EmulatorError;
use crate::frames::{self, Connection, ConnectionLimits};
use crate::listener::{ConnectionHandler, HttpIo, Port, Protocols};
use crate::observer::{Counts, Observer, ObserverConfig, ObserverTotals};
use crate::policy::{AnswerLatency, Dialect, LivePolicy, Policy, WeightedMix};
use crate::service::http1 as http1_server;
use crate::service::{EmulatorContext, WireTotals};
use crate::tls::{self, TlsConfig};
pub(crate) use host::SinkHost;
use http1::SinkService;
pub use log::SinkLogConfig;
pub(crate) use log::SinkLogWriter;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio_util::sync::CancellationToken;

const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;

/// The configuration of a sink.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SinkConfig {
    /// The address to listen on; port 0 takes any free port.
    pub listen: SocketAddr,
    /// TLS for the port.
    pub tls: TlsConfig,
    /// Counts tokens if present: those in APNs paths, and `message.token` or `message.fid` in FCM bodies.
    pub observer: Option<ObserverConfig>,
    /// The limit announced in SETTINGS, per connection.
    pub max_concurrent_streams: u32,
    /// Delays every response. Requests are counted on arrival.
    pub latency: Option<AnswerLatency>,
    /// Logs the response times of some devices' requests over HTTP/2.
    pub log: Option<SinkLogConfig>,
}

impl Default for SinkConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: TlsConfig::default(),
            observer: None,
            max_concurrent_streams: 1000,
            latency: None,
            log: None,
        }
    }
}

/// A do-nothing server.
pub struct SinkEmulator;

/// A running sink; it stops when this is dropped.
pub struct RunningSink {
    port: Port,
    context: Arc<EmulatorContext>,
    ca_pem: Option<String>,
}

impl SinkEmulator {
    /// Starts the sink on the current runtime. Fails when its port, file or latency cannot be used.
    pub async fn start(config: SinkConfig) -> Result<RunningSink, EmulatorError> {
        let tls = tls::server(&config.tls, Protocols::Http2And1.alpn(), config.listen.ip())?;
        let context = context(&config)?;
        let ca_pem = tls.ca_pem.clone();
        let log = config.log.as_ref().map(SinkLogWriter::open).transpose()?.map(Arc::new);
        let handler = Arc::new(SinkHandler { context: Arc::clone(&context), log });
        let port = Port::open(config.listen, tls, Protocols::Http2And1, handler).await?;
        Ok(RunningSink { port, context, ca_pem })
    }
}

/// Builds the state shared by all connections of a sink.
pub(crate) fn context(config: &SinkConfig) -> Result<Arc<EmulatorContext>, EmulatorError> {
    let observer = config.observer.as_ref().map(Observer::open).transpose()?;
    let policy = Policy { latency: config.latency.clone(), ..Policy::default() };
    let limits = ConnectionLimits {
        max_concurrent_streams: config.max_concurrent_streams,
        max_header_list_bytes: MAX_HEADER_LIST_BYTES,
    };
    Ok(EmulatorContext::new(LivePolicy::new(policy, 0, DIALECT)?, observer, limits))
}

impl RunningSink {
    /// Returns the address that the sink listens on.
    pub fn addr(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the certificate that clients must trust, as PEM; `None` without TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// Returns the number of answered requests.
    pub fn requests(&self) -> u64 {
        self.context.wire.requests.load(Ordering::Relaxed)
    }

    /// Returns the sums of the observer, if there is one.
    pub fn totals(&self) -> Option<ObserverTotals> {
        self.context.observer.as_ref().map(|observer| observer.totals())
    }

    /// Returns the counts of one token; zeros without an observer. APNs tokens are counted in lower case.
    pub fn counts(&self, token: &str) -> Counts {
        self.context.observer.as_ref().map_or_else(Counts::default, |observer| observer.lookup(token))
    }

    /// Stops the sink and waits until its connections are gone.
    pub async fn stop(self) {
        self.port.close().await;
    }
}

const DIALECT: Dialect = Dialect { knows: |_| false, quota_code: "", realistic: WeightedMix::default };

/// Serves HTTP/2 with our own framing, and HTTP/1.1, which token endpoints are called in, as the emulators do.
struct SinkHandler {
    context: Arc<EmulatorContext>,
    log: Option<Arc<SinkLogWriter>>,
}

impl ConnectionHandler for SinkHandler {
    async fn http2(self: Arc<Self>, io: impl HttpIo, stop: CancellationToken) {
        frames::serve(connection(&self.context, self.log.clone()), io, stop).await;
    }

    async fn http1(self: Arc<Self>, io: impl HttpIo) {
        http1_server::serve(Arc::new(SinkService { context: Arc::clone(&self.context) }), io).await;
    }
}

/// Starts a connection to a sink.
pub(crate) fn connection(
    context: &Arc<EmulatorContext>,
    log: Option<Arc<SinkLogWriter>>,
) -> Connection<SinkHost> {
    WireTotals::add(&context.wire.connections);
    Connection::new(SinkHost::new(Arc::clone(context), log), context.limits)
}
