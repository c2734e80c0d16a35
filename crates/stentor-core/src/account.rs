//! Service accounts: each has a key pair instead of a shared secret, and the server keeps only the public key.

use crate::app::Scopes;
use crate::id::{AppId, KeyId};
use crate::name::Label;
use crate::time::Timestamp;

/// A stored account of an app server, which signs its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedAccount {
    /// Its public id, of the same kind as API keys; its requests are attributed to this id.
    pub id: KeyId,
    /// The app it opens.
    pub app: AppId,
    /// The name shown to people.
    pub name: Label,
    /// Scopes of the account.
    pub scopes: Scopes,
    /// Its public key: RSA in DER (RFC 8017, `RSAPublicKey`).
    pub public_key: Vec<u8>,
    /// The URI of the token endpoint; also the audience of the signed assertion.
    pub token_uri: String,
    /// Time of creation.
    pub created_at: Timestamp,
}
