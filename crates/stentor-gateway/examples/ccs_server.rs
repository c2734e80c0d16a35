//! An XMPP server for trying out clients. It accepts every message, and a built-in device answers each of them.
//!
//! `cargo run -p stentor-gateway --example ccs_server` prints its address (without TLS), the number to log in with, and the password. It
//! exits at the end of its standard input.
#![expect(clippy::print_stdout, reason = "it says where it listens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stentor_storage::conformance::PlainChanges;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use stentor_core::device::{Platform, ProviderKind, Registration};
use stentor_core::id::{AppId, IdSource};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::Store;
use stentor_core::time::Timestamp;
use stentor_gateway::ccs::{CcsAppSession, CcsLoginError, CcsPort, CcsRefusal, CcsServer, serve};
use stentor_gateway::{DeviceIdentity, Gateway, GatewayKey, UpstreamBroker, UpstreamDraft};
use stentor_storage::conformance::scene::{Scene, at};
use stentor_storage::sqlite::SqliteStore;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk_example";

/// A clock that stands still, so that nothing expires during a trial.
struct StandingClock;

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        at(10)
    }
}

/// The device that answers, and its access to the gateway.
struct Echo {
    gateway: Gateway,
    device: DeviceIdentity,
    answers: Arc<AtomicU64>,
}

#[async_trait]
impl CcsPort for Echo {
    async fn log_in(&self, app: AppId, key: &SecretString) -> Result<Arc<dyn CcsAppSession>, CcsLoginError> {
        if app != self.device.app || key.expose_secret() != KEY {
            return Err(CcsLoginError::Refused);
        }
        let (gateway, answers) = (self.gateway.clone(), Arc::clone(&self.answers));
        Ok(Arc::new(Self { gateway, device: self.device, answers }))
    }
}

#[async_trait]
impl CcsAppSession for Echo {
    fn app(&self) -> AppId {
        self.device.app
    }

    async fn still_allowed(&self) -> Result<(), CcsLoginError> {
        Ok(())
    }

    async fn send(&self, fields: Map<String, Value>) -> Result<(), CcsRefusal> {
        if fields.get("to").and_then(Value::as_str) == Some("nobody") {
            return Err(CcsRefusal::new("DEVICE_UNREGISTERED", "no device has this token"));
        }
        let data = fields.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        let key = format!("up-{}", self.answers.fetch_add(1, Ordering::Relaxed));
        let draft = UpstreamDraft { key, data, ttl: Duration::from_secs(60) };
        let stored = self.gateway.keep_upstream(self.device, draft).await;
        stored.map(drop).map_err(|error| CcsRefusal::new("SERVICE_UNAVAILABLE", error.to_string()))
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::temporary().expect("a store"));
    let app = Scene::new(store.as_ref()).await.app;
    let (clock, key): (Arc<dyn Clock>, _) = (Arc::new(StandingClock), GatewayKey::new([7; 32]));
    let ids = Arc::new(IdSource::after(0));
    let gateway = Gateway::start(store.clone(), clock.clone(), ids, key);
    let token = gateway.key().issue(app).token;
    let device = Registration::new(Platform::Linux, ProviderKind::Gateway, token);
    let registered = store.register(app, &[device], clock.now()).await.map_err(std::io::Error::other)?;
    let device = DeviceIdentity { app, device: registered[0].device };
    let broker = UpstreamBroker::new(store, clock);
    tokio::spawn(Arc::clone(&broker).follow(gateway.upstream_arrivals()));
    let echo = Echo { gateway: gateway.clone(), device, answers: Arc::default() };
    let server = CcsServer::new(gateway, broker, Arc::new(echo));
    let (listener, stopping) = (TcpListener::bind("127.0.0.1:0").await?, CancellationToken::new());
    println!("{} {} {KEY}", listener.local_addr()?, app.raw());
    let mut input = tokio::io::stdin();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                tokio::spawn(serve(server.clone(), accepted?.0, stopping.clone(), CancellationToken::new()));
            }
            _ = input.read_u8() => return Ok(()),
        }
    }
}
