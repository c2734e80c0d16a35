//! The port for apps, keys, service accounts and credentials.

use async_trait::async_trait;

use super::StoreError;
use crate::account::IssuedAccount;
use crate::app::{ApiKey, App, Credential};
use crate::device::ProviderKind;
use crate::id::{AppId, KeyId};

/// Apps, keys and credentials.
#[async_trait]
pub trait AppStore: Send + Sync {
    /// Returns the app.
    async fn app(&self, id: AppId) -> Result<App, StoreError>;

    /// Returns all apps in order of id.
    async fn apps(&self) -> Result<Vec<App>, StoreError>;

    /// Finds a key by the hash of its secret.
    async fn key_by_hash(&self, hash: &[u8; 32]) -> Result<Option<ApiKey>, StoreError>;

    /// Returns the hashes of all keys, in no order, at most `limit`.
    async fn key_hashes(&self, limit: usize) -> Result<Vec<[u8; 32]>, StoreError>;

    /// Returns an app's keys in order of id.
    async fn keys(&self, app: AppId) -> Result<Vec<ApiKey>, StoreError>;

    /// Finds an account of any app by its id.
    async fn account(&self, id: KeyId) -> Result<Option<IssuedAccount>, StoreError>;

    /// Returns an app's accounts in order of id.
    async fn accounts(&self, app: AppId) -> Result<Vec<IssuedAccount>, StoreError>;

    /// Returns all credentials of all apps.
    async fn credentials(&self) -> Result<Vec<Credential>, StoreError>;

    /// Returns one credential.
    async fn credential(&self, app: AppId, provider: ProviderKind) -> Result<Credential, StoreError>;

    /// Returns the largest app, key, message or schedule number in use, so that new ones come after it.
    async fn last_id(&self) -> Result<u64, StoreError>;
}
