//! Messages of devices to their apps: stored before they are acknowledged, then handed over at least once.

use std::time::Duration;

use serde_json::{Map, Value};
use stentor_core::error::Invalid;
use stentor_core::id::{AppId, UpstreamId};
use stentor_core::ports::store::StoreError;
use stentor_core::upstream::{UpstreamKind, UpstreamMessage};
use tokio::sync::broadcast;

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::limits::UPSTREAM_TTL_MAX;

/// A message as sent by a device.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamDraft {
    /// The device's own id of the message; a repeat with the same id is the same message.
    pub key: String,
    /// The contents.
    pub data: Map<String, Value>,
    /// Time to live, at most four weeks.
    pub ttl: Duration,
}

/// The reason for which a message of a device is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// A field is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store failed, or too many messages of the device wait.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Gateway {
    /// Stores a message of a device. On return it is on disk and may be acknowledged. Returns true if it is new.
    pub async fn keep_upstream(
        &self,
        identity: DeviceIdentity,
        draft: UpstreamDraft,
    ) -> Result<bool, UpstreamError> {
        let DeviceIdentity { app, device } = identity;
        let created_at = self.clock().now();
        let message = UpstreamMessage {
            id: UpstreamId::from_raw(self.ids().next(created_at)),
            app,
            device,
            kind: UpstreamKind::Message,
            key: draft.key,
            body: Value::Object(draft.data).to_string(),
            created_at,
            expires_at: created_at.plus(draft.ttl.min(UPSTREAM_TTL_MAX)),
            attempts: 0,
            dead_reason: None,
        };
        let stored = self.store().keep_upstream(vec![message.checked()?]).await?;
        let is_new = stored.first().copied().unwrap_or_default();
        self.counts().note_upstream(usize::from(is_new));
        // After it is on disk, so that woken consumers find it.
        let _nobody_listens = self.arrivals().send(app);
        Ok(is_new)
    }

    /// Returns a receiver of the apps with new upstream messages. A receiver that lags behind must read the store.
    #[must_use]
    pub fn upstream_arrivals(&self) -> broadcast::Receiver<AppId> {
        self.arrivals().subscribe()
    }
}
