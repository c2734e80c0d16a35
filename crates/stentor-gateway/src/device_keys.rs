//! Public keys of devices, and the sealing of messages with them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use stentor_core::device::{DeviceKeys, ProviderKind};
use stentor_core::message::Message;
use stentor_core::ports::store::StoreError;

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::web_push::{PushKeys, SealingError, seal};

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
    /// Returns a device's registered keys.
    pub async fn device_keys(&self, identity: DeviceIdentity) -> Result<Option<PushKeys>, StoreError> {
        let device = self.store().device(identity.app, identity.device).await?;
        // A device with damaged keys gets an error: it must not get messages in clear.
        let read = |keys: DeviceKeys| {
            let damaged = || StoreError::Damaged("keys of a device that are none".to_owned());
            PushKeys::read(&keys.p256dh, &keys.auth).ok_or_else(damaged)
        };
        device.keys.map(read).transpose()
    }

    /// Stores the keys of a device, in place of earlier ones: from now on it receives only sealed messages. `None` ends that. An open
    /// session of the device ends.
    pub async fn put_device_keys(
        &self,
        identity: DeviceIdentity,
        keys: Option<&PushKeys>,
    ) -> Result<(), StoreError> {
        let keys = keys.map(DeviceKeys::from);
        self.store().put_device_keys(identity.app, identity.device, keys.as_ref()).await?;
        // Only after they are on disk, because the next session reads them.
        self.cut_off(identity.device);
        Ok(())
    }
}
