//! A server with an app and a device of its gateway, which is played over plain HTTP.

use std::time::Duration;

use anyhow::{Context, ensure};
use reqwest::{Client as Http, RequestBuilder};
use serde_json::{Value, json};
use stentor_server::config::Config;
use tokio::sync::{mpsc, oneshot};

use crate::room::Room;

/// Letters of ids, as Crockford has them.
const LETTERS: &str = "0123456789abcdefghjkmnpqrstvwxyz";

/// The maximum time until a device's receipt arrives.
const CONFIRMED_MAX: Duration = Duration::from_secs(60);

/// A server that runs until it is stopped.
pub(crate) struct GatewayServer {
    pub(crate) url: String,
    http: Http,
    root: String,
    pub(crate) app: String,
    /// A key that sends and registers.
    pub(crate) key: String,
    stop: oneshot::Sender<()>,
    _reload: mpsc::Sender<()>,
}

/// A device of the app.
#[derive(Clone)]
pub(crate) struct GatewayDevice {
    url: String,
    http: Http,
    pub(crate) id: String,
    pub(crate) token: String,
    pub(crate) secret: String,
}

impl GatewayServer {
    /// Starts one on a file, with an app.
    pub(crate) async fn start(
        room: &Room,
        http: reqwest::ClientBuilder,
        change: impl FnOnce(&mut Config),
    ) -> anyhow::Result<Self> {
        let mut config = Config::embedded()?;
        config.data_dir = room.folder().join("data");
        config.queue.engine = stentor_server::config::QueueEngine::Memory;
        config.api.listen = ([127, 0, 0, 1], 0).into();
        change(&mut config);
        let data = config.data_dir.clone();
        let server = stentor_node::build(config).await?;
        let scheme = if server.is_encrypted() { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}", server.local_addr().port());
        let root = std::fs::read_to_string(data.join("root.key"))?.trim().to_owned();
        let ((stop, stopped), (_reload, reloads)) = (oneshot::channel::<()>(), mpsc::channel(1));
        tokio::spawn(server.run(async { _ = stopped.await }, reloads));
        let http = http.no_proxy().build()?;
        let (app, key) = (String::new(), String::new());
        let mut own = Self { url, http, root, app, key, stop, _reload };
        own.app = text(&own.ask("POST", "/v1/apps", json!({"name": "judged"})).await?, "id")?;
        let scopes = json!({"name": "clients", "scopes": ["send", "register", "join"]});
        own.key = text(&own.ask("POST", &format!("/v1/apps/{}/keys", own.app), scopes).await?, "secret")?;
        Ok(own)
    }

    /// Sends a request with the root key.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        let request = self.http.request(method.parse()?, format!("{}{path}", self.url));
        let request = request.bearer_auth(&self.root).header("x-stentor-app", &self.app).json(&body);
        answer(request).await.with_context(|| format!("{method} {path}"))
    }

    /// Registers a device.
    pub(crate) async fn join(&self) -> anyhow::Result<GatewayDevice> {
        self.join_as(json!({})).await
    }

    /// Registers a device with information about itself.
    pub(crate) async fn join_as(&self, details: Value) -> anyhow::Result<GatewayDevice> {
        let request = self.http.post(format!("{}/gateway/v1/devices", self.url)).bearer_auth(&self.key);
        let joined = answer(request.json(&details)).await?;
        let (url, http, id) = (self.url.clone(), self.http.clone(), text(&joined, "device")?);
        Ok(GatewayDevice { url, http, id, token: text(&joined, "token")?, secret: text(&joined, "secret")? })
    }

    /// Sends a message; returns its id.
    pub(crate) async fn send(&self, message: Value) -> anyhow::Result<String> {
        text(&self.ask("POST", "/v1/messages", message).await?, "id")
    }

    /// Waits until the ledger counts a message as delivered, once.
    pub(crate) async fn is_delivered(&self, message: &str) -> anyhow::Result<()> {
        let path = format!("/v1/messages/{message}/ledger");
        let looks = async {
            while self.ask("GET", &path, Value::Null).await?["totals"]["delivered"] != 1 {
                tokio::task::yield_now().await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(CONFIRMED_MAX, looks).await.context("it is not confirmed")?
    }

    /// Lists the upstream messages that wait for the app.
    pub(crate) async fn waiting(&self) -> anyhow::Result<Value> {
        let request = self.http.get(format!("{}/v1/upstream/messages", self.url)).bearer_auth(&self.key);
        Ok(answer(request).await?["messages"].take())
    }

    /// Lets it drain.
    pub(crate) fn stop(self) {
        let _it_has_stopped_itself = self.stop.send(());
    }
}

impl GatewayDevice {
    /// Sends a message to the app.
    pub(crate) async fn says(&self, id: &str, data: Value) -> anyhow::Result<()> {
        let request = self.http.post(format!("{}/gateway/v1/upstream", self.url));
        let body = json!({"message_id": id, "data": data});
        answer(request.basic_auth(&self.token, Some(&self.secret)).json(&body)).await.map(drop)
    }

    /// Lists the topics to which it has subscribed.
    pub(crate) async fn topics(&self) -> anyhow::Result<Value> {
        let request = self.http.get(format!("{}/gateway/v1/device", self.url));
        Ok(answer(request.basic_auth(&self.token, Some(&self.secret))).await?["topics"].take())
    }

    /// Waits for a message and confirms it.
    pub(crate) async fn hears(&self) -> anyhow::Result<Value> {
        let own = |request: RequestBuilder| request.basic_auth(&self.token, Some(&self.secret));
        let path = format!("{}/gateway/v1/messages?wait_seconds=60&max=1", self.url);
        let mut page = answer(own(self.http.get(path))).await?;
        let message = page["messages"][0].take();
        let receipts = self.http.post(format!("{}/gateway/v1/receipts", self.url));
        answer(own(receipts).json(&json!({"messages": [message["id"]]}))).await?;
        Ok(message)
    }
}

/// Returns the number of an app, with which app servers logged in at GCM.
pub(crate) fn app_number(app: &str) -> anyhow::Result<u64> {
    let digits = app.strip_prefix("app_").context("an app's id")?;
    let digit = |letter| LETTERS.find(letter).map(|at| at as u64).context("a letter of ids");
    digits.chars().try_fold(0, |number, letter| Ok(number * 32 + digit(letter)?))
}

/// Reads a text of an answer.
pub(crate) fn text(answer: &Value, name: &str) -> anyhow::Result<String> {
    Ok(answer[name].as_str().with_context(|| format!("{name} in {answer}"))?.to_owned())
}

async fn answer(request: RequestBuilder) -> anyhow::Result<Value> {
    let answer = request.send().await?;
    let (status, text) = (answer.status(), answer.text().await?);
    ensure!(status.is_success(), "{status} {text}");
    Ok(serde_json::from_str(&text).unwrap_or_default())
}
