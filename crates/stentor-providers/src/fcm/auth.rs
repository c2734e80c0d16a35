//! The grant of a service account: an assertion signed with its key (RFC 7523), as Google's OAuth 2.0 for service accounts describes it.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use stentor_core::device::ProviderKind;
use stentor_core::ports::provider::CredentialError;
use stentor_core::time::Timestamp;

use super::credential::FcmCredential;
use crate::credential::unusable;
use crate::oauth::{Denied, Grant};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";
const ASSERTION_LIFE_SECONDS: i64 = 3_600;

#[derive(Serialize)]
struct AssertionClaims<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: i64,
    exp: i64,
}

/// The signing key of a service account.
pub(super) struct ServiceAccountGrant {
    key: EncodingKey,
    key_id: String,
    email: String,
    /// The token endpoint as written in the credential, which is the signed audience.
    audience: String,
}

impl ServiceAccountGrant {
    /// Reads the key.
    pub(super) fn new(credential: &FcmCredential) -> Result<Self, CredentialError> {
        let key =
            credential.signing_key().map_err(|()| unusable("private_key", "must be an RSA key in PEM"))?;
        Ok(Self {
            key,
            key_id: credential.private_key_id.clone(),
            email: credential.client_email.clone(),
            audience: credential.token_uri.clone(),
        })
    }

    fn assertion(&self, now: Timestamp) -> Result<String, Denied> {
        let iat = now.as_millis() / 1_000;
        let exp = iat + ASSERTION_LIFE_SECONDS;
        let claims = AssertionClaims { iss: &self.email, scope: SCOPE, aud: &self.audience, iat, exp };
        let header = Header { kid: Some(self.key_id.clone()), ..Header::new(Algorithm::RS256) };
        jsonwebtoken::encode(&header, &claims, &self.key)
            .map_err(|_| Denied::Refused("the private key does not sign".to_owned()))
    }
}

impl Grant for ServiceAccountGrant {
    fn provider(&self) -> ProviderKind {
        ProviderKind::Fcm
    }

    fn account(&self) -> &'static str {
        "service account"
    }

    fn form(&self, now: Timestamp) -> Result<Vec<(&'static str, String)>, Denied> {
        Ok(vec![("grant_type", GRANT_TYPE.to_owned()), ("assertion", self.assertion(now)?)])
    }
}
