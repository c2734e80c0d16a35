//! Keys by which messages are sealed for a device, where it has told of them; and what it gets then.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use stentor_core::device::ProviderKind;
use stentor_core::message::Message;
use stentor_core::ports::store::{Channel, StoreError};

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::web_push::{PushKeys, SealingError, seal};

/// Between the two keys in the store.
const SEPARATOR: char = ' ';
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
        clear: impl FnOnce() -> Vec<u8>,
        keys: &PushKeys,
    ) -> Result<Self, SealingError> {
        match sealed_by_sender(message) {
            Some(body) => Ok(Self { body, by: SealedBy::Sender }),
            None => Ok(Self { body: seal(&clear(), keys)?, by: SealedBy::Server }),
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

/// Names the keys of a device among the store's channels.
fn agent_of(identity: DeviceIdentity) -> String {
    format!("keys/{}", identity.device)
}

impl Gateway {
    /// Returns the keys that a device has told of.
    pub async fn device_keys(&self, identity: DeviceIdentity) -> Result<Option<PushKeys>, StoreError> {
        let kept = self.store().channels(&agent_of(identity)).await?;
        let read = |channel: &Channel| {
            let (p256dh, auth) = channel.name.split_once(SEPARATOR)?;
            PushKeys::read(p256dh, auth)
        };
        Ok(kept.iter().find_map(read))
    }

    /// Keeps the keys of a device, in place of what it told before: from now on it gets nothing that is not sealed. `None` ends
    /// that. A session that was opened before ends.
    pub async fn put_device_keys(
        &self,
        identity: DeviceIdentity,
        keys: Option<&PushKeys>,
    ) -> Result<(), StoreError> {
        let (agent, DeviceIdentity { app, device }) = (agent_of(identity), identity);
        let former = self.store().channels(&agent).await?;
        let name = keys.map(|keys| {
            let (p256dh, auth) = keys.texts();
            format!("{p256dh}{SEPARATOR}{auth}")
        });
        // The new ones are kept before the former ones go: at no moment has the device none.
        if let Some(name) = &name {
            self.store().put_channel(&agent, &Channel { name: name.clone(), app, device }).await?;
        }
        for channel in former.iter().filter(|channel| Some(&channel.name) != name.as_ref()) {
            self.store().remove_channel(&agent, &channel.name).await?;
        }
        self.cut_off(device);
        Ok(())
    }
}
