//! Credentials of WNS: an app registration in Microsoft Entra ID.

use secrecy::SecretString;
use stentor_core::device::ProviderKind;
use stentor_core::ports::provider::CredentialError;
use stentor_core::time::Timestamp;
use stentor_http2::Roots;

use crate::credential::{self, Fields, check_token_url, host_of};
use crate::oauth::{Denied, Grant};

/// The scope of access tokens for WNS.
const SCOPE: &str = "https://wns.windows.com/.default";
const FIELDS: &[&str] = &["tenant_id", "client_id", "client_secret", "token_endpoint", "ca_pem"];
const ID_MAX_BYTES: usize = 128;

/// The parsed credential.
pub struct WnsCredential {
    pub(super) client_id: String,
    pub(super) client_secret: SecretString,
    pub(super) token_url: String,
    pub(super) token_field: &'static str,
    pub(super) ca_pem: Option<String>,
}

impl WnsCredential {
    /// Parses a credential's JSON.
    pub fn parse(secret: &str) -> Result<Self, CredentialError> {
        let map = credential::parse(secret)?;
        let fields = Fields::new(&map, "");
        fields.only(FIELDS)?;
        let id = |name: &str| {
            let text = fields.text(name)?;
            let is_id = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
            match text.len() <= ID_MAX_BYTES && text.bytes().all(is_id) {
                true => Ok(text.to_owned()),
                false => Err(fields.invalid(name, "must be letters, digits, dots and hyphens")),
            }
        };
        let usual = format!("https://login.microsoftonline.com/{}/oauth2/v2.0/token", id("tenant_id")?);
        let given = fields.optional("token_endpoint")?;
        if let Some(Err(problem)) = given.map(check_token_url) {
            return Err(fields.invalid("token_endpoint", problem));
        }
        Ok(Self {
            client_id: id("client_id")?,
            client_secret: fields.secret("client_secret")?,
            token_url: given.map_or(usual, ToOwned::to_owned),
            token_field: if given.is_some() { "token_endpoint" } else { "tenant_id" },
            ca_pem: fields.optional("ca_pem")?.map(ToOwned::to_owned),
        })
    }

    /// Returns the certificates that vouch for push services.
    pub(super) fn roots(&self) -> Roots {
        self.ca_pem.as_ref().map_or(Roots::Native, |pem| Roots::Pem(pem.clone().into()))
    }

    /// Lists its hosts, each after the name of its field.
    pub(super) fn hosts(&self) -> Vec<(String, String)> {
        vec![(self.token_field.to_owned(), host_of(&self.token_url))]
    }
}

/// The grant of Entra ID for a program without a user (RFC 6749, 4.4).
pub(super) struct WnsGrant {
    pub(super) client_id: String,
    pub(super) client_secret: SecretString,
}

impl Grant for WnsGrant {
    fn provider(&self) -> ProviderKind {
        ProviderKind::Wns
    }

    fn account(&self) -> &'static str {
        "app registration"
    }

    fn form(&self, _now: Timestamp) -> Result<Vec<(&'static str, String)>, Denied> {
        use secrecy::ExposeSecret as _;
        Ok(vec![
            ("grant_type", "client_credentials".to_owned()),
            ("client_id", self.client_id.clone()),
            ("client_secret", self.client_secret.expose_secret().to_owned()),
            ("scope", SCOPE.to_owned()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn with(name: &str, value: Value) -> Result<WnsCredential, CredentialError> {
        let mut fields = json!({"tenant_id": "72f988bf-86f1-41af-91ab-2d7cd011db47", "client_id": "app-1", "client_secret": "s~cret"});
        fields[name] = value;
        WnsCredential::parse(&fields.to_string())
    }

    #[test]
    fn the_tenant_names_the_token_endpoint_unless_the_operator_does() {
        let of_tenant = with("ca_pem", Value::Null).expect("a credential");
        let url = "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/oauth2/v2.0/token";
        assert_eq!((&*of_tenant.token_url, of_tenant.token_field), (url, "tenant_id"));
        let named = with("token_endpoint", "https://127.0.0.1:8443/token".into()).expect("a credential");
        assert_eq!(named.hosts(), [("token_endpoint".to_owned(), "127.0.0.1".to_owned())]);
    }

    #[test]
    fn a_field_that_entra_would_refuse_is_named() {
        for (name, value) in [
            ("tenant_id", json!("a/b")),
            ("tenant_id", json!("")),
            ("client_id", json!("a b")),
            ("client_secret", json!(5)),
            ("token_endpoint", json!("ftp://x")),
            ("secret", json!("x")),
        ] {
            assert_eq!(
                with(name, value.clone()).err().expect("refused").into_invalid().field,
                name,
                "{value}"
            );
        }
    }
}
