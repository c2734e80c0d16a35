//! The check of a credential without sending.

use std::sync::Arc;
use std::time::Duration;

use stentor_core::ports::provider::ProviderTrouble;
use stentor_core::time::Timestamp;
use tracing::Instrument as _;

use super::handle::{LentProvider, ProviderHandle};
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

impl CheckFailure {
    /// Returns the result while the server ends.
    pub(crate) fn of_the_end() -> Self {
        Self { host: None, cause: "the server is ending: ask again when it runs".to_owned() }
    }
}

impl ProviderTable {
    /// Lends a provider for requests that are no pushes.
    pub(crate) async fn lend(&self, key: ProviderKey, now: Timestamp) -> Result<LentProvider, CheckFailure> {
        self.usable(key, now).await.map(ProviderHandle::lend)
    }

    async fn usable(&self, key: ProviderKey, now: Timestamp) -> Result<Arc<ProviderHandle>, CheckFailure> {
        if let Some(handle) = self.handle(key, now).await {
            return Ok(handle);
        }
        let parked = self.parking(key).map(|parking| parking.detail);
        let cause = parked.unwrap_or_else(|| "the credential was changed: try again".to_owned());
        Err(CheckFailure { host: None, cause })
    }

    /// Tries what sending needs beside a message.
    pub(crate) async fn check(&self, key: ProviderKey, now: Timestamp) -> Result<(), CheckFailure> {
        let handle = self.usable(key, now).await?;
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
