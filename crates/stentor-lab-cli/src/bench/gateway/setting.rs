//! The server with its app and its devices.

use super::GatewayOptions;
use crate::device_load::orders::DeviceLogin;
use crate::device_load::process::DeviceServer;
use anyhow::Context;
use reqwest::Body;
use serde_json::json;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::failure::CommandFailure;
use stentor_stage::server::{Server, data_dir};
use stentor_stage::text::cell;

/// Topic filter of every device: all its messages.
const FILTER: &str = "messages/#";

/// The server, the app and its devices.
pub(super) struct GatewaySetting {
    pub(super) server: Server,
    pub(super) client: ApiClient,
    pub(super) logins: Vec<DeviceLogin>,
    pub(super) devices_at: DeviceServer,
    connections: usize,
}

impl GatewaySetting {
    /// Starts the server and registers the devices.
    pub(super) async fn start(directory: &Path, options: &GatewayOptions) -> anyhow::Result<Self> {
        let address = free_address()?;
        let settings = settings(address, options.connections);
        let server = Server::start_with(directory, Some(settings), Vec::new()).await?;
        let root = server.client()?;
        let app = cell(&root.post("/v1/apps", &json!({"name": "gateway"})).await?["id"]);
        root.put(&format!("/v1/apps/{}/credentials/gateway", segment(&app)), &json!({})).await?;
        let client = root.for_app(app.clone());
        let tokens = tokens(&app, options.connections);
        register(&client, &tokens).await?;
        let secret = stentor_server::app::device_secrets(&data_dir(directory))?;
        let login = |(place, user): (usize, String)| DeviceLogin {
            client_id: format!("bench-{place}"),
            password: secret(&user),
            user,
            filter: FILTER.to_owned(),
        };
        let logins = tokens.into_iter().enumerate().map(login).collect();
        let devices_at = DeviceServer { address, authority: None };
        Ok(Self { server, client, logins, devices_at, connections: options.connections })
    }

    /// Restarts the server with TLS, with this certificate and key.
    pub(super) async fn restart_with_tls(&mut self, cert_file: &Path, key_file: &Path) -> anyhow::Result<()> {
        let files = format!(
            "[api]\ntls_cert_file = \"{}\"\ntls_key_file = \"{}\"\n",
            cert_file.display(),
            key_file.display()
        );
        let settings = format!("{}{files}", settings(self.devices_at.address, self.connections));
        let app = self.client.app().context("the client has no app")?.to_owned();
        self.server.restart_with_tls(&settings, std::fs::read(cert_file)?).await?;
        self.client = self.server.client()?.for_app(app);
        self.devices_at.authority = Some(cert_file.to_owned());
        Ok(())
    }
}

/// Finds an address with a free port: a restarted server must keep its address.
pub(super) fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("this machine has no free port")?;
    Ok(listener.local_addr()?)
}

fn settings(address: SocketAddr, connections: usize) -> String {
    // All devices are of one app, which may have seven eighths of the connections.
    let most = (connections + 1_000) * 8 / 7;
    format!(
        "[gateway]\nmqtt_listen = \"{address}\"\nconnections_max_count = {most}\nconnections_per_address_max_count = {most}\n"
    )
}

/// Invents tokens in the form of the gateway's.
fn tokens(app: &str, count: usize) -> Vec<String> {
    (0..count).map(|place| format!("{app}.bench{place:027}")).collect()
}

async fn register(client: &ApiClient, tokens: &[String]) -> anyhow::Result<()> {
    let mut lines = String::new();
    for token in tokens {
        writeln!(lines, r#"{{"platform":"linux","provider":"gateway","token":"{token}"}}"#)?;
    }
    let query = [("format", "ndjson".to_owned())];
    let path = "/v1/devices/import";
    let reply = client.stream(path, &query, "application/x-ndjson", Body::from(lines)).await?;
    if reply["created"].as_u64() == Some(tokens.len() as u64) {
        return Ok(());
    }
    let sentence = format!("{} devices were to be registered; the server said: {reply}", tokens.len());
    Err(CommandFailure::not_done(sentence).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_their_app_and_differ() {
        let tokens = tokens("app_1", 3);
        assert!(tokens.iter().all(|token| token.starts_with("app_1.bench")), "{tokens:?}");
        assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2], "{tokens:?}");
    }
}
