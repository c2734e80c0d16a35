//! The check of a credential without sending.

use std::time::Duration;

use stentor_core::time::Timestamp;
use tracing::Instrument as _;

use super::{ProviderKey, ProviderTable};

/// Longest time for a token and a connection together; twice the limit of a connection alone.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

impl ProviderTable {
    /// Performs all steps of sending except the message. An error holds the host that was contacted, if any, and the reason.
    pub(crate) async fn check(
        &self,
        key: ProviderKey,
        now: Timestamp,
    ) -> Result<(), (Option<String>, String)> {
        let Some(handle) = self.handle(key, now).await else {
            let parked = self.parking(key).map(|parking| parking.detail);
            return Err((None, parked.unwrap_or_else(|| "the credential was changed: try again".to_owned())));
        };
        let (provider, _in_use) = handle.enter();
        let span = tracing::info_span!("lane", app = %key.0, provider = %key.1);
        match tokio::time::timeout(CHECK_TIMEOUT, provider.check().instrument(span)).await {
            Ok(tried) => tried.map_err(|trouble| (Some(trouble.host), trouble.cause)),
            Err(_) => Err((None, format!("no answer within {} s", CHECK_TIMEOUT.as_secs()))),
        }
    }
}
