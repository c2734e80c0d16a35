//! A program with its registrations, like a client of GCM and FCM.

use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::{Value, json};
use stentor_core::id::{AppId, KeyId};
use stentor_core::ports::store::StoreError;
use stentor_gateway::client::{McsClient, McsClientError, McsClientEvent, McsClientLogin};
use stentor_gateway::mcs::{self, McsLimits, McsRegistrar, McsReply};
use stentor_gateway::{DeviceIdentity, Gateway};
use stentor_wire::mcs::{McsCheckinReply, McsCheckinRequest, McsData};
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

pub(super) const KEY: &str = "a registration key";
const KEY_ID: KeyId = KeyId::from_raw(1);

/// Accepts registrations with the key. Without a key, as in GCM, it accepts only those of apps with odd numbers.
pub(super) struct OneKey;

#[async_trait]
impl McsRegistrar for OneKey {
    async fn key_of(&self, _: AppId, key: &str) -> Result<Option<KeyId>, StoreError> {
        Ok((key == KEY).then_some(KEY_ID))
    }

    async fn may_register(&self, app: AppId, installed_with: Option<KeyId>) -> Result<bool, StoreError> {
        Ok(installed_with.map_or(app.raw() % 2 == 1, |key| key == KEY_ID))
    }
}

pub(super) struct Program {
    pub(super) gateway: Gateway,
    pub(super) android_id: u64,
    pub(super) security_token: u64,
    pub(super) limits: McsLimits,
    /// Capacity of a connection for unread bytes.
    pub(super) pipe_bytes: usize,
    pub(super) stopping: CancellationToken,
}

impl Program {
    pub(super) fn check_in(gateway: &Gateway) -> Self {
        let reply = mcs::check_in(gateway, &McsCheckinRequest::default().write());
        let reply = McsCheckinReply::read(&reply.body).expect("a reply");
        Self {
            gateway: gateway.clone(),
            android_id: reply.android_id.expect("an android id"),
            security_token: reply.security_token.expect("a security token"),
            limits: McsLimits::default(),
            pipe_bytes: 1 << 16,
            stopping: CancellationToken::new(),
        }
    }

    pub(super) async fn ask(&self, form: &str) -> McsReply {
        let login = format!("AidLogin {}:{}", self.android_id, self.security_token);
        mcs::register(&self.gateway, &OneKey, Some(&login), form.as_bytes()).await
    }

    /// Registers with GCM, and returns the token.
    pub(super) async fn register(&self, app: AppId, subtype: &str) -> String {
        let sender = app.raw();
        let reply =
            self.ask(&format!("app=org.chromium.linux&X-subtype={subtype}&sender={sender}&device=1")).await;
        token_of(&reply)
    }

    pub(super) async fn device(&self, token: &str) -> DeviceIdentity {
        self.gateway.holder(token).await.expect("a device")
    }

    pub(super) fn login(&self) -> McsClientLogin {
        McsClientLogin {
            android_id: self.android_id,
            security_token: SecretString::from(self.security_token.to_string()),
            received: Vec::new(),
            heartbeat: None,
        }
    }

    /// Opens a connection to a running server.
    pub(super) fn wire(&self) -> DuplexStream {
        let (here, there) = tokio::io::duplex(self.pipe_bytes);
        tokio::spawn(mcs::serve(
            self.gateway.clone(),
            there,
            self.stopping.clone(),
            CancellationToken::new(),
            self.limits,
        ));
        here
    }

    pub(super) async fn connect(&self) -> McsClient<DuplexStream> {
        self.connect_with(self.login()).await.expect("let in")
    }

    pub(super) async fn connect_with(
        &self,
        login: McsClientLogin,
    ) -> Result<McsClient<DuplexStream>, McsClientError> {
        McsClient::log_in(self.wire(), login).await
    }
}

pub(super) fn token_of(reply: &McsReply) -> String {
    let text = String::from_utf8_lossy(&reply.body);
    text.strip_prefix("token=").unwrap_or_else(|| panic!("no token: {text}")).to_owned()
}

pub(super) fn json_of(reply: &McsReply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or(json!(null))
}

/// Waits for an event, within a test's time limit.
pub(super) async fn event(client: &mut McsClient<DuplexStream>) -> McsClientEvent {
    let event = tokio::time::timeout(Duration::from_secs(10), client.next());
    event.await.expect("something comes").expect("the connection lives")
}

/// Waits for a message.
pub(super) async fn message(client: &mut McsClient<DuplexStream>) -> McsData {
    match event(client).await {
        McsClientEvent::Message(data) => *data,
        other => panic!("no message: {other:?}"),
    }
}

/// Waits for the end of the connection.
pub(super) async fn end(client: &mut McsClient<DuplexStream>) -> String {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(10), client.next());
        match next.await.expect("an end") {
            Ok(_) => {}
            Err(McsClientError::Closed(why)) => return why,
            Err(other) => panic!("another end: {other}"),
        }
    }
}

/// Waits until all earlier stanzas are processed.
pub(super) async fn heard(client: &mut McsClient<DuplexStream>) {
    client.ping().await.expect("asked");
    assert_eq!(event(client).await, McsClientEvent::Alive);
}

pub(super) fn persistent(data: &McsData) -> String {
    data.persistent_id.clone().expect("a persistent id")
}

pub(super) fn value<'a>(data: &'a McsData, key: &str) -> Option<&'a str> {
    data.app_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
}
