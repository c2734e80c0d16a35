//! Apps and their keys.

use serde::{Deserialize, Serialize};
use stentor_core::app::{ApiKey, App, Scope};
use stentor_core::id::{AppId, KeyId};
use stentor_core::name::Label;
use utoipa::ToSchema;

use super::Instant;

/// A new app.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AppRequest {
    /// Display name.
    #[schema(value_type = String)]
    pub(crate) name: Label,
}

/// An app.
#[derive(Serialize, ToSchema)]
#[schema(as = App)]
pub struct AppView {
    #[schema(value_type = String)]
    pub(crate) id: AppId,
    pub(crate) name: String,
    pub(crate) created_at: Instant,
}

/// All apps that the key may access.
#[derive(Serialize, ToSchema)]
pub struct AppList {
    pub(crate) apps: Vec<AppView>,
}

/// Name and scopes of a new key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRequest {
    /// Display name.
    #[schema(value_type = String)]
    pub(crate) name: Label,
    /// Scopes to grant: `send`, `register`, `admin`.
    #[schema(value_type = Vec<String>, min_items = 1)]
    pub(crate) scopes: Vec<Scope>,
}

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
pub struct KeyView {
    #[schema(value_type = String)]
    pub(crate) id: KeyId,
    pub(crate) name: String,
    #[schema(value_type = Vec<String>)]
    pub(crate) scopes: Vec<Scope>,
    pub(crate) created_at: Instant,
}

/// A new key with its secret, which is shown only once.
#[derive(Serialize, ToSchema)]
pub struct NewKey {
    #[schema(value_type = String)]
    pub(crate) id: KeyId,
    pub(crate) name: String,
    #[schema(value_type = Vec<String>)]
    pub(crate) scopes: Vec<Scope>,
    pub(crate) created_at: Instant,
    /// The secret. Store it safely; the server cannot show it again.
    pub(crate) secret: String,
}

/// Keys of an app.
#[derive(Serialize, ToSchema)]
pub struct KeyList {
    pub(crate) keys: Vec<KeyView>,
}

impl From<App> for AppView {
    fn from(app: App) -> Self {
        Self { id: app.id, name: app.name.into(), created_at: app.created_at.into() }
    }
}

impl From<ApiKey> for KeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name.into(),
            scopes: key.scopes.list(),
            created_at: key.created_at.into(),
        }
    }
}

impl NewKey {
    /// Shows a new key with its secret.
    pub(crate) fn new(key: ApiKey, secret: String) -> Self {
        let KeyView { id, name, scopes, created_at } = key.into();
        Self { id, name, scopes, created_at, secret }
    }
}
