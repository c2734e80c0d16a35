//! Apps with open registration, and the mapping from VAPID keys to apps.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use stentor_core::app::Credential;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::store::{AppStore, StoreError};
use stentor_core::time::Timestamp;

use stentor_wire::web_push::VapidKey;

use crate::web_push::VapidToken;

/// Lifetime of the cached keys of apps: reading them opens every credential.
const KEYS_VALID: Duration = Duration::from_secs(10);

/// The keys of apps, with the time at which they were read.
type AppKeys = (Timestamp, HashMap<[u8; 65], AppId>);

/// The registration settings in the gateway credentials of apps: `open_registration`, and `vapid_key` for devices that name no app.
pub struct OpenApps {
    store: Arc<dyn AppStore>,
    keys: Mutex<Option<AppKeys>>,
}

impl OpenApps {
    /// Creates a reader of a store.
    #[must_use]
    pub fn new(store: Arc<dyn AppStore>) -> Self {
        Self { store, keys: Mutex::default() }
    }

    /// Returns true if any client may register a device of an app.
    pub async fn is_open(&self, app: AppId) -> Result<bool, StoreError> {
        match self.store.credential(app, ProviderKind::Gateway).await {
            Ok(credential) => Ok(fields(&credential.secret)["open_registration"] == true),
            Err(StoreError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Finds the app to which a sender's key belongs.
    pub async fn app_of(&self, key: &VapidKey, now: Timestamp) -> Result<Option<AppId>, StoreError> {
        if let Some((read_at, keys)) = &*self.keys.lock()
            // After the clock went back, cached keys must not stay valid until it has caught up.
            && *read_at <= now
            && now.since(*read_at) < KEYS_VALID
        {
            return Ok(keys.get(key.as_bytes()).copied());
        }
        let keys = owners(&self.store.credentials().await?);
        let found = keys.get(key.as_bytes()).copied();
        *self.keys.lock() = Some((now, keys));
        Ok(found)
    }
}

/// An app's claim to a VAPID key, made in its credential. The key is public, so any app can claim it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VapidClaim {
    /// The app.
    pub app: AppId,
    /// The key.
    pub key: VapidKey,
    /// True if the holder of the key has signed that it belongs to this app.
    pub is_proven: bool,
}

impl VapidClaim {
    /// Reads the claim of a credential; `None` if it names no key.
    #[must_use]
    pub fn of(credential: &Credential) -> Option<Self> {
        if credential.provider != ProviderKind::Gateway {
            return None;
        }
        let (fields, app) = (fields(&credential.secret), credential.app);
        let key = VapidKey::read(fields["vapid_key"].as_str()?)?;
        let is_proven =
            fields["vapid_proof"].as_str().is_some_and(|proof| VapidToken::proves(proof, key, app));
        Some(Self { app, key, is_proven })
    }

    /// Returns true if another app's claim takes precedence over this one. The first claim has the key, unless the holder of the key has
    /// proved otherwise.
    #[must_use]
    pub fn is_kept_out_by(&self, other: &Self) -> bool {
        other.app != self.app && other.key == self.key && (other.is_proven || !self.is_proven)
    }
}

/// Returns the owner of each key: the app that has proved it, otherwise the only app that claims it. A key claimed by several apps without
/// a proof, as in a store from before such claims were rejected, has no owner. A guess could give one app's subscribers to another.
fn owners(credentials: &[Credential]) -> HashMap<[u8; 65], AppId> {
    let claims: Vec<VapidClaim> = credentials.iter().filter_map(VapidClaim::of).collect();
    let mut owners = HashMap::new();
    for claim in &claims {
        match claims.iter().any(|other| claim.is_kept_out_by(other)) {
            true => {
                tracing::debug!(app = %claim.app, "several apps claim one vapid_key: set vapid_proof for its owner")
            }
            false => _ = owners.insert(*claim.key.as_bytes(), claim.app),
        }
    }
    owners
}

fn fields(secret: &str) -> Value {
    serde_json::from_str(secret).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    use super::*;

    const OWNER: AppId = AppId::from_raw(1);
    const OTHER: AppId = AppId::from_raw(2);

    fn proof(pair: &EcdsaKeyPair, audience: &str) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "ES256"})), part(&json!({"aud": audience})));
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn credential(app: AppId, pair: &EcdsaKeyPair, proof: Option<String>) -> Credential {
        let key = URL_SAFE_NO_PAD.encode(pair.public_key());
        let secret = json!({"vapid_key": key, "vapid_proof": proof}).to_string();
        Credential { app, provider: ProviderKind::Gateway, secret, updated_at: Timestamp::from_millis(0) }
    }

    #[test]
    fn a_key_is_his_who_has_proved_it_and_nobodys_where_several_claim_it_without_a_proof() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key pair");
        let owner = |credentials: &[Credential]| owners(credentials).into_values().collect::<Vec<_>>();
        let claimed = |app| credential(app, &pair, None);
        let proven = credential(OWNER, &pair, Some(proof(&pair, &OWNER.to_string())));
        assert_eq!(owner(&[claimed(OWNER)]), [OWNER]);
        assert_eq!(owner(&[claimed(OWNER), claimed(OTHER)]), []);
        for both in [[proven.clone(), claimed(OTHER)], [claimed(OTHER), proven.clone()]] {
            assert_eq!(owner(&both), [OWNER]);
        }
        // A proof for one app, or a token for a push service, is no proof for another app.
        for stolen in [OWNER.to_string(), "https://push.example".to_owned()] {
            let thief = credential(OTHER, &pair, Some(proof(&pair, &stolen)));
            assert_eq!(owner(&[thief, proven.clone()]), [OWNER], "{stolen}");
        }
    }
}
