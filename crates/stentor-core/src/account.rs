//! Accounts that sign for themselves: instead of a secret that both sides know, each has a key pair, and only the public
//! half of it is kept here.

use crate::app::Scopes;
use crate::id::{AppId, KeyId};
use crate::name::Label;
use crate::time::Timestamp;

/// An account as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedAccount {
    /// Its public name, of the kind that API keys have: what it asks for is asked under it.
    pub id: KeyId,
    /// The app it opens.
    pub app: AppId,
    /// What people call it.
    pub name: Label,
    /// What it may do.
    pub scopes: Scopes,
    /// Its public key: RSA in DER (RFC 8017, `RSAPublicKey`).
    pub public_key: Vec<u8>,
    /// Where it gets its access tokens: the audience of what it signs.
    pub token_uri: String,
    /// When it was made.
    pub created_at: Timestamp,
}
