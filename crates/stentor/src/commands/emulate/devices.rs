//! Devices behind the emulator of FCM: a gateway at which they check in, register and connect like at Google's, and the forwarding of
//! accepted messages to them.
//!
//! The two halves share no code. The emulator reports each accepted message and its token. A server of ours, in its own process, receives
//! the same message through its front for FCM HTTP v1, and delivers it to the device with that token.

use crate::output::note;
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use stentor_emulators::device::FollowedMessage;
use stentor_stage::client::{ApiClient, Key, segment};
use stentor_stage::server::{Server, data_dir};
use stentor_stage::text::cell;
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

/// Fields of a request that name its target; the device's token replaces them.
const TARGET_FIELDS: [&str; 4] = ["token", "fid", "topic", "condition"];

/// Options for the connection of devices.
#[derive(Debug, Args)]
pub(super) struct DeviceOptions {
    /// Start a gateway beside the emulator at this address, where devices check in and register (in plain HTTP): they get the messages that
    /// the emulator accepts for their tokens
    #[arg(long, value_name = "ADDRESS")]
    devices: Option<SocketAddr>,
    /// The address at which these devices connect, speaking MCS like Android and Chromium, without TLS; any free port by default
    #[arg(long, value_name = "ADDRESS", requires = "devices")]
    devices_mcs: Option<SocketAddr>,
}

/// The gateway behind the emulator.
pub(super) struct DeviceGateway {
    server: Server,
    /// A client of the app with a key that may send.
    sender: ApiClient,
    app: String,
    facts: Value,
    // Dropped after the server, which has its files in it.
    _folder: TempDir,
}

impl DeviceOptions {
    /// Starts the gateway, if it is enabled.
    pub(super) async fn start(&self) -> anyhow::Result<Option<DeviceGateway>> {
        let Some(address) = self.devices else { return Ok(None) };
        let folder = TempDir::with_prefix("stentor-devices-");
        let folder = folder.context("no directory can be made for the gateway")?;
        let mcs_listen = self.devices_mcs.map_or_else(|| "127.0.0.1:0".to_owned(), |mcs| mcs.to_string());
        let settings = format!("[gateway]\nmcs_listen = \"{mcs_listen}\"\n");
        let server = Server::start_at(folder.path(), address, settings).await?;
        let root = server.client()?;
        let (app, key, sender) = open_app(&root).await?;
        let mcs = chosen_address(folder.path()).unwrap_or(mcs_listen);
        let facts = json!({"url": root.server(), "mcs": mcs, "app": app, "key": key});
        Ok(Some(DeviceGateway { server, sender, app, facts, _folder: folder }))
    }
}

/// Returns the MCS address of the server if it has chosen the port itself.
fn chosen_address(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data_dir(folder).join("mcs.addr")).ok()?;
    Some(text.trim().to_owned())
}

/// Creates an app with open registration; returns its id, a key for devices that need one, and a client that sends for it.
async fn open_app(root: &ApiClient) -> anyhow::Result<(String, String, ApiClient)> {
    let app = cell(&root.post("/v1/apps", &json!({"name": "behind the emulator of FCM"})).await?["id"]);
    let path = format!("/v1/apps/{}", segment(&app));
    root.put(&format!("{path}/credentials/gateway"), &json!({"open_registration": true})).await?;
    let mut secrets = Vec::new();
    for scope in ["join", "send"] {
        let key = json!({"name": scope, "scopes": [scope]});
        secrets.push(cell(&root.post(&format!("{path}/keys"), &key).await?["secret"]));
    }
    let sender = ApiClient::new(root.server(), secrets.pop().map(Key), None)?;
    Ok((app, secrets.pop().unwrap_or_default(), sender))
}

impl DeviceGateway {
    /// Returns the addresses for devices and the data for their registration.
    pub(super) const fn facts(&self) -> &Value {
        &self.facts
    }

    /// Forwards the accepted messages until the emulator ends. Messages for a token without a device are dropped, as at FCM.
    pub(super) async fn follow(
        &mut self,
        mut accepted: UnboundedReceiver<FollowedMessage>,
    ) -> anyhow::Result<()> {
        let path = format!("/v1/projects/{}/messages:send", segment(&self.app));
        while let Some(FollowedMessage { token, message }) = accepted.recv().await {
            self.server.check_alive()?;
            let request = json!({"message": for_device(message.payload, &token)});
            if let Err(error) = self.sender.post(&path, &request).await {
                note(&format!("stentor: {} does not reach its device: {error:#}", message.message_id));
            }
        }
        Ok(())
    }
}

/// Returns the message with a single device as its target.
fn for_device(mut message: Value, token: &str) -> Value {
    if let Some(fields) = message.as_object_mut() {
        fields.retain(|name, _| !TARGET_FIELDS.contains(&name.as_str()));
        fields.insert("token".to_owned(), token.into());
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_goes_to_one_device_whomever_it_was_sent_to() {
        let sent = json!({"topic": "news", "data": {"topic": "sport"}, "android": {"ttl": "60s"}});
        let expected = json!({"token": "t", "data": {"topic": "sport"}, "android": {"ttl": "60s"}});
        assert_eq!(for_device(sent, "t"), expected);
        assert_eq!(for_device(json!({"fid": "f"}), "t"), json!({"token": "t"}));
    }
}
