//! A server on a free port, and a caller with its keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use stentor_core::ports::clock::Clock;
use stentor_gateway::ccs::CcsPort;
use stentor_server::app::{AppError, BuiltServer, Engines};
use stentor_server::config::{Config, Engine, QueueEngine};
use stentor_server::face::EntryPoint;
use stentor_storage::sqlite::{SqliteQueue, SqliteStore};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::trap::Trap;

/// A running server; it is drained by [`Server::stop`] and ends with the test's runtime in any case.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) socket: Option<std::net::SocketAddr>,
    pub(crate) root: String,
    pub(crate) client: Client,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) reload: mpsc::Sender<()>,
    pub(crate) app_servers: Arc<dyn CcsPort>,
    pub(crate) entry_points: Vec<EntryPoint>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), AppError>>,
}

/// An app with one key that may do everything in it.
pub(crate) struct Tenant {
    pub(crate) id: String,
    pub(crate) key: String,
}

/// An answer that was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

pub(crate) fn config(folder: &std::path::Path, engine: Engine) -> Config {
    let mut config = Config::embedded().expect("the defaults can be read");
    config.data_dir = folder.to_owned();
    config.api.listen = "127.0.0.1:0".parse().expect("an address");
    config.store.engine = engine;
    config.queue.engine = match engine {
        Engine::Sqlite => QueueEngine::Sqlite,
        Engine::Postgres => QueueEngine::Postgres,
        Engine::Memory => QueueEngine::Memory,
    };
    // Tests look at /metrics as fast as they can, from one address.
    config.api.nameless_requests_per_second_max_count = 1_000_000;
    // The emulators are on this machine.
    config.outbound.allow("loopback").expect("a network");
    config
}

/// Starts a server that keeps everything in memory.
pub(crate) async fn server() -> Server {
    server_with(|_| {}).await
}

/// Starts a server in memory with some settings changed.
pub(crate) async fn server_with(change: impl FnOnce(&mut Config)) -> Server {
    server_on(Engine::Memory, change).await
}

/// Starts a server on either engine with some settings changed.
pub(crate) async fn server_on(engine: Engine, change: impl FnOnce(&mut Config)) -> Server {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(folder.path(), engine);
    change(&mut config);
    start(config, folder).await
}

/// Starts a server on SQLite in the given folder.
pub(crate) async fn durable_server(folder: tempfile::TempDir) -> Server {
    durable_server_with(folder, |_| {}).await
}

/// Starts a server on SQLite in the given folder with some settings changed.
pub(crate) async fn durable_server_with(
    folder: tempfile::TempDir,
    change: impl FnOnce(&mut Config),
) -> Server {
    let mut config = config(folder.path(), Engine::Sqlite);
    change(&mut config);
    start(config, folder).await
}

/// Starts a server on SQLite in the given folder with a clock of the test's own.
pub(crate) async fn durable_server_at(clock: Arc<dyn Clock>, folder: tempfile::TempDir) -> Server {
    let config = config(folder.path(), Engine::Sqlite);
    run(stentor_node::build_with(config, clock).await.expect("the server starts"), folder)
}

async fn start(config: Config, folder: tempfile::TempDir) -> Server {
    run(stentor_node::build(config).await.expect("the server starts"), folder)
}

/// Starts a server in memory over a clock and a queue of the test's own.
pub(crate) async fn server_over(clock: Arc<dyn Clock>, queue: Arc<Trap>) -> Server {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), Engine::Memory);
    let engines = Engines { store: Arc::new(SqliteStore::temporary().expect("a store")), queue };
    run(BuiltServer::build_over(config, clock, engines).await.expect("the server starts"), folder)
}

/// Starts a server over a store of the test's own.
pub(crate) async fn server_on_store(store: Arc<SqliteStore>, change: impl FnOnce(&mut Config)) -> Server {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(folder.path(), Engine::Memory);
    change(&mut config);
    let engines = Engines { store, queue: Arc::new(SqliteQueue::temporary().expect("a queue")) };
    let clock = Arc::new(stentor_server::clock::SystemClock);
    run(BuiltServer::build_over(config, clock, engines).await.expect("the server starts"), folder)
}

fn run(app: BuiltServer, folder: tempfile::TempDir) -> Server {
    let url = format!("http://{}", app.local_addr());
    let socket = app.socket_addr();
    let root = std::fs::read_to_string(folder.path().join("root.key")).expect("the root key");
    let (app_servers, entry_points) = (app.app_servers(), app.entry_points());
    let (stop, stopped) = oneshot::channel();
    let (reload, reloads) = mpsc::channel(1);
    let shutdown = async {
        let _dropped_means_stop = stopped.await;
    };
    let task = tokio::spawn(app.run(shutdown, reloads));
    let client = Client::builder().no_proxy().build().expect("a client");
    Server {
        url,
        socket,
        root: root.trim().to_owned(),
        client,
        folder,
        reload,
        app_servers,
        entry_points,
        stop: Some(stop),
        task,
    }
}

