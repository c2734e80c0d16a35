//! Upstream messages of devices to their app, and the app's webhook for them.

use std::fmt;

use crate::codes::codes;
use crate::error::Invalid;
use crate::id::{AppId, DeviceId, UpstreamId};
use crate::limits::{UPSTREAM_BODY_MAX_BYTES, UPSTREAM_KEY_MAX_BYTES};
use crate::time::Timestamp;

codes! {
    /// The kind of an upstream message.
    UpstreamKind {
        /// A message of a device.
        Message = 0, "message";
        /// A receipt: the device has confirmed a message for which the sender requested receipts.
        Receipt = 1, "receipt";
    }
}

/// A message of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamMessage {
    /// Its id, in order of acceptance.
    pub id: UpstreamId,
    /// The app of the device.
    pub app: AppId,
    /// The device.
    pub device: DeviceId,
    /// Distinguishes messages of the device from receipts that the server generates for it.
    pub kind: UpstreamKind,
    /// The device's own key for it: a repeated key from the same device is the same message. A receipt has the id of the confirmed message.
    pub key: String,
    /// Its content, as the text of a JSON object.
    pub body: String,
    /// Time at which it was stored.
    pub created_at: Timestamp,
    /// Time from which it is obsolete.
    pub expires_at: Timestamp,
    /// Number of handovers; above one it may have been processed before.
    pub attempts: u32,
    /// The reason why it was given up, if it is a dead letter.
    pub dead_reason: Option<String>,
}

impl UpstreamMessage {
    /// Checks the limits of a device's message.
    pub fn checked(self) -> Result<Self, Invalid> {
        let fits = (1..=UPSTREAM_KEY_MAX_BYTES).contains(&self.key.len());
        if !fits || !self.key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let problem = format!("must be 1 to {UPSTREAM_KEY_MAX_BYTES} bytes of visible ASCII");
            return Err(Invalid::new("message_id", problem));
        }
        if self.body.len() > UPSTREAM_BODY_MAX_BYTES {
            return Err(Invalid::new("data", format!("at most {UPSTREAM_BODY_MAX_BYTES} bytes as JSON")));
        }
        Ok(self)
    }
}

/// An app's webhook for upstream messages.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamWebhook {
    /// The owning app.
    pub app: AppId,
    /// The address that messages are posted to.
    pub url: String,
    /// The signing secret, as written by its receiver.
    pub secret: String,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// The previous secret, while it is still valid.
    pub former: Option<FormerSecret>,
}

/// A replaced secret that stays valid beside its successor for some time, so that a receiver can switch over.
#[derive(Clone, PartialEq, Eq)]
pub struct FormerSecret {
    /// The additional signing secret.
    pub secret: String,
    /// End of its validity.
    pub until: Timestamp,
}

impl fmt::Debug for FormerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FormerSecret").field("until", &self.until).finish_non_exhaustive()
    }
}

/// Hides the secret and also the address, because a part of it may be secret.
impl fmt::Debug for UpstreamWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamWebhook").field("app", &self.app).finish_non_exhaustive()
    }
}
