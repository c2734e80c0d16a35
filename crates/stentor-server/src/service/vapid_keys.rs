//! VAPID keys of Web Push senders: each belongs to one app, the first one that names it or the one that proves it.

use serde_json::Value;
use stentor_core::app::Credential;
use stentor_core::device::ProviderKind;
use stentor_gateway::autopush::VapidClaim;
use tokio::sync::MutexGuard;

use super::{ErrorCode, Problem, Service, ServiceResult};

/// Hint about the proof that a key belongs to an app.
const HINT: &str = "the holder of the key proves the ownership with vapid_proof, a token signed with the key, with the app's id as aud";

impl Service {
    /// Refuses a credential with a key of another app; the subscribers of that key would otherwise receive this app's messages. While the
    /// returned guard is held, no other key is put at this server, so that of two concurrent requests the second one finds the first one's
    /// key.
    pub(super) async fn check_vapid_key(
        &self,
        credential: &Credential,
    ) -> ServiceResult<Option<MutexGuard<'_, ()>>> {
        let fields: Value = serde_json::from_str(&credential.secret).unwrap_or_default();
        let claim = VapidClaim::of(credential);
        if fields["vapid_key"].is_string() && claim.is_none() && credential.provider == ProviderKind::Gateway
        {
            return Err(Problem::field("vapid_key", "must be an uncompressed point of P-256"));
        }
        let Some(claim) = claim else { return Ok(None) };
        if fields["vapid_proof"].is_string() && !claim.is_proven {
            let why = "must be a token that is signed with vapid_key (ES256) and has the app's id as aud";
            return Err(Problem::field("vapid_proof", why));
        }
        let turn = self.vapid_keys.lock().await;
        let known = self.store.credentials().await?;
        match known.iter().filter_map(VapidClaim::of).any(|other| claim.is_kept_out_by(&other)) {
            true => Err(Problem::new(ErrorCode::Conflict, "another app has this key")
                .at("vapid_key")
                .with_hint(HINT)),
            false => Ok(Some(turn)),
        }
    }
}
