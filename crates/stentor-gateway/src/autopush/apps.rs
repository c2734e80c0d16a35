//! Which apps let anybody register, and which key stands for which app.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::store::{Store, StoreError};
use stentor_core::time::Timestamp;

use crate::web_push::VapidKey;

/// How long the keys of apps are remembered: reading them opens every credential.
const KEYS_VALID: Duration = Duration::from_secs(10);

/// The keys of apps, when they were read.
type AppKeys = (Timestamp, HashMap<[u8; 65], AppId>);

/// What the gateway credentials of apps say about registrations: `open_registration`, and `vapid_key` for devices that name no app.
pub struct OpenApps {
    store: Arc<dyn Store>,
    keys: Mutex<Option<AppKeys>>,
}

impl OpenApps {
    /// Reads from a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, keys: Mutex::default() }
    }

    /// Returns whether anybody may register a device of an app.
    pub async fn is_open(&self, app: AppId) -> Result<bool, StoreError> {
        match self.store.credential(app, ProviderKind::Gateway).await {
            Ok(credential) => Ok(fields(&credential.secret)["open_registration"] == true),
            Err(StoreError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Finds the app whose senders have a key.
    pub async fn app_of(&self, key: &VapidKey, now: Timestamp) -> Result<Option<AppId>, StoreError> {
        if let Some((read_at, keys)) = &*self.keys.lock().unwrap_or_else(PoisonError::into_inner)
            // A clock that went back must not keep them until it has caught up.
            && *read_at <= now
            && now.since(*read_at) < KEYS_VALID
        {
            return Ok(keys.get(key.as_bytes()).copied());
        }
        let credentials = self.store.credentials().await?;
        let of_gateway = credentials.iter().filter(|one| one.provider == ProviderKind::Gateway);
        let keys: HashMap<_, _> = of_gateway
            .filter_map(|one| {
                let key = VapidKey::read(fields(&one.secret)["vapid_key"].as_str()?)?;
                Some((*key.as_bytes(), one.app))
            })
            .collect();
        let found = keys.get(key.as_bytes()).copied();
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, keys));
        Ok(found)
    }
}

fn fields(secret: &str) -> Value {
    serde_json::from_str(secret).unwrap_or_default()
}
