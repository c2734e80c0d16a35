//! Unmodified Web Push libraries of app servers, sending to a device that is connected by autopush's WebSocket.

mod device;
mod opening;
pub(crate) mod sender;
pub(crate) mod server;

use anyhow::ensure;
use serde_json::json;

use crate::authority::RoomAuthority;
use crate::client::Client;
use crate::room::{Room, judge};
use device::PushDevice;
use opening::DeviceKeys;
use sender::{Push, Sender};
use server::PushServer;

/// Most that one body of 4,096 bytes can hold beside header, tag and mark (RFC 8291, 4).
const TEXT_MAX_BYTES: usize = 3_993;

/// A sender and a device that is subscribed for it.
struct PushStory {
    files: RoomAuthority,
    server: PushServer,
    sender: Sender,
    device: PushDevice,
    agent: String,
    keys: DeviceKeys,
}

impl PushStory {
    async fn begin(room: &Room, client: Client) -> anyhow::Result<Self> {
        let files = RoomAuthority::make(room)?;
        let server = PushServer::start(room, Some(&files)).await?;
        let mut sender = Sender::start(client, &files).await?;
        let mut device = PushDevice::connect(server.port, &server.app, &files).await?;
        let agent = device.greet(None).await?;
        let keys = DeviceKeys::make()?;
        let endpoint = device.subscribe(sender.key()).await?;
        sender.subscription = json!({"endpoint": endpoint, "keys": keys.told()});
        Ok(Self { files, server, sender, device, agent, keys })
    }

    /// Demands that a message arrives at the device as it was before its sender sealed it.
    async fn arrives(&mut self, push: Push<'_>) -> anyhow::Result<()> {
        self.sender.send(push).await?.taken(push.ttl)?;
        self.hears(push.body).await
    }

    async fn hears(&mut self, body: &[u8]) -> anyhow::Result<()> {
        let opened = self.keys.open(&self.device.notification().await?)?;
        ensure!(opened == body, "{} bytes came, {} were sent", opened.len(), body.len());
        Ok(())
    }

    /// Reconnects the device, once all messages have arrived in its mailbox.
    async fn returns(&mut self) -> anyhow::Result<()> {
        self.server.settled().await?;
        self.device = PushDevice::connect(self.server.port, &self.server.app, &self.files).await?;
        let agent = self.device.greet(Some(&self.agent)).await?;
        ensure!(agent == self.agent, "its subscription is gone");
        Ok(())
    }

    /// Sends to a connected device.
    async fn tell_of_what_arrives(&mut self, encodings: &[&str]) -> anyhow::Result<()> {
        let every_byte: Vec<u8> = (0..=255).collect();
        for encoding in encodings {
            self.arrives(Push { encoding, ..Push::of(&every_byte) }).await?;
        }
        self.arrives(Push::of(&[7; TEXT_MAX_BYTES])).await?;
        self.arrives(Push { ttl: 0, ..Push::of(b"now or never") }).await?;
        for (urgency, priority) in [("high", "high"), ("very-low", "normal")] {
            self.arrives(Push { urgency, ..Push::of(urgency.as_bytes()) }).await?;
            let stored = self.server.last_priority().await?;
            ensure!(stored == priority, "{urgency}: {stored}");
        }
        Ok(())
    }

    /// Sends to a device that is away.
    async fn tell_of_what_waits(&mut self) -> anyhow::Result<()> {
        self.device.leave().await?;
        let topic = "score-1";
        self.sender.send(Push { ttl: 0, ..Push::of(b"now or never") }).await?.taken(0)?;
        self.sender.send(Push { topic, ..Push::of(b"0:1") }).await?.taken(600)?;
        let withdrawn = self.sender.send(Push::of(b"withdrawn")).await?.taken(600)?.to_owned();
        ensure!(self.server.withdraw(&withdrawn).await? == 204, "it is not taken back");
        self.sender.send(Push { topic, ..Push::of(b"1:1") }).await?.taken(600)?;
        self.returns().await?;
        self.hears(b"1:1").await?;
        self.device.hears_nothing_more().await
    }

    /// Sends messages that must be refused.
    async fn tell_of_refusals(&mut self) -> anyhow::Result<()> {
        self.sender.send(Push { key: "other", ..Push::of(b"not for me") }).await?.refused(401, 109)?;
        self.device.unsubscribe().await?;
        self.sender.send(Push::of(b"too late")).await?.refused(410, 106)
    }
}

/// Goes through the whole story of one sender.
async fn tell(room: Room, client: Client, encodings: &[&str]) -> anyhow::Result<()> {
    let mut story = PushStory::begin(&room, client).await?;
    story.tell_of_what_arrives(encodings).await?;
    story.tell_of_what_waits().await?;
    story.tell_of_refusals().await
}

#[test]
fn pywebpush_reaches_a_device_on_the_websocket() {
    judge("web_push::pywebpush_reaches_a_device_on_the_websocket", Client::Pywebpush, async |room| {
        tell(room, Client::Pywebpush, &["aes128gcm", "aesgcm"]).await
    });
}

#[test]
fn web_push_for_node_reaches_a_device_on_the_websocket() {
    judge("web_push::web_push_for_node_reaches_a_device_on_the_websocket", Client::WebPush, async |room| {
        tell(room, Client::WebPush, &["aes128gcm", "aesgcm"]).await
    });
}

#[test]
fn webpush_go_reaches_a_device_on_the_websocket() {
    judge("web_push::webpush_go_reaches_a_device_on_the_websocket", Client::WebpushGo, async |room| {
        tell(room, Client::WebpushGo, &["aes128gcm"]).await
    });
}
