//! Service accounts of an app: each signs its own assertions and gets access tokens here, as with the vendors.

use serde::{Deserialize, Serialize};
use stentor_core::account::IssuedAccount;
use stentor_core::app::Scope;
use stentor_core::id::KeyId;
use stentor_core::name::Label;
use utoipa::ToSchema;

use super::Instant;

/// Name of a new service account, and the URL at which it reaches this server.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceAccountRequest {
    /// Display name.
    #[schema(value_type = String)]
    pub(crate) name: Label,
    /// Base URL of this server as app servers reach it, without a path: `https://push.example.org`.
    pub(crate) url: String,
    /// Scopes to grant: `send`, `register`; both when absent.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) scopes: Vec<Scope>,
}

/// A service account, without its private key.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceAccount)]
pub struct ServiceAccountView {
    #[schema(value_type = String)]
    pub(crate) id: KeyId,
    pub(crate) name: String,
    #[schema(value_type = Vec<String>)]
    pub(crate) scopes: Vec<Scope>,
    /// URI of the token endpoint.
    pub(crate) token_uri: String,
    pub(crate) created_at: Instant,
}

/// A new service account with its key file, which is shown only once.
#[derive(Serialize, ToSchema)]
pub struct NewServiceAccount {
    #[schema(value_type = String)]
    pub(crate) id: KeyId,
    pub(crate) name: String,
    #[schema(value_type = Vec<String>)]
    pub(crate) scopes: Vec<Scope>,
    /// URI of the token endpoint.
    pub(crate) token_uri: String,
    pub(crate) created_at: Instant,
    /// Contents of the key file: a JSON object with the private key. Store it safely; the server keeps no copy.
    pub(crate) file: String,
}

/// Service accounts of an app.
#[derive(Serialize, ToSchema)]
pub struct ServiceAccountList {
    pub(crate) service_accounts: Vec<ServiceAccountView>,
}

impl From<IssuedAccount> for ServiceAccountView {
    fn from(account: IssuedAccount) -> Self {
        Self {
            id: account.id,
            name: account.name.into(),
            scopes: account.scopes.list(),
            token_uri: account.token_uri,
            created_at: account.created_at.into(),
        }
    }
}

impl NewServiceAccount {
    /// Shows a new account with its key file.
    pub(crate) fn new(account: IssuedAccount, file: String) -> Self {
        let ServiceAccountView { id, name, scopes, token_uri, created_at } = account.into();
        Self { id, name, scopes, token_uri, created_at, file }
    }
}
