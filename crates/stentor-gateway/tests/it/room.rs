//! A gateway with an app, its devices, and a pipeline that settles at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use stentor_storage::conformance::PlainChanges;

use stentor_core::device::{ProviderKind, PushToken, Registration};
use stentor_core::id::{AppId, DeviceId, IdSource, MessageId};
use stentor_core::message::Content;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::settled::{SettledChunk, SettledFeed};
use stentor_core::ports::store::Store;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;
use stentor_gateway::{
    DeviceCredentials, DeviceIdentity, DeviceProtocol, DeviceSession, Gateway, GatewayKey, SessionEvent,
};
use stentor_storage::conformance::scene::{Draft, Scene, accept_all, at};
use stentor_storage::sqlite::SqliteStore;

/// A clock that is set by hand, in seconds of the scene.
#[derive(Default)]
pub(crate) struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        at(self.0.load(Ordering::SeqCst))
    }
}

/// The fixture of a test.
pub(crate) struct Room {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) gateway: Gateway,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) app: AppId,
    sent: AtomicU64,
}

impl Room {
    pub(crate) async fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::temporary().expect("a store"));
        let app = Scene::new(store.as_ref()).await.app;
        let clock = Arc::new(HandClock::default());
        clock.0.store(10, Ordering::SeqCst);
        let (ids, key) = (Arc::new(IdSource::after(0)), GatewayKey::new([1; 32]));
        let gateway = Gateway::start(store.clone(), clock.clone(), ids, key);
        Self { gateway, store, clock, app, sent: AtomicU64::new(0) }
    }

    pub(crate) fn set_seconds(&self, seconds: i64) {
        self.clock.0.store(seconds, Ordering::SeqCst);
    }

    pub(crate) async fn device(&self) -> (DeviceIdentity, DeviceCredentials) {
        let credentials = self.gateway.key().issue(self.app);
        let registration = self.registration(credentials.token.clone());
        let registered = self.store.register(self.app, &[registration], at(0)).await.expect("registered");
        (DeviceIdentity { app: self.app, device: registered[0].device }, credentials)
    }

    fn registration(&self, token: PushToken) -> Registration {
        Registration::new(stentor_core::device::Platform::Linux, ProviderKind::Gateway, token)
    }

    /// Sends to devices of the gateway, and passes the settled chunks to the gateway.
    pub(crate) async fn send(&self, draft: Draft) -> MessageId {
        let message = self.send_quietly(draft).await;
        for chunk in message.1 {
            self.gateway.settled(chunk);
        }
        message.0
    }

    /// Sends the given content to the connected devices.
    pub(crate) async fn send_content(&self, draft: Draft, content: &Content) -> MessageId {
        let (message, settled) = self.send_quietly(draft).await;
        for mut chunk in settled {
            Arc::make_mut(&mut chunk.message).spec.content = content.clone();
            self.gateway.settled(chunk);
        }
        message
    }

    /// Sends to devices of the gateway without notifying it; returns the settled chunks.
    pub(crate) async fn send_quietly(&self, draft: Draft) -> (MessageId, Vec<SettledChunk>) {
        let scene = Scene::again(self.store.as_ref(), self.app.raw());
        // The scene starts its numbering again each time.
        for _ in 0..self.sent.fetch_add(1, Ordering::SeqCst) {
            scene.next();
        }
        let (message, tickets) = scene.send_wide(draft).await;
        let mut settled = Vec::new();
        for ticket in tickets {
            let leased = scene.lease(ticket.chunk, at(1)).await;
            scene.settled(accept_all(&leased, at(1))).await;
            settled.push(SettledChunk {
                chunk: leased.id,
                message: leased.message,
                devices: leased.devices,
                is_certain: true,
            });
        }
        (message, settled)
    }

    pub(crate) async fn delivered(&self, message: MessageId) -> u64 {
        let ledger = self.store.ledger(self.app, message.into()).await.expect("a ledger");
        assert!(ledger.is_balanced());
        ledger.providers.iter().map(|books| books.delivered).sum()
    }

    pub(crate) fn open(&self, identity: DeviceIdentity, window: usize) -> DeviceSession {
        self.gateway.open(identity, DeviceProtocol::Stream, window)
    }
}

pub(crate) fn to(devices: &[DeviceId]) -> Draft {
    Draft::to(Target::Devices(devices.to_vec())).ttl(1_000)
}

/// Waits for messages.
pub(crate) async fn given(session: &DeviceSession) -> Vec<MessageId> {
    match tokio::time::timeout(Duration::from_secs(10), session.next()).await.expect("something comes") {
        Ok(SessionEvent::Messages(messages)) => messages.iter().map(|one| one.message.id).collect(),
        other => panic!("no messages: {other:?}"),
    }
}

/// Returns the messages available now, possibly none.
pub(crate) async fn now(session: &DeviceSession) -> Vec<MessageId> {
    match session.try_next().await {
        Ok(Some(SessionEvent::Messages(messages))) => messages.iter().map(|one| one.message.id).collect(),
        Ok(None) => Vec::new(),
        other => panic!("no messages: {other:?}"),
    }
}
