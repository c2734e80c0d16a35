//! Public keys of devices, and the sealing of messages with them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use stentor_core::device::{DeviceKeys, ProviderKind};
use stentor_core::message::Message;
use stentor_core::ports::store::StoreError;

use crate::device_logins::LoginKeys;
use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use stentor_wire::web_push::{PushKeys, SealingError, seal};

/// The content encoding of messages passed on as their sender sealed them: such a body describes its own decryption.
const PASSED_ON: &str = "aes128gcm";

/// The party that sealed a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedBy {
    /// Its sender; the server cannot read it.
    Sender,
    /// The server, at delivery.
    Server,
}

impl SealedBy {
    /// Returns the name used in the protocols.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Server => "server",
        }
    }
}

/// The reason why the content of a message cannot be given to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// It cannot be written as JSON; the cause is in the log.
    #[error("the message cannot be written as JSON")]
    Unwritten,
    /// It cannot be sealed.
    #[error(transparent)]
    Unsealed(#[from] SealingError),
}

impl From<serde_json::Error> for ContentError {
    fn from(error: serde_json::Error) -> Self {
        tracing::error!(%error, "a message cannot be written as JSON for a device");
        Self::Unwritten
    }
}

/// A message for a device with keys: a body of the encoding `aes128gcm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedMessage {
    /// The body.
    pub body: Vec<u8>,
    /// The party that sealed it.
    pub by: SealedBy,
}

impl SealedMessage {
    /// Seals `clear`, the whole content for the device. A message that consists only of content sealed by its sender is passed on
    /// unchanged.
    pub fn of(
        message: &Message,
        clear: impl FnOnce() -> Result<Vec<u8>, ContentError>,
        keys: &PushKeys,
    ) -> Result<Self, ContentError> {
        match sealed_by_sender(message) {
            Some(body) => Ok(Self { body, by: SealedBy::Sender }),
            None => Ok(Self { body: seal(&clear()?, keys)?, by: SealedBy::Server }),
        }
    }
}

fn sealed_by_sender(message: &Message) -> Option<Vec<u8>> {
    let content = &message.spec.content;
    let own = content.overrides.get(&ProviderKind::Gateway)?;
    let is_alone = content.notification.is_none() && content.data.is_empty();
    if !is_alone || own.get("encoding")?.as_str()? != PASSED_ON {
        return None;
    }
    STANDARD.decode(own.get("raw")?.as_str()?).ok()
}

fn read_keys(keys: Option<DeviceKeys>) -> Result<Option<PushKeys>, StoreError> {
    // A device with damaged keys gets an error: it must not get messages in clear.
    let read = |keys: DeviceKeys| {
        let damaged = || StoreError::Damaged("keys of a device that are none".to_owned());
        PushKeys::read(&keys.p256dh, &keys.auth).ok_or_else(damaged)
    };
    keys.map(read).transpose()
}

fn texts_of(keys: &PushKeys) -> DeviceKeys {
    let (p256dh, auth) = keys.texts();
    DeviceKeys { p256dh, auth }
}

impl Gateway {
    /// Returns a device's registered keys.
    pub async fn device_keys(&self, identity: DeviceIdentity) -> Result<Option<PushKeys>, StoreError> {
        read_keys(self.store().device(identity.app, identity.device).await?.keys)
    }

    /// Returns the keys of a device whose session is open. Those of its login are current unless a device was cut off since.
    pub(crate) async fn keys_of_session(
        &self,
        identity: DeviceIdentity,
        login_keys: LoginKeys,
    ) -> Result<Option<PushKeys>, StoreError> {
        match login_keys {
            LoginKeys::Read { keys, cut_offs } if cut_offs == self.cut_offs() => read_keys(keys),
            _ => self.device_keys(identity).await,
        }
    }

    /// Stores the keys of a device, in place of earlier ones: from now on it receives only sealed messages. `None` ends that. An open
    /// session of the device ends.
    pub async fn put_device_keys(
        &self,
        identity: DeviceIdentity,
        keys: Option<&PushKeys>,
    ) -> Result<(), StoreError> {
        let keys = keys.map(texts_of);
        self.store().put_device_keys(identity.app, identity.device, keys.as_ref()).await?;
        // Only after they are on disk, because the next session reads them.
        self.cut_off(identity.device);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use secrecy::ExposeSecret;
    use stentor_core::device::{Platform, Registration};
    use stentor_core::id::IdSource;
    use stentor_core::ports::clock::Clock;
    use stentor_core::ports::store::Store;
    use stentor_core::time::Timestamp;
    use stentor_storage::conformance::PlainChanges;
    use stentor_storage::conformance::scene::{Scene, at};
    use stentor_storage::sqlite::SqliteStore;

    use super::*;
    use crate::identity::GatewayKey;
    use stentor_wire::web_push::PushKeyPair;

    struct StoppedClock;

    impl Clock for StoppedClock {
        fn now(&self) -> Timestamp {
            at(10)
        }
    }

    #[tokio::test]
    async fn keys_that_change_between_a_login_and_its_session_are_read_again_and_others_are_not() {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::temporary().expect("a store"));
        let app = Scene::new(store.as_ref()).await.app;
        let (ids, key) = (Arc::new(IdSource::after(0)), GatewayKey::new([1; 32]));
        let gateway = Gateway::start(store.clone(), Arc::new(StoppedClock), ids, key);
        let credentials = gateway.key().issue(app);
        let registration =
            Registration::new(Platform::Linux, ProviderKind::Gateway, credentials.token.clone());
        store.register(app, &[registration], at(0)).await.expect("registered");
        let login = async || {
            let (token, secret) = (credentials.token.expose(), credentials.secret.expose_secret());
            gateway.login_with_keys(token, secret).await.expect("logged in")
        };
        let ((identity, of_before), (_, of_now)) = (login().await, login().await);
        let keys = PushKeyPair::generate().expect("keys").public().expect("keys");
        // Not through the gateway, which would learn of it.
        store.put_device_keys(app, identity.device, Some(&texts_of(&keys))).await.expect("kept");
        assert!(gateway.keys_of_session(identity, of_now).await.expect("known").is_none(), "nothing is read");
        gateway.put_device_keys(identity, Some(&keys)).await.expect("kept");
        let read = gateway.keys_of_session(identity, of_before).await.expect("read");
        assert_eq!(read.map(|keys| keys.texts()), Some(keys.texts()));
    }
}
