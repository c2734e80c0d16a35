//! Devices behind the emulator of FCM: a gateway at which they check in, register and connect as at Google's, and the way of what the
//! emulator accepts to them.
//!
//! The two halves share no code. The emulator tells what it has accepted, and for which token; a server of ours, a process of its own,
//! is sent the same message through its front for FCM HTTP v1, and gives it to the device that has the token.

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

/// The ways to say in a request whom a message is for; the device's token takes their place.
const TARGET_FIELDS: [&str; 4] = ["token", "fid", "topic", "condition"];

/// Whether devices can connect, and where.
#[derive(Debug, Args)]
pub(super) struct DeviceOptions {
    /// Start a gateway beside the emulator, where devices check in and register (in plain HTTP): they get what the emulator
    /// accepts for their tokens
    #[arg(long, value_name = "ADDRESS")]
    devices: Option<SocketAddr>,
    /// Where these devices connect, which speak MCS as Android and Chromium do, without TLS; any free port without it
    #[arg(long, value_name = "ADDRESS", requires = "devices")]
    devices_mcs: Option<SocketAddr>,
}

/// The gateway behind the emulator.
pub(super) struct DeviceGateway {
    server: Server,
    /// Acts for the app with a key that may send.
    sender: ApiClient,
    app: String,
    facts: Value,
    // Gone after the server, whose files are in it.
    _folder: TempDir,
}

impl DeviceOptions {
    /// Starts the gateway, if there is to be one.
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

/// Returns where the server listens for MCS when it has chosen the port itself.
fn chosen_address(folder: &Path) -> Option<String> {
    let told = std::fs::read_to_string(data_dir(folder).join("mcs.addr")).ok()?;
    Some(told.trim().to_owned())
}

/// Makes an app with which any device may register; returns its id, a key for those devices that ask for one, and who sends for it.
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
    /// Returns where devices connect, and what they register with.
    pub(super) const fn facts(&self) -> &Value {
        &self.facts
    }

    /// Sends on what the emulator has accepted, until it ends. A token that no device has leads nowhere, as at FCM.
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

/// Returns a message as it was sent, but to one device.
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
