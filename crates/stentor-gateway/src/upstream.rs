//! What devices send to their apps: kept before it is acknowledged, then handed over at least once.

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

/// A message as a device gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamDraft {
    /// The device's own name for it: sent again under the same one it is the same message.
    pub key: String,
    /// What it says.
    pub data: Map<String, Value>,
    /// How long it may wait for the app, at most four weeks.
    pub ttl: Duration,
}

/// Why a message of a device is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// A field of it breaks a rule.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// It cannot be kept now, or too many of the device wait.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Gateway {
    /// Keeps a message of a device; once this returns it is on disk and may be acknowledged. Returns whether it is new.
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
        };
        let kept = self.store().keep_upstream(vec![message.checked()?]).await?;
        let is_new = kept.first().copied().unwrap_or_default();
        self.counts().note_upstream(usize::from(is_new));
        // When it is on disk: whoever is woken finds it.
        let _nobody_listens = self.arrivals().send(app);
        Ok(is_new)
    }

    /// Returns what tells of which app something came upstream. Whoever falls behind looks at the store.
    #[must_use]
    pub fn upstream_arrivals(&self) -> broadcast::Receiver<AppId> {
        self.arrivals().subscribe()
    }
}
