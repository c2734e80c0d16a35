//! The server of a story about Web Push, and an app with open registration of devices.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use stentor_server::config::{Config, Engine};
use tokio::sync::{mpsc, oneshot};

use crate::authority::RoomAuthority;
use crate::room::Room;

/// The maximum time of messages on their way.
const SETTLED_MAX: Duration = Duration::from_secs(60);

/// A server during a story.
pub(crate) struct PushServer {
    pub(crate) url: String,
    pub(crate) port: u16,
    pub(crate) app: String,
    /// The port of MCS, with TLS.
    pub(crate) mcs_port: u16,
    /// Registers devices.
    pub(crate) join_key: String,
    root_key: String,
    key: String,
    http: reqwest::Client,
    _stop: oneshot::Sender<()>,
    _reload: mpsc::Sender<()>,
}

impl PushServer {
    /// Starts it with TLS under the name `localhost`, or in clear without the files for that.
    pub(crate) async fn start(room: &Room, files: Option<&RoomAuthority>) -> anyhow::Result<Self> {
        let mut config = Config::embedded()?;
        config.data_dir = room.folder().join("data");
        config.store.engine = Engine::Memory;
        config.queue.engine = stentor_server::config::QueueEngine::Memory;
        config.api.listen = ([127, 0, 0, 1], 0).into();
        let mut http = reqwest::Client::builder().no_proxy();
        if let Some(files) = files {
            config.api.tls_cert_file.clone_from(&files.certificate);
            config.api.tls_key_file.clone_from(&files.key);
            config.gateway.mcs_listen = Some(([127, 0, 0, 1], 0).into());
            http = http.tls_certs_only([reqwest::Certificate::from_pem(&std::fs::read(&files.authority)?)?]);
        }
        // The push services of a story are on this machine.
        config.outbound.allowed_networks = vec!["loopback".parse()?];
        let data = config.data_dir.clone();
        let built = stentor_node::build(config).await?;
        let port = built.local_addr().port();
        let url = match built.is_encrypted() {
            true => format!("https://localhost:{port}"),
            false => format!("http://127.0.0.1:{port}"),
        };
        let key = std::fs::read_to_string(data.join("root.key"))?.trim().to_owned();
        let mcs = std::fs::read_to_string(data.join("mcs.addr")).unwrap_or_default();
        let mcs_port = mcs.trim().rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_default();
        let ((_stop, stopped), (_reload, reloads)) = (oneshot::channel::<()>(), mpsc::channel(1));
        tokio::spawn(built.run(async { _ = stopped.await }, reloads));
        let (app, join_key, http) = (String::new(), String::new(), http.build()?);
        let mut server =
            Self { url, port, mcs_port, app, join_key, root_key: key.clone(), key, http, _stop, _reload };
        server.furnish().await?;
        Ok(server)
    }

    async fn furnish(&mut self) -> anyhow::Result<()> {
        let app = self.ask("POST", "/v1/apps", json!({"name": "judged"})).await?;
        self.app = app["id"].as_str().context("an id")?.to_owned();
        let here = format!("/v1/apps/{}", self.app);
        self.ask("PUT", &format!("{here}/credentials/gateway"), json!({"open_registration": true})).await?;
        self.join_key = self.make_key("join").await?;
        self.key = self.make_key("send").await?;
        Ok(())
    }

    async fn make_key(&self, scope: &str) -> anyhow::Result<String> {
        let path = format!("/v1/apps/{}/keys", self.app);
        let made =
            self.ask_with(&self.root_key, "POST", &path, json!({"name": scope, "scopes": [scope]})).await?;
        Ok(made["secret"].as_str().context("a secret")?.to_owned())
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        self.ask_with(&self.key, method, path, body).await
    }

    async fn ask_with(&self, key: &str, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        let request = self.http.request(method.parse()?, format!("{}{path}", self.url));
        let answer = request.bearer_auth(key).json(&body).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "{method} {path}: {status} {text}");
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Names the key of the app's senders.
    pub(crate) async fn name_sender(&self, key: &str) -> anyhow::Result<()> {
        let path = format!("/v1/apps/{}/credentials/gateway", self.app);
        let credential = json!({"open_registration": true, "vapid_key": key});
        self.ask_with(&self.root_key, "PUT", &path, credential).await.map(drop)
    }

    /// Gives the app a key of its own for Web Push, and returns the public one.
    pub(crate) async fn make_vapid_key(&self, ca_pem: Option<String>) -> anyhow::Result<String> {
        let path = format!("/v1/apps/{}/credentials", self.app);
        let credential = json!({"subject": "mailto:judge@app.example", "navigate": "https://app.example/", "ca_pem": ca_pem});
        self.ask_with(&self.root_key, "PUT", &format!("{path}/web_push"), credential).await?;
        let list = self.ask_with(&self.root_key, "GET", &path, Value::Null).await?;
        let mut credentials = list["credentials"].as_array().context("a list")?.iter();
        let own = credentials.find(|one| one["provider"] == "web_push").context("the credential")?;
        Ok(own["summary"]["public_key"].as_str().context("a key")?.to_owned())
    }

    /// Registers a subscription as a device; returns its id.
    pub(crate) async fn register(&self, subscription: &Value) -> anyhow::Result<Value> {
        let key = self.make_key("register").await?;
        let device = json!({"platform": "web", "token": subscription.to_string()});
        Ok(self.ask_with(&key, "POST", "/v1/devices", device).await?["id"].take())
    }

    /// Returns the last attempt to reach a device.
    pub(crate) async fn last_attempt(&self, device: &Value) -> anyhow::Result<Value> {
        let path = format!("/v1/devices/{}/deliveries", device.as_str().context("an id")?);
        Ok(self.ask("GET", &path, Value::Null).await?["deliveries"][0].take())
    }

    /// Cancels a message. Returns the status.
    pub(crate) async fn withdraw(&self, location: &str) -> anyhow::Result<u16> {
        Ok(self.http.delete(location).send().await?.status().as_u16())
    }

    /// Waits until every message is in its mailbox or has ended.
    pub(crate) async fn settled(&self) -> anyhow::Result<()> {
        tokio::time::timeout(SETTLED_MAX, self.try_settled()).await.context("messages do not end")?
    }

    async fn try_settled(&self) -> anyhow::Result<()> {
        for message in self.messages().await? {
            let campaign = message["campaign"].as_str().context("an id")?;
            while !self.is_over(campaign).await? {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Returns how urgent the last message is.
    pub(crate) async fn last_priority(&self) -> anyhow::Result<Value> {
        let messages = self.messages().await?;
        let last = messages.first().and_then(|message| message["id"].as_str()).context("an id")?;
        Ok(self.ask("GET", &format!("/v1/messages/{last}"), Value::Null).await?["priority"].clone())
    }

    /// Lists the sent messages, the newest first.
    async fn messages(&self) -> anyhow::Result<Vec<Value>> {
        let list = self.ask("GET", "/v1/messages?limit=1000", Value::Null).await?;
        Ok(list["messages"].as_array().context("a list")?.clone())
    }

    async fn is_over(&self, campaign: &str) -> anyhow::Result<bool> {
        let books = self.ask("GET", &format!("/v1/campaigns/{campaign}"), Value::Null).await?;
        Ok(books["state"] == "finished" || books["state"] == "canceled")
    }
}
