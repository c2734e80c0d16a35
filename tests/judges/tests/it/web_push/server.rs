//! The server of a story about Web Push: TLS under the name `localhost`, and an app that anybody may register devices of.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use stentor_server::app::BuiltServer;
use stentor_server::config::{Config, Engine};
use tokio::sync::{mpsc, oneshot};

use crate::authority::RoomAuthority;
use crate::room::Room;

/// How long messages may be on their way.
const SETTLED_MAX: Duration = Duration::from_secs(60);

/// A server while the story is told.
pub(crate) struct PushServer {
    pub(crate) port: u16,
    pub(crate) app: String,
    key: String,
    http: reqwest::Client,
    _stop: oneshot::Sender<()>,
    _reload: mpsc::Sender<()>,
}

impl PushServer {
    pub(crate) async fn start(room: &Room, files: &RoomAuthority) -> anyhow::Result<Self> {
        let mut config = Config::embedded()?;
        config.data_dir = room.folder().join("data");
        config.store.engine = Engine::Memory;
        config.queue.engine = Engine::Memory;
        config.api.listen = ([127, 0, 0, 1], 0).into();
        config.api.tls_cert_file.clone_from(&files.certificate);
        config.api.tls_key_file.clone_from(&files.key);
        let data = config.data_dir.clone();
        let built = BuiltServer::build(config).await?;
        let port = built.local_addr().port();
        let key = std::fs::read_to_string(data.join("root.key"))?.trim().to_owned();
        let ((_stop, stopped), (_reload, reloads)) = (oneshot::channel::<()>(), mpsc::channel(1));
        tokio::spawn(built.run(async { _ = stopped.await }, reloads));
        let trusted = reqwest::Certificate::from_pem(&std::fs::read(&files.authority)?)?;
        let http = reqwest::Client::builder().tls_certs_only([trusted]).no_proxy().build()?;
        let mut server = Self { port, app: String::new(), key, http, _stop, _reload };
        server.furnish().await?;
        Ok(server)
    }

    async fn furnish(&mut self) -> anyhow::Result<()> {
        let app = self.ask("POST", "/v1/apps", json!({"name": "judged"})).await?;
        self.app = app["id"].as_str().context("an id")?.to_owned();
        let here = format!("/v1/apps/{}", self.app);
        self.ask("PUT", &format!("{here}/credentials/gateway"), json!({"open_registration": true})).await?;
        let key = self
            .ask("POST", &format!("{here}/keys"), json!({"name": "who looks", "scopes": ["send"]}))
            .await?;
        self.key = key["secret"].as_str().context("a secret")?.to_owned();
        Ok(())
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        let request = self.http.request(method.parse()?, format!("https://localhost:{}{path}", self.port));
        let answer = request.bearer_auth(&self.key).json(&body).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "{method} {path}: {status} {text}");
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Takes a message back; returns the status.
    pub(crate) async fn withdraw(&self, location: &str) -> anyhow::Result<u16> {
        Ok(self.http.delete(location).send().await?.status().as_u16())
    }

    /// Waits until every message has come to its mailbox or its end.
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

    /// Lists what was sent, the newest first.
    async fn messages(&self) -> anyhow::Result<Vec<Value>> {
        let list = self.ask("GET", "/v1/messages?limit=1000", Value::Null).await?;
        Ok(list["messages"].as_array().context("a list")?.clone())
    }

    async fn is_over(&self, campaign: &str) -> anyhow::Result<bool> {
        let books = self.ask("GET", &format!("/v1/campaigns/{campaign}"), Value::Null).await?;
        Ok(books["state"] == "finished" || books["state"] == "canceled")
    }
}
