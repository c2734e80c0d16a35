//! The service-account JSON as Google issues it, optionally wrapped with overrides.

use jsonwebtoken::EncodingKey;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use stentor_core::ports::provider::CredentialError;
use stentor_http2::Endpoint;

use crate::credential::{Fields, check_token_url, host_of, invalid, parse};

const ENDPOINT: &str = "https://fcm.googleapis.com";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const WRAPPED: &[&str] = &["service_account", "endpoint", "token_endpoint", "server_name", "ca_pem"];

/// A service account, and the endpoints of its requests.
#[derive(Debug)]
pub struct FcmCredential {
    /// Project of the messages.
    pub project_id: String,
    /// The account's email, which is the issuer of the assertions.
    pub client_email: String,
    /// The id of the signing key.
    pub private_key_id: String,
    /// That key, PKCS#8 in PEM.
    pub private_key: SecretString,
    /// The URI of the token endpoint; also the audience of the signed assertion.
    pub token_uri: String,
    /// Path of the field with the token URI.
    pub token_uri_field: String,
    /// The endpoint for messages.
    pub endpoint: Endpoint,
    /// Trusted certificates for both endpoints, if not those of the operating system.
    pub ca_pem: Option<String>,
}

impl FcmCredential {
    /// Parses either the bare service-account JSON or `{"service_account": {...}, "endpoint": ..., ...}`.
    pub fn parse(secret: &str) -> Result<Self, CredentialError> {
        let outer = parse(secret)?;
        match outer.get("service_account") {
            None => Self::read(&Fields::new(&outer, ""), &Fields::new(&Map::new(), "")),
            Some(Value::Object(inner)) => {
                let overrides = Fields::new(&outer, "");
                overrides.only(WRAPPED)?;
                Self::read(&Fields::new(inner, "service_account."), &overrides)
            }
            Some(_) => Err(invalid("service_account", "must be the JSON object of a service account")),
        }
    }

    fn read(account: &Fields<'_>, overrides: &Fields<'_>) -> Result<Self, CredentialError> {
        if account.text("type")? != "service_account" {
            return Err(account.invalid("type", "must be `service_account`"));
        }
        let (token_uri, token_uri_field) = match overrides.optional("token_endpoint")? {
            Some(uri) => (Some(uri), overrides.path_of("token_endpoint")),
            None => (account.optional("token_uri")?, account.path_of("token_uri")),
        };
        let token_uri = token_uri.unwrap_or(TOKEN_URI);
        check_token_url(token_uri).map_err(|problem| invalid(&token_uri_field, problem))?;
        let credential = Self {
            project_id: account.text("project_id")?.to_owned(),
            client_email: account.text("client_email")?.to_owned(),
            private_key_id: account.text("private_key_id")?.to_owned(),
            private_key: account.secret("private_key")?,
            token_uri: token_uri.to_owned(),
            token_uri_field,
            endpoint: overrides.endpoint(ENDPOINT)?,
            ca_pem: overrides.optional("ca_pem")?.map(ToOwned::to_owned),
        };
        credential.signing_key().map_err(|()| {
            account
                .unusable("private_key", "must be an RSA key in PEM (BEGIN PRIVATE KEY), as Google issues it")
        })?;
        Ok(credential)
    }

    /// Lists the hosts of its connections, each with the field that names it.
    pub(crate) fn hosts(&self) -> Vec<(String, String)> {
        vec![
            ("endpoint".to_owned(), self.endpoint.host.clone()),
            (self.token_uri_field.clone(), host_of(&self.token_uri)),
        ]
    }

    /// Returns the signing key; fails if it is not an RSA key.
    pub(super) fn signing_key(&self) -> Result<EncodingKey, ()> {
        EncodingKey::from_rsa_pem(self.private_key.expose_secret().as_bytes()).map_err(drop)
    }
}
