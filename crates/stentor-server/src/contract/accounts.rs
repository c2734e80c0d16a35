//! Service accounts of an app: who signs for itself gets access tokens here, as with the vendors.

use serde::{Deserialize, Serialize};
use stentor_core::account::IssuedAccount;
use stentor_core::app::Scope;
use stentor_core::id::KeyId;
use stentor_core::name::Label;
use utoipa::ToSchema;

use super::Instant;

/// What a new service account is called, and where it finds this server.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceAccountRequest {
    /// What people call it.
    #[schema(value_type = String)]
    pub(crate) name: Label,
    /// Where app servers reach this server, without a path: `https://push.example.org`.
    #[schema(max_length = 1024)]
    pub(crate) url: String,
    /// `send`, `register`; both when absent.
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
    /// Where it gets its access tokens.
    pub(crate) token_uri: String,
    pub(crate) created_at: Instant,
}

/// A new service account with its file, which is shown this once.
#[derive(Serialize, ToSchema)]
pub struct NewServiceAccount {
    #[schema(value_type = String)]
    pub(crate) id: KeyId,
    pub(crate) name: String,
    #[schema(value_type = Vec<String>)]
    pub(crate) scopes: Vec<Scope>,
    /// Where it gets its access tokens.
    pub(crate) token_uri: String,
    pub(crate) created_at: Instant,
    /// The text of its file, an object of JSON with the private key. Keep it: it is not kept here.
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
    /// Shows an account just made, with its file.
    pub(crate) fn new(account: IssuedAccount, file: String) -> Self {
        let ServiceAccountView { id, name, scopes, token_uri, created_at } = account.into();
        Self { id, name, scopes, token_uri, created_at, file }
    }
}
