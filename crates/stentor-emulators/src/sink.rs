//! The server that does nothing: answers 200 to every request with the least work, for load.

use crate::error::EmulatorError;
use crate::listener::{Port, Protocols};
use crate::observer::{Observer, ObserverConfig, Tally, Totals, token_hash};
use crate::policy::{Dialect, Policy, PolicyDesk, Wait, WeightedMix};
use crate::service::{Answer, Call, Desk, Reply, Service, Ticket, WireTotals};
use crate::tls::{self, TlsConfig};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;
const APNS_PATH: &str = "/3/device/";
const FCM_REPLY: &[u8] = br#"{"name":"projects/sink/messages/0"}"#;

/// How a sink is started.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SinkConfig {
    /// Where to listen; port 0 takes any free port.
    pub listen: SocketAddr,
    /// TLS for the port.
    pub tls: TlsConfig,
    /// Counts APNs tokens when it is given.
    pub observer: Option<ObserverConfig>,
    /// The limit announced in SETTINGS, per connection.
    pub max_concurrent_streams: u32,
}

impl Default for SinkConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: TlsConfig::default(),
            observer: None,
            max_concurrent_streams: 1000,
        }
    }
}

/// A do-nothing server.
pub struct Sink;

/// A running sink; it stops when this is dropped.
pub struct RunningSink {
    port: Port,
    desk: Arc<Desk>,
    ca_pem: Option<String>,
}

impl Sink {
    /// Starts the sink on the current runtime. Fails when its port or file cannot be used.
    pub async fn start(config: SinkConfig) -> Result<RunningSink, EmulatorError> {
        let tls = tls::server(&config.tls, Protocols::Http2And1.alpn())?;
        let observer = config.observer.as_ref().map(Observer::open).transpose()?.map(Arc::new);
        let desk = Arc::new(Desk {
            policy: PolicyDesk::new(Policy::default(), 0, DIALECT)?,
            faults: crate::faults::Faults::default(),
            observer,
            wire: WireTotals::default(),
            max_concurrent_streams: config.max_concurrent_streams,
            max_header_list_bytes: MAX_HEADER_LIST_BYTES,
        });
        let ca_pem = tls.ca_pem.clone();
        let service = Arc::new(SinkService { desk: Arc::clone(&desk) });
        let port = Port::open(config.listen, tls, Protocols::Http2And1, service).await?;
        Ok(RunningSink { port, desk, ca_pem })
    }
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

    /// Returns how many requests have been answered.
    pub fn requests(&self) -> u64 {
        self.desk.wire.requests.load(Ordering::Relaxed)
    }

    /// Returns the sums of the observer, if there is one.
    pub fn totals(&self) -> Option<Totals> {
        self.desk.observer.as_ref().map(|observer| observer.totals())
    }

    /// Stops the sink and waits until its connections are gone.
    pub async fn stop(self) {
        self.port.close().await;
    }
}

const DIALECT: Dialect = Dialect { knows: |_| false, quota_code: "", realistic: WeightedMix::default };

struct SinkService {
    desk: Arc<Desk>,
}

impl Service for SinkService {
    type Session = ();

    const MAX_BODY_BYTES: usize = 64 * 1024;

    fn session(&self) {}

    fn answer(&self, _session: &mut (), call: Call<'_>) -> Reply {
        let mut response = Response::new(());
        let Some(token) = call.head.uri.path().strip_prefix(APNS_PATH) else {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            return Reply::now(Answer::Response(response, Bytes::from_static(FCM_REPLY)));
        };
        if let Some(id) = call.head.headers.get("apns-id") {
            response.headers_mut().insert("apns-id", id.clone());
        }
        let ticket = self.desk.observer.is_some().then(|| Ticket {
            token_hash: token_hash(token.as_bytes()),
            attempt_counted: false,
            tally: Tally::Accepted,
            delivery: None,
        });
        Reply::new(Answer::Response(response, Bytes::new()), Wait::None, ticket)
    }

    fn settle(&self, ticket: Ticket) {
        self.desk.count(&ticket);
    }

    fn desk(&self) -> &Desk {
        &self.desk
    }
}
