//! The server of the bench with every listener open, an attacking app, and an app that only sends.

use super::attack::{self, AttackBytes, AttackTarget};
use super::entry::{AttackKind, AttackedEntry, CredentialKind, Spoken};
use crate::bench::steady;
use anyhow::Context as _;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use stentor_lab::statistics::Samples;
use stentor_stage::child_process::rss_bytes;
use stentor_stage::client::{ApiClient, Key, segment};
use stentor_stage::server::{NAMELESS_RATE, Server, data_dir};
use stentor_stage::text::cell;
use tempfile::TempDir;

/// The pause of a caller of the other app between two messages.
const PAUSE: Duration = Duration::from_millis(5);
/// Settings with every listener, at a port that the system chooses.
const SETTINGS: &str = "[api]\nsocket_listen = \"127.0.0.1:0\"\n\
                        [gateway]\nmcs_listen = \"127.0.0.1:0\"\nmqtt_listen = \"127.0.0.1:0\"\nccs_listen = \"127.0.0.1:0\"\n";

/// All running processes.
pub(super) struct LimitsStage {
    server: Server,
    attacker: [String; 2],
    victim: ApiClient,
    directory: TempDir,
}

impl LimitsStage {
    /// Starts a server with two apps.
    pub(super) async fn build() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        // The server's default, which other benches change.
        let environment = vec![(NAMELESS_RATE, "1000".into())];
        let server = Server::start_with(directory.path(), Some(SETTINGS.to_owned()), environment).await?;
        let (attacker, _) = make_app(&server, "attacker").await?;
        let join = make_key(&server, &attacker, "join").await?;
        let app = make_key(&server, &attacker, "admin").await?;
        let (_, key) = make_app(&server, "victim").await?;
        let victim = ApiClient::new(server.client()?.server(), Some(Key(key)), None)?;
        Ok(Self { server, attacker: [join, app], victim, directory })
    }

    /// Returns the address of an entry point.
    pub(super) fn address(&self, entry_point: &AttackedEntry) -> anyhow::Result<SocketAddr> {
        let file = match entry_point.spoken {
            Spoken::Http(_) | Spoken::WebSocket => return Ok(self.host()?.parse()?),
            Spoken::Socket => "socket.addr",
            Spoken::Port(file, _) => file,
        };
        let text = std::fs::read_to_string(data_dir(self.directory.path()).join(file))?;
        Ok(text.trim().parse()?)
    }

    /// Returns the bytes of an attack; `None` if it does not apply to the entry point.
    pub(super) fn bytes(
        &self,
        entry_point: &AttackedEntry,
        credential: CredentialKind,
        attack: AttackKind,
        connections: u64,
    ) -> anyhow::Result<Option<AttackBytes>> {
        let [join, app] = &self.attacker;
        let key = match credential {
            CredentialKind::None => None,
            CredentialKind::Join => Some(join.as_str()),
            CredentialKind::App => Some(app.as_str()),
        };
        let target = AttackTarget { entry_point, host: &self.host()?, key };
        Ok(attack::bytes(target, attack, connections))
    }

    /// Sends messages of the other app for the time `span`; returns its times in milliseconds, and its number of refused requests.
    pub(super) async fn measure(&self, span: Duration) -> anyhow::Result<(Samples, u64)> {
        let target = json!({"token": {"platform": "android", "provider": "null", "token": "one"}});
        let message = json!({"target": target, "data": {"k": "v"}}).to_string();
        steady::send(self.victim.clone(), PAUSE, span, Arc::new(move || message.clone())).await
    }

    /// Returns the server's resident memory, in megabytes.
    pub(super) fn rss_mb(&mut self) -> anyhow::Result<f64> {
        let process = self.server.process().context("the server has ended")?.id();
        Ok(rss_bytes(process)? as f64 / 1e6)
    }

    /// Fails if the server has ended by itself.
    pub(super) fn check_alive(&mut self) -> anyhow::Result<()> {
        self.server.check_alive()
    }

    fn host(&self) -> anyhow::Result<String> {
        let host = self.victim.server().strip_prefix("http://").context("the server speaks without TLS")?;
        Ok(host.to_owned())
    }
}

/// Creates an app with permission to send; returns its id and a key with all scopes.
async fn make_app(server: &Server, name: &str) -> anyhow::Result<(String, String)> {
    let root = server.client()?;
    let id = cell(&root.post("/v1/apps", &json!({"name": name})).await?["id"]);
    root.put(&format!("/v1/apps/{}/credentials/null", segment(&id)), &json!({})).await?;
    let key = make_key(server, &id, "admin").await?;
    Ok((id, key))
}

async fn make_key(server: &Server, app: &str, scope: &str) -> anyhow::Result<String> {
    let path = format!("/v1/apps/{}/keys", segment(app));
    let made = server.client()?.post(&path, &json!({"name": "key", "scopes": [scope]})).await?;
    Ok(made["secret"].as_str().context("a key has no secret")?.to_owned())
}
