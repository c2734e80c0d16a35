//! Complete requests to a running in-memory server: its fronts, faces and their formats. Each gets a response, never an internal error, and
//! the next request is answered as well.
#![no_main]
use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use stentor_server::config::{Config, Engine, QueueEngine};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

/// A new server is started after this number of requests, because their stored data would fill the memory.
const REQUESTS_MAX_COUNT: u32 = 20_000;
/// Timeout of a request; a stream ends with its request's body.
const PATIENCE: Duration = Duration::from_secs(20);

/// The requests; `*` is replaced by a text of the input.
const ROUTES: &[(Method, &str)] = &[
    (Method::POST, "/v1/projects/APP/messages:send"),
    (Method::POST, "/token"),
    (Method::POST, "/fcm/send"),
    (Method::POST, "/gcm/send"),
    (Method::POST, "/gcm/notification"),
    (Method::GET, "/gcm/notification?notification_key_name=*"),
    (Method::POST, "/iid/v1:batchAdd"),
    (Method::POST, "/iid/v1:batchRemove"),
    (Method::POST, "/iid/v1/*"),
    (Method::GET, "/iid/info/*"),
    (Method::POST, "/api/push"),
    (Method::POST, "/v1/projects/APP/registrations/*/topicSubscriptions"),
    (Method::POST, "/soap"),
    (Method::POST, "/rpc"),
    (Method::POST, "/v1/messages"),
    (Method::POST, "/v1/messages/bulk"),
    (Method::POST, "/v1/devices"),
    (Method::POST, "/v1/devices/bulk"),
    (Method::POST, "/v1/devices/import"),
    (Method::PATCH, "/v1/devices/*"),
    (Method::GET, "/v1/devices?*"),
    (Method::POST, "/v1/schedules"),
    (Method::POST, "/stentor.v1.Messages/SendMessage"),
    (Method::POST, "/stentor.v1.Devices/RegisterDevice"),
    (Method::POST, "/stentor.v1.Devices/ImportDeviceStream"),
    (Method::POST, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
    (Method::POST, "/grpc.health.v1.Health/Check"),
];

const CONTENT_TYPES: &[&str] = &[
    "application/json",
    "application/xml",
    "application/x-protobuf",
    "application/x-www-form-urlencoded",
    "application/grpc",
    "application/grpc+proto",
    "text/xml",
    "application/soap+xml",
    "application/x-ndjson",
    "text/csv",
];

const ENCODINGS: &[&str] = &["", "gzip", "zstd"];

/// A server with the credentials of its caller.
struct RunningServer {
    url: String,
    app: String,
    key: String,
    clear: Client,
    http2: Client,
    folder: PathBuf,
    asked: u32,
    _stop: oneshot::Sender<()>,
    _reload: mpsc::Sender<()>,
    runtime: Runtime,
}

thread_local! {
    static SERVER: RefCell<Option<RunningServer>> = const { RefCell::new(None) };
}

impl RunningServer {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("stentor-fuzz-{}", std::process::id()));
        let _: std::io::Result<()> = std::fs::remove_dir_all(&folder);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut config = Config::embedded().expect("the defaults");
        config.data_dir.clone_from(&folder);
        config.api.listen = "127.0.0.1:0".parse().expect("an address");
        (config.store.engine, config.queue.engine) = (Engine::Memory, QueueEngine::Memory);
        let server = runtime.block_on(stentor_node::build(config)).expect("a server");
        let url = format!("http://{}", server.local_addr());
        let (stop, stopped) = oneshot::channel();
        let (reload, reloads) = mpsc::channel(1);
        let shutdown = async {
            let _dropped_means_stop = stopped.await;
        };
        runtime.spawn(server.run(shutdown, reloads));
        let client = || Client::builder().no_proxy().timeout(PATIENCE);
        let clear = client().build().expect("a client");
        let http2 = client().http2_prior_knowledge().build().expect("a client");
        let root = std::fs::read_to_string(folder.join("root.key")).expect("the root key");
        let (app, key) = runtime.block_on(make_app(&clear, &url, root.trim()));
        let (_stop, _reload) = (stop, reload);
        Self { url, app, key, clear, http2, folder, asked: 0, _stop, _reload, runtime }
    }

    fn ask(&mut self, head: [u8; 4], text: &str, body: &[u8]) {
        self.asked += 1;
        let [route, content_type, encoding, flags] = head.map(usize::from);
        let (method, path) = &ROUTES[route % ROUTES.len()];
        let text: String = text.bytes().map(escaped).collect();
        let path = path.replace("APP", &self.app).replace('*', &text);
        let client = if flags & 1 == 0 { &self.clear } else { &self.http2 };
        let mut request = client.request(method.clone(), format!("{}{path}", self.url)).body(body.to_vec());
        request = request.header("content-type", CONTENT_TYPES[content_type % CONTENT_TYPES.len()]);
        if flags & 2 == 0 {
            request = request.header("authorization", format!("Bearer {}", self.key));
        } else {
            request = request.header("authorization", format!("key={}", self.key));
        }
        match ENCODINGS[encoding % ENCODINGS.len()] {
            "" => {}
            encoding => request = request.header("content-encoding", encoding).header("grpc-encoding", encoding),
        }
        let (status, reply) = self.runtime.block_on(async {
            let response = request.send().await.expect("an answer");
            (response.status(), response.text().await.expect("its body"))
        });
        // SOAP 1.1 has this status for every fault: there the code shows whether the server is at fault.
        let is_ours = status == StatusCode::INTERNAL_SERVER_ERROR && (path != "/soap" || reply.contains("internal"));
        assert!(!is_ours, "{method} {path}: {reply}");
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _: std::io::Result<()> = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns a byte percent-encoded for a path or query, if needed.
fn escaped(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'=' | b'&' | b':' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}

/// Creates an app that can send through the null provider, and a key with all scopes in it.
async fn make_app(client: &Client, url: &str, root: &str) -> (String, String) {
    let send = async |method: Method, path: String, body: Value| -> Value {
        let request = client.request(method, format!("{url}{path}")).bearer_auth(root).json(&body);
        let bytes = request.send().await.expect("an answer").bytes().await.expect("a body");
        serde_json::from_slice(&bytes).unwrap_or_default()
    };
    let made = send(Method::POST, "/v1/apps".to_owned(), json!({"name": "fuzz"})).await;
    let app = made["id"].as_str().expect("an id").to_owned();
    send(Method::PUT, format!("/v1/apps/{app}/credentials/null"), json!({})).await;
    let key = json!({"name": "fuzz", "scopes": ["admin"]});
    let key = send(Method::POST, format!("/v1/apps/{app}/keys"), key).await;
    (app, key["secret"].as_str().expect("a key").to_owned())
}

fuzz_target!(|input: ([u8; 4], &str, &[u8])| {
    let (head, text, body) = input;
    SERVER.with_borrow_mut(|server| {
        if server.as_ref().is_some_and(|server| server.asked >= REQUESTS_MAX_COUNT) {
            *server = None;
        }
        server.get_or_insert_with(RunningServer::start).ask(head, text, body);
    });
});
