//! A caller of the API that uses many tasks at once.

use crate::messages::{emulator, rest, set_credential};
use crate::process::Process;
use crate::server::Server;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A caller with the key of one app.
pub(super) struct Caller {
    runtime: Runtime,
    client: reqwest::Client,
    secret: String,
}

/// Starts an FCM emulator, and a server with an app that sends through it.
pub(super) fn shop(directory: &Path, settings: &str) -> (Server, Process, Caller) {
    let emulator = emulator(directory);
    let server = Server::start_with(directory, settings);
    let created = server.ok(&["app", "create", "shop"]);
    set_credential(&server, &emulator, directory);
    (server, emulator, Caller::new(created["key"]["secret"].as_str().unwrap()))
}

/// A message to one token.
pub(super) fn to_token(token: &str) -> Value {
    json!({"target": {"token": {"platform": "android", "token": token}}, "data": {"k": "v"}})
}

/// Sets the policy of an emulator.
pub(super) fn set_policy(emulator: &Process, policy: Value) {
    let url = format!("{}/policy", emulator.ready["control"].as_str().unwrap());
    assert_eq!(rest("PUT", &url, None, Some(policy)), json!({}));
}

/// Returns the counters of an emulator.
pub(super) fn counts(emulator: &Process) -> Value {
    rest("GET", &format!("{}/counts", emulator.ready["control"].as_str().unwrap()), None, None)
}

/// Polls until a condition holds.
pub(super) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Caller {
    pub(super) fn new(secret: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { runtime, client: reqwest::Client::new(), secret: secret.to_owned() }
    }

    /// Sends one request.
    pub(super) fn call(&self, server: &Server, method: Method, path: &str, body: Option<&Value>) -> Value {
        let (status, said) = self.runtime.block_on(self.ask(server, method, path, body)).unwrap();
        assert!(status.is_success(), "{path}: {status}: {said}");
        said
    }

    /// Posts a message repeatedly, `together` at a time, until `listen` has received enough; passes it each response, or `None` for a
    /// missing one.
    pub(super) fn flood(
        &self,
        server: &Server,
        together: usize,
        body: &Value,
        mut listen: impl FnMut(Option<(StatusCode, Value)>) -> bool,
    ) {
        let asking = std::iter::repeat_with(|| self.ask(server, Method::POST, "/v1/messages", Some(body)));
        let mut answers = stream::iter(asking).buffer_unordered(together);
        self.runtime.block_on(async {
            while let Some(answer) = answers.next().await {
                if !listen(answer) {
                    return;
                }
            }
        });
    }

    /// Imports devices, a token in each line.
    pub(super) fn import(&self, server: &Server, tokens: impl Iterator<Item = String>) {
        let body: String =
            tokens.map(|token| format!("{}\n", json!({"platform": "android", "token": token}))).collect();
        let url = format!("{}/v1/devices/import", server.process.url());
        let request =
            self.client.post(url).bearer_auth(&self.secret).header("content-type", "application/x-ndjson");
        let said: Value =
            self.runtime.block_on(async { request.body(body).send().await.unwrap().json().await.unwrap() });
        assert_eq!(said["failed"], json!(0), "{said}");
    }

    /// Reads a metric; returns the sum if there are several.
    pub(super) fn metric(&self, server: &Server, name: &str) -> f64 {
        let request =
            self.client.get(format!("{}/metrics", server.process.url())).bearer_auth(server.root_key());
        let text = self.runtime.block_on(async { request.send().await.unwrap().text().await.unwrap() });
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Lists all campaigns.
    pub(super) fn campaigns(&self, server: &Server) -> Vec<Value> {
        let (mut all, mut before) = (Vec::new(), String::new());
        loop {
            let page = self.call(server, Method::GET, &format!("/v1/campaigns?limit=1000{before}"), None);
            all.extend(page["campaigns"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => before = format!("&before={next}"),
                None => return all,
            }
        }
    }

    /// Reads the books of many campaigns.
    pub(super) fn ledgers(&self, server: &Server, campaigns: &[Value]) -> Vec<Value> {
        self.runtime.block_on(async {
            let mut ledgers = Vec::new();
            for some in campaigns.chunks(64) {
                let paths = some.iter().map(|one| format!("/v1/campaigns/{}", one["id"].as_str().unwrap()));
                let asking =
                    paths.map(|path| async move { self.ask(server, Method::GET, &path, None).await });
                ledgers.extend(join_all(asking).await.into_iter().map(|answer| answer.unwrap().1));
            }
            ledgers
        })
    }

    async fn ask(
        &self,
        server: &Server,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<(StatusCode, Value)> {
        let url = format!("{}{path}", server.process.url());
        let mut request = self.client.request(method, url).bearer_auth(&self.secret);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.ok()?;
        Some((response.status(), response.json().await.ok()?))
    }
}
