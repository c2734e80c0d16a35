//! The public keys of the issuer.

use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::id_token::IdToken;

/// Most keys that are read; an issuer has one or two beside the one in use.
const KEYS_MAX_COUNT: usize = 64;

/// A JSON Web Key Set (RFC 7517, section 5).
#[derive(Deserialize)]
pub(super) struct PublishedKeys {
    keys: Vec<Value>,
}

/// The keys of an issuer that can sign ID tokens.
pub(super) struct KeySet(Vec<NamedKey>);

struct NamedKey {
    name: Option<String>,
    key: DecodingKey,
}

/// A key with the algorithm of a token.
pub(super) struct IssuerKey {
    pub(super) key: DecodingKey,
    pub(super) algorithm: Algorithm,
}

impl From<PublishedKeys> for KeySet {
    /// Takes the keys that can be read. Others have kinds that are not used here.
    fn from(published: PublishedKeys) -> Self {
        let keys = published.keys.into_iter().take(KEYS_MAX_COUNT);
        Self(keys.filter_map(|key| NamedKey::of(serde_json::from_value(key).ok()?)).collect())
    }
}

impl NamedKey {
    fn of(key: Jwk) -> Option<Self> {
        if matches!(&key.common.public_key_use, Some(what) if *what != PublicKeyUse::Signature) {
            return None;
        }
        Some(Self { key: DecodingKey::from_jwk(&key).ok()?, name: key.common.key_id })
    }
}

impl KeySet {
    /// Returns the key that a token names. A token without a name is of the only key of its kind.
    pub(super) fn of(&self, token: &IdToken<'_>) -> Option<IssuerKey> {
        let family = match token.algorithm() {
            Algorithm::RS256 => AlgorithmFamily::Rsa,
            Algorithm::ES256 => AlgorithmFamily::Ec,
            _ => return None,
        };
        let of_kind = self.0.iter().filter(|one| one.key.family() == family);
        let mut named =
            of_kind.filter(|one| token.key_name().is_none() || one.name.as_deref() == token.key_name());
        let (first, second) = (named.next()?, named.next());
        let is_sure = token.key_name().is_some() || second.is_none();
        is_sure.then(|| IssuerKey { key: first.key.clone(), algorithm: token.algorithm() })
    }
}
