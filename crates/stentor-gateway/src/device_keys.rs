//! Keys by which messages are sealed for a device, where it has told of them; and what it gets then.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use stentor_core::device::{DeviceKeys, ProviderKind};
use stentor_core::message::Message;
use stentor_core::ports::store::StoreError;

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::web_push::{PushKeys, SealingError, seal};

/// The encoding of what is given to a device as its sender sealed it: such a body says itself how it is opened.
const PASSED_ON: &str = "aes128gcm";

/// Who has sealed a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedBy {
    /// Its sender: we cannot read it.
    Sender,
    /// The server, when it was given to the device.
    Server,
}

impl SealedBy {
    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Server => "server",
        }
    }
}

/// A message as a device with keys gets it: a body of the encoding `aes128gcm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedMessage {
    /// The body.
    pub body: Vec<u8>,
    /// Who has sealed it.
    pub by: SealedBy,
}

impl SealedMessage {
    /// Seals `clear`, which is all that the device would get; what the sender has sealed, and nothing beside it, goes as it is.
    pub fn of(
        message: &Message,
        clear: impl FnOnce() -> Result<Vec<u8>, SealingError>,
        keys: &PushKeys,
    ) -> Result<Self, SealingError> {
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

impl From<&PushKeys> for DeviceKeys {
    fn from(keys: &PushKeys) -> Self {
        let (p256dh, auth) = keys.texts();
        Self { p256dh, auth }
    }
}

impl Gateway {
    /// Returns the keys that a device has told of.
    pub async fn device_keys(&self, identity: DeviceIdentity) -> Result<Option<PushKeys>, StoreError> {
        let device = self.store().device(identity.app, identity.device).await?;
        // With keys that make no sense it gets nothing: in clear it wants nothing.
        let read = |keys: DeviceKeys| {
            let damaged = || StoreError::Damaged("keys of a device that are none".to_owned());
            PushKeys::read(&keys.p256dh, &keys.auth).ok_or_else(damaged)
        };
        device.keys.map(read).transpose()
    }

    /// Keeps the keys of a device, in place of what it told before: from now on it gets nothing that is not sealed. `None` ends
    /// that. A session that was opened before ends.
    pub async fn put_device_keys(
        &self,
        identity: DeviceIdentity,
        keys: Option<&PushKeys>,
    ) -> Result<(), StoreError> {
        let keys = keys.map(DeviceKeys::from);
        self.store().put_device_keys(identity.app, identity.device, keys.as_ref()).await?;
        // When they are on disk: the next session reads them.
        self.cut_off(identity.device);
        Ok(())
    }
}
