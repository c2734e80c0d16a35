//! The check of a credential without sending.

use std::time::Duration;

use stentor_core::ports::provider::ProviderTrouble;
use stentor_core::time::Timestamp;
use tracing::Instrument as _;

use super::key::ProviderKey;
use super::table::ProviderTable;

/// Longest time for a token and a connection together; twice the limit of a connection alone.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// The result of a failed credential check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFailure {
    /// The host that failed, as `host:port`, if one was contacted.
    pub host: Option<String>,
    /// A sentence for the operator.
    pub cause: String,
}

impl ProviderTable {
    /// Tries what sending needs beside a message.
    pub(crate) async fn check(&self, key: ProviderKey, now: Timestamp) -> Result<(), CheckFailure> {
        let Some(handle) = self.handle(key, now).await else {
            let parked = self.parking(key).map(|parking| parking.detail);
            let cause = parked.unwrap_or_else(|| "the credential was changed: try again".to_owned());
            return Err(CheckFailure { host: None, cause });
        };
        let (provider, _in_use) = handle.enter();
        let span = tracing::info_span!("lane", app = %key.0, provider = %key.1);
        match tokio::time::timeout(CHECK_TIMEOUT, provider.check().instrument(span)).await {
            Ok(tried) => {
                tried.map_err(|ProviderTrouble { host, cause }| CheckFailure { host: Some(host), cause })
            }
            Err(_) => {
                let cause = format!("no answer within {} s", CHECK_TIMEOUT.as_secs());
                Err(CheckFailure { host: None, cause })
            }
        }
    }
}
