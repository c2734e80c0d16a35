//! The grant of client credentials (RFC 6749, section 4.4), as Huawei's "OAuth 2.0-based authentication" describes it.

use secrecy::{ExposeSecret, SecretString};
use stentor_core::device::ProviderKind;
use stentor_core::time::Timestamp;

use super::credential::HmsCredential;
use crate::oauth::{Denied, Grant};

const GRANT_TYPE: &str = "client_credentials";

/// The id and the secret of an OAuth 2.0 client.
pub(super) struct ClientGrant {
    id: String,
    secret: SecretString,
}

impl ClientGrant {
    pub(super) fn new(credential: &HmsCredential) -> Self {
        Self { id: credential.client_id.clone(), secret: credential.client_secret.clone() }
    }
}

impl Grant for ClientGrant {
    fn provider(&self) -> ProviderKind {
        ProviderKind::Hms
    }

    fn account(&self) -> &'static str {
        "OAuth 2.0 client"
    }

    fn form(&self, _now: Timestamp) -> Result<Vec<(&'static str, String)>, Denied> {
        Ok(vec![
            ("grant_type", GRANT_TYPE.to_owned()),
            ("client_id", self.id.clone()),
            ("client_secret", self.secret.expose_secret().to_owned()),
        ])
    }
}
