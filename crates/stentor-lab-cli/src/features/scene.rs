//! The setting of the trials: a server of our own as a process, an app with devices of the gateway, and an app with an unreachable push
//! service.

use std::time::Duration;

use anyhow::{Context, ensure};
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use super::event_device::FeatureDevice;
use stentor_stage::client::segment;
use stentor_stage::keys::Keys;
use stentor_stage::server::{Server, data_dir};

/// Chunks that may wait, so that a queue is soon full.
const QUEUE_MAX_CHUNKS: u32 = 16;
const PATIENCE: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// An address without a server.
const NOWHERE: &str = "https://127.0.0.1:1";

/// A server and a client of it.
pub(super) struct FeatureScene {
    pub(super) http: Client,
    pub(super) url: String,
    /// Address for app servers that speak XMPP.
    pub(super) ccs_address: String,
    /// The app, and a key of it.
    pub(super) app: String,
    pub(super) key: String,
    /// The app with the unreachable push service, and a key of it.
    pub(super) stuck_app: String,
    pub(super) stuck_key: String,
    _server: Server,
    _directory: TempDir,
}

impl FeatureScene {
    /// Starts the server and makes both apps.
    pub(super) async fn open() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("no folder can be made")?;
        let settings = format!(
            "[gateway]\nccs_listen = \"127.0.0.1:0\"\n[pipeline]\nmax_queued_chunks = {QUEUE_MAX_CHUNKS}\n"
        );
        let server = Server::start_with(directory.path(), Some(settings), Vec::new()).await?;
        let client = server.client()?;
        let url = client.server().to_owned();
        let ccs_address = std::fs::read_to_string(data_dir(directory.path()).join("ccs.addr"))
            .context("the server has not written the address of CCS")?;
        let mut apps = Vec::new();
        for name in ["features", "stuck"] {
            let app = text(&client.post("/v1/apps", &json!({"name": name})).await?, "id")?;
            let scopes = json!({"name": "app server", "scopes": ["send", "register", "join"]});
            let made = client.post(&format!("/v1/apps/{}/keys", segment(&app)), &scopes).await?;
            apps.push((app, text(&made, "secret")?));
        }
        let [(app, key), (stuck_app, stuck_key)] =
            <[_; 2]>::try_from(apps).map_err(|_| anyhow::anyhow!("there are two apps"))?;
        let mut credential = Keys::make()?.fcm_credential(NOWHERE, "");
        credential.as_object_mut().map(|fields| fields.remove("ca_pem"));
        client.put(&format!("/v1/apps/{}/credentials/fcm", segment(&stuck_app)), &credential).await?;
        let http = Client::builder().no_proxy().build()?;
        let ccs_address = ccs_address.trim().to_owned();
        Ok(Self {
            http,
            url,
            ccs_address,
            app,
            key,
            stuck_app,
            stuck_key,
            _server: server,
            _directory: directory,
        })
    }

    /// Registers a device.
    pub(super) async fn device(&self) -> anyhow::Result<FeatureDevice> {
        FeatureDevice::register(&self.http, &self.url, &self.key).await
    }

    /// Waits until a message has reached its mailbox or has ended otherwise.
    pub(super) async fn settled(&self, message: &str) -> anyhow::Result<()> {
        let path = format!("{}/v1/messages/{}/ledger", self.url, segment(message));
        let ended = async {
            loop {
                let request = self.http.get(&path).bearer_auth(&self.key);
                let ledger: Value = request.send().await?.error_for_status()?.json().await?;
                if ledger["state"] != "running" && ledger["state"] != "scheduled" {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        timeout(PATIENCE, ended).await.context("a message did not reach its mailbox in 20 seconds")?
    }
}

/// Reads a text of an answer.
pub(super) fn text(answer: &Value, name: &str) -> anyhow::Result<String> {
    let text = answer[name].as_str();
    ensure!(text.is_some(), "there is no {name} in {answer}");
    Ok(text.unwrap_or_default().to_owned())
}
