//! The port for apps, keys, service accounts and credentials.

use async_trait::async_trait;

use super::StoreError;
use crate::account::IssuedAccount;
use crate::app::{ApiKey, App, Credential};
use crate::device::ProviderKind;
use crate::id::{AppId, KeyId};

/// The keys that a list contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFilter {
    /// All keys of an app.
    App(AppId),
    /// The key, of any app or of none, whose secret has this hash.
    Hash([u8; 32]),
}

/// The accounts that a list contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountFilter {
    /// All accounts of an app.
    App(AppId),
    /// The account, of any app, with this id.
    Id(KeyId),
}

/// Apps, keys and credentials.
#[async_trait]
pub trait AppStore: Send + Sync {
    /// Returns the app.
    async fn app(&self, id: AppId) -> Result<App, StoreError>;

    /// Returns all apps in order of id.
    async fn apps(&self) -> Result<Vec<App>, StoreError>;

    /// Returns the hashes of all keys, in no order, at most `limit`.
    async fn key_hashes(&self, limit: usize) -> Result<Vec<[u8; 32]>, StoreError>;

    /// Returns keys in order of id.
    async fn keys(&self, filter: KeyFilter) -> Result<Vec<ApiKey>, StoreError>;

    /// Returns accounts in order of id.
    async fn accounts(&self, filter: AccountFilter) -> Result<Vec<IssuedAccount>, StoreError>;

    /// Returns all credentials of all apps.
    async fn credentials(&self) -> Result<Vec<Credential>, StoreError>;

    /// Returns one credential.
    async fn credential(&self, app: AppId, provider: ProviderKind) -> Result<Credential, StoreError>;

    /// Returns the largest app, key, message or schedule number in use, so that new ones come after it.
    async fn last_id(&self) -> Result<u64, StoreError>;
}
