//! Unmodified Web Push libraries of app servers against the emulator of a push service.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use stentor_emulators::device::DeviceMessage;
use stentor_emulators::web_push::SubscriptionRequest;
use stentor_emulators::{RunningWebPush, TlsConfig, WebPushConfig, WebPushEmulator, WebPushOptions};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::authority::RoomAuthority;
use crate::client::Client;
use crate::room::{Room, judge};
use crate::web_push::sender::{Push, Sender};

/// Most that one body of 4,096 bytes can hold beside header, tag and mark (RFC 8291, 4).
const TEXT_MAX_BYTES: usize = 3_993;

/// A sender, the emulator, and a device that is subscribed for the sender.
struct EmulatorStory {
    emulator: RunningWebPush,
    sender: Sender,
    token: String,
    messages: UnboundedReceiver<DeviceMessage>,
}

impl EmulatorStory {
    async fn begin(room: &Room, client: Client) -> anyhow::Result<Self> {
        let files = RoomAuthority::make(room)?;
        let emulator = WebPushEmulator::start(WebPushConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 443)),
            tls: TlsConfig::Files { certificate: files.certificate.clone(), key: files.key.clone() },
            vendor: WebPushOptions {
                origin: Some("https://localhost".to_owned()),
                ..WebPushOptions::default()
            },
            ..WebPushConfig::default()
        });
        let emulator = emulator.await?;
        let mut sender = Sender::start(client, &files).await?;
        let application_server_key = Some(sender.key().to_owned());
        let subscription = emulator.subscribe(SubscriptionRequest { token: None, application_server_key })?;
        sender.subscription = json!({"endpoint": subscription.endpoint, "keys": subscription.keys});
        let messages = emulator.running.devices().listen(&subscription.token).context("registered")?;
        Ok(Self { emulator, sender, token: subscription.token, messages })
    }

    /// Demands that a message arrives in clear text.
    async fn arrives(&mut self, push: Push<'_>, payload: &Value) -> anyhow::Result<()> {
        self.sender.send(push).await?.taken(push.ttl)?;
        let message = self.messages.recv().await.context("the device is gone")?;
        ensure!(message.payload == *payload, "{} came instead of {payload}", message.payload);
        let urgent = push.urgency == "high";
        ensure!(message.high_priority == urgent, "urgency {}", push.urgency);
        ensure!(message.collapse_key.as_deref().unwrap_or_default() == push.topic, "topic {}", push.topic);
        Ok(())
    }

    async fn tell(&mut self) -> anyhow::Result<()> {
        self.arrives(Push::of("hello, wörld".as_bytes()), &json!({"text": "hello, wörld"})).await?;
        self.arrives(Push::of(&[255, 0]), &json!({"base64url": "_wA"})).await?;
        let longest = "x".repeat(TEXT_MAX_BYTES);
        self.arrives(Push::of(longest.as_bytes()), &json!({"text": longest})).await?;
        let urgent = Push { ttl: 0, topic: "score-1", urgency: "high", ..Push::of(b"1:1") };
        self.arrives(urgent, &json!({"text": "1:1"})).await?;
        self.sender.send(Push { key: "other", ..Push::of(b"not for me") }).await?.is(403, "WrongKey")?;
        self.emulator.running.devices().expire(&self.token, None);
        self.sender.send(Push::of(b"too late")).await?.is(410, "Gone")?;
        let (content, counts) =
            (self.emulator.running.sums().content, self.emulator.running.counts(&self.token));
        ensure!(content.decrypted == 4 && content.undecryptable == 0, "{content:?}");
        ensure!(counts.accepted == 4 && counts.rejected == 2, "{counts:?}");
        Ok(())
    }
}

async fn tell(room: Room, client: Client) -> anyhow::Result<()> {
    EmulatorStory::begin(&room, client).await?.tell().await
}

#[test]
fn pywebpush_gets_along_with_the_emulator_of_web_push() {
    let name = "web_push_emulator::pywebpush_gets_along_with_the_emulator_of_web_push";
    judge(name, Client::Pywebpush, async |room| tell(room, Client::Pywebpush).await);
}

#[test]
fn web_push_for_node_gets_along_with_the_emulator_of_web_push() {
    let name = "web_push_emulator::web_push_for_node_gets_along_with_the_emulator_of_web_push";
    judge(name, Client::WebPush, async |room| tell(room, Client::WebPush).await);
}

#[test]
fn webpush_go_gets_along_with_the_emulator_of_web_push() {
    let name = "web_push_emulator::webpush_go_gets_along_with_the_emulator_of_web_push";
    judge(name, Client::WebpushGo, async |room| tell(room, Client::WebpushGo).await);
}