impl Server {
    /// Drains the server and gives its folder back.
    pub(crate) async fn stop(mut self) -> tempfile::TempDir {
        drop(self.stop.take());
        self.ended_by_itself().await.expect("the server runs");
        self.folder
    }

    /// Waits until the server ends without a request to stop.
    pub(crate) async fn ended_by_itself(&mut self) -> Result<(), AppError> {
        (&mut self.task).await.expect("the server ends")
    }

    /// Makes an app with a key of all scopes.
    pub(crate) async fn tenant(&self) -> Tenant {
        let app = self.root(Method::POST, "/v1/apps").json(&json!({"name": "an app"})).read().await;
        assert_eq!(app.status, 201, "{app:?}");
        let id = app.text("id");
        let key = self.key(&id, &["admin"]).await;
        Tenant { id, key }
    }

    /// Makes an app that may send through the provider that sends nothing.
    pub(crate) async fn sender(&self) -> Tenant {
        let tenant = self.tenant().await;
        let path = format!("/v1/apps/{}/credentials/null", tenant.id);
        let put = self.send(&tenant, Method::PUT, &path).json(&json!({})).read().await;
        assert_eq!(put.status, 204, "{put:?}");
        tenant
    }

    /// Makes a key of an app.
    pub(crate) async fn key(&self, app: &str, scopes: &[&str]) -> String {
        let body = json!({"name": "a key", "scopes": scopes});
        let made = self.root(Method::POST, &format!("/v1/apps/{app}/keys")).json(&body).read().await;
        assert_eq!(made.status, 201, "{made:?}");
        made.text("secret")
    }

    /// Starts a request with the root key.
    pub(crate) fn root(&self, method: Method, path: &str) -> RequestBuilder {
        self.with_key(&self.root, method, path)
    }

    /// Starts a request of a tenant.
    pub(crate) fn send(&self, tenant: &Tenant, method: Method, path: &str) -> RequestBuilder {
        self.with_key(&tenant.key, method, path)
    }

    /// Starts a request with any key.
    pub(crate) fn with_key(&self, key: &str, method: Method, path: &str) -> RequestBuilder {
        self.open(method, path).bearer_auth(key)
    }

    /// Starts a request without key.
    pub(crate) fn open(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Sends a GET request and expects 200.
    pub(crate) async fn get(&self, tenant: &Tenant, path: &str) -> Value {
        let read = self.send(tenant, Method::GET, path).read().await;
        assert_eq!(read.status, 200, "{path}: {read:?}");
        read.body
    }

    /// Posts something and expects a success.
    pub(crate) async fn post(&self, tenant: &Tenant, path: &str, body: Value) -> Value {
        let read = self.send(tenant, Method::POST, path).json(&body).read().await;
        assert!((200..300).contains(&read.status), "{path}: {read:?}");
        read.body
    }

    /// Registers a device of the provider that sends nothing, and gives its id.
    pub(crate) async fn device(&self, tenant: &Tenant, token: &str) -> String {
        let body = json!({"platform": "android", "provider": "null", "token": token});
        let read = self.post(tenant, "/v1/devices", body).await;
        read["id"].as_str().expect("an id").to_owned()
    }

    /// Waits until a campaign has ended and gives its books.
    pub(crate) async fn ended(&self, tenant: &Tenant, campaign: &str) -> Value {
        let patience = Instant::now() + Duration::from_secs(60);
        while Instant::now() < patience {
            let ledger = self.get(tenant, &format!("/v1/campaigns/{campaign}")).await;
            assert_eq!(ledger["balanced"], true, "{ledger}");
            if ["finished", "canceled", "stopped"].contains(&ledger["state"].as_str().expect("a state")) {
                return ledger;
            }
        }
        panic!("campaign {campaign} does not end");
    }
}

impl Read {
    /// Returns a text of the body.
    pub(crate) fn text(&self, name: &str) -> String {
        self.body[name].as_str().unwrap_or_else(|| panic!("no {name} in {self:?}")).to_owned()
    }

    /// Returns code and field of a refusal, and checks that it is well-formed.
    pub(crate) fn refusal(&self) -> (u16, String, Option<String>) {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        assert_eq!(self.body["status"], self.status, "{self:?}");
        assert_eq!(self.body["request_id"], self.headers["x-request-id"].as_str(), "{self:?}");
        assert!(!self.text("title").is_empty() && !self.text("detail").is_empty());
        (self.status, self.text("code"), self.body["field"].as_str().map(str::to_owned))
    }
}

/// Sends a request and reads the answer.
pub(crate) trait Reading {
    async fn read(self) -> Read;
}

impl Reading for RequestBuilder {
    async fn read(self) -> Read {
        let response: Response = self.send().await.expect("an answer");
        let status: StatusCode = response.status();
        let headers = response.headers().iter();
        let headers =
            headers.map(|(k, v)| (k.to_string(), v.to_str().unwrap_or_default().to_owned())).collect();
        let bytes = response.bytes().await.expect("a body");
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Read { status: status.as_u16(), headers, body }
    }
}
