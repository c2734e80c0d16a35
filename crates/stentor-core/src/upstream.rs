//! Messages of devices to whoever speaks for their app, and the webhook that an app may have for them.

use std::fmt;

use crate::codes::codes;
use crate::error::Invalid;
use crate::id::{AppId, DeviceId, UpstreamId};
use crate::limits::{UPSTREAM_BODY_MAX_BYTES, UPSTREAM_KEY_MAX_BYTES};
use crate::time::Timestamp;

codes! {
    /// What whoever speaks for an app is told.
    UpstreamKind {
        /// What a device says.
        Message = 0, "message";
        /// That a device has confirmed a message, for a sender who wants to know.
        Receipt = 1, "receipt";
    }
}

/// A message of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamMessage {
    /// Its id, in order of acceptance.
    pub id: UpstreamId,
    /// Whose device sent it.
    pub app: AppId,
    /// The device.
    pub device: DeviceId,
    /// Whether the device says it, or we say it of the device.
    pub kind: UpstreamKind,
    /// The device's own name for it: the same again from the same device is the same message. A receipt has the id of what was
    /// confirmed.
    pub key: String,
    /// What it says, as the text of a JSON object.
    pub body: String,
    /// When it was kept.
    pub created_at: Timestamp,
    /// When nobody needs it any more.
    pub expires_at: Timestamp,
    /// How often it was handed over; above one it may have been worked on before.
    pub attempts: u32,
}

impl UpstreamMessage {
    /// Checks the bounds of what a device says.
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

/// Where an app wants what its devices send.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamWebhook {
    /// Whose it is.
    pub app: AppId,
    /// The address that messages are posted to.
    pub url: String,
    /// What they are signed with, as its receiver writes it.
    pub secret: String,
    /// When it was last put.
    pub updated_at: Timestamp,
    /// The secret before this one, while it holds too.
    pub former: Option<FormerSecret>,
}

/// A secret that was replaced and holds beside its successor for some time, so that a receiver can change over.
#[derive(Clone, PartialEq, Eq)]
pub struct FormerSecret {
    /// What messages are signed with as well.
    pub secret: String,
    /// Until when.
    pub until: Timestamp,
}

impl fmt::Debug for FormerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FormerSecret").field("until", &self.until).finish_non_exhaustive()
    }
}

/// Shows no secret, and no address either: a part of it may be one.
impl fmt::Debug for UpstreamWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamWebhook").field("app", &self.app).finish_non_exhaustive()
    }
}
