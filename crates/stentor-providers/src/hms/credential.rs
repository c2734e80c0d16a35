//! The OAuth 2.0 client of a project, as AppGallery Connect shows it.

use secrecy::SecretString;
use stentor_core::ports::provider::CredentialError;
use stentor_http2::Endpoint;

use crate::credential::{Fields, check_token_url, host_of, parse};
use crate::header_text::fits_header;

const ENDPOINT: &str = "https://push-api.cloud.huawei.com";
const TOKEN_URL: &str = "https://oauth-login.cloud.huawei.com/oauth2/v3/token";
const FIELDS: &[&str] =
    &["client_secret", "client_id", "project_id", "endpoint", "token_endpoint", "server_name", "ca_pem"];
pub(super) const PROJECT_ID_MAX_CHARS: usize = 64;

/// An OAuth 2.0 client, and the endpoints of its requests.
#[derive(Debug)]
pub struct HmsCredential {
    /// The secret of the client.
    pub client_secret: SecretString,
    /// The id of the client.
    pub client_id: String,
    /// The project of the messages, a part of the path.
    pub project_id: String,
    /// The URL of the token endpoint.
    pub token_url: String,
    /// The endpoint for messages.
    pub endpoint: Endpoint,
    /// Trusted certificates for both endpoints, if not those of the operating system.
    pub ca_pem: Option<String>,
}

impl HmsCredential {
    /// Parses `{"client_secret", "client_id", "project_id", "endpoint"?, "token_endpoint"?, "server_name"?, "ca_pem"?}`.
    pub fn parse(secret: &str) -> Result<Self, CredentialError> {
        let map = parse(secret)?;
        let fields = Fields::new(&map, "");
        fields.only(FIELDS)?;
        let token_url = fields.optional("token_endpoint")?.unwrap_or(TOKEN_URL);
        check_token_url(token_url).map_err(|problem| fields.invalid("token_endpoint", problem))?;
        Ok(Self {
            client_secret: printable(&fields, "client_secret")?.into(),
            client_id: printable(&fields, "client_id")?,
            project_id: project_id(&fields)?,
            token_url: token_url.to_owned(),
            endpoint: fields.endpoint(ENDPOINT)?,
            ca_pem: fields.optional("ca_pem")?.map(ToOwned::to_owned),
        })
    }

    /// Lists the hosts of its connections, each with the field that names it.
    pub(crate) fn hosts(&self) -> Vec<(String, String)> {
        vec![
            ("endpoint".to_owned(), self.endpoint.host.clone()),
            ("token_endpoint".to_owned(), host_of(&self.token_url)),
        ]
    }
}

/// Reads a text of one line. The file that it was copied into may end with a line break.
fn printable(fields: &Fields<'_>, name: &str) -> Result<String, CredentialError> {
    let text = fields.text(name)?.trim();
    if fits_header(text) {
        Ok(text.to_owned())
    } else {
        Err(fields.invalid(name, "must be one line of text"))
    }
}

fn project_id(fields: &Fields<'_>) -> Result<String, CredentialError> {
    let text = fields.text("project_id")?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if text.len() <= PROJECT_ID_MAX_CHARS && text.bytes().all(allowed) {
        return Ok(text.to_owned());
    }
    Err(fields.invalid("project_id", "must be the project's id, such as 736430079244623146"))
}
