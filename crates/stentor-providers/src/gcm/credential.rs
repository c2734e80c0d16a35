//! An API key, and the server that takes it: the vendor's own has been shut down.

use secrecy::SecretString;
use stentor_core::ports::provider::CredentialError;
use stentor_http2::Endpoint;

use crate::credential::{Fields, parse};

const FIELDS: &[&str] = &["api_key", "endpoint", "path", "server_name", "ca_pem"];
/// The paths of both generations of the service; the first is the usual one.
pub(super) const PATHS: &[&str] = &["/gcm/send", "/fcm/send"];
/// An endpoint for the reader of the fields, which is never used, because the field is required.
const NO_ENDPOINT: &str = "https://localhost";

/// An API key, and the endpoint of its requests.
#[derive(Debug)]
pub struct GcmCredential {
    /// The key, as the value of the header that bears it.
    pub api_key: SecretString,
    /// The path for messages.
    pub path: &'static str,
    /// The endpoint for messages.
    pub endpoint: Endpoint,
}

impl GcmCredential {
    /// Parses `{"api_key", "endpoint", "path"?, "server_name"?, "ca_pem"?}`.
    pub fn parse(secret: &str) -> Result<Self, CredentialError> {
        let map = parse(secret)?;
        let fields = Fields::new(&map, "");
        fields.only(FIELDS)?;
        // The file that it was copied into may end with a line break.
        let key = fields.text("api_key")?.trim();
        if !key.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(fields.invalid("api_key", "must be one line of ASCII"));
        }
        fields.text("endpoint")?;
        Ok(Self {
            api_key: key.to_owned().into(),
            path: path(&fields)?,
            endpoint: fields.endpoint(NO_ENDPOINT)?,
        })
    }

    /// Lists the hosts of its connections, each with the field that names it.
    pub(crate) fn hosts(&self) -> Vec<(String, String)> {
        vec![("endpoint".to_owned(), self.endpoint.host.clone())]
    }
}

fn path(fields: &Fields<'_>) -> Result<&'static str, CredentialError> {
    let text = fields.optional("path")?.unwrap_or(PATHS[0]);
    let known = PATHS.iter().copied().find(|path| *path == text);
    known.ok_or_else(|| fields.invalid("path", "must be `/gcm/send` or `/fcm/send`"))
}
