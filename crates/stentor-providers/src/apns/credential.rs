//! The signing key and its ids, as issued by Apple.

use jsonwebtoken::EncodingKey;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use stentor_core::ports::provider::CredentialError;
use stentor_http2::Endpoint;

use crate::credential::{Fields, parse};

const PRODUCTION: &str = "https://api.push.apple.com";
const SANDBOX: &str = "https://api.sandbox.push.apple.com";
const ID_CHARS: usize = 10;
pub(super) const BUNDLE_ID_MAX_BYTES: usize = 255;
const MANAGEMENT: &str = "https://api-manage-broadcast.push.apple.com:2196";
const SANDBOX_MANAGEMENT: &str = "https://api-manage-broadcast.sandbox.push.apple.com:2195";
const FIELDS: &[&str] = &[
    "key_p8",
    "key_id",
    "team_id",
    "bundle_id",
    "environment",
    "endpoint",
    "management_endpoint",
    "server_name",
    "ca_pem",
];

/// A signing key for provider tokens, and the endpoint of its requests.
#[derive(Debug)]
pub struct ApnsCredential {
    /// The key, as the .p8 file that Apple issues.
    pub key_p8: SecretString,
    /// Its id.
    pub key_id: String,
    /// The team it belongs to.
    pub team_id: String,
    /// The app's bundle id, sent as `apns-topic`.
    pub bundle_id: String,
    /// The endpoint for messages.
    pub endpoint: Endpoint,
    /// The endpoint for the management of channels; `None` if messages go to another address than Apple's and this one is not given.
    pub management: Option<Url>,
}

impl ApnsCredential {
    /// Parses `{"key_p8", "key_id", "team_id", "bundle_id", "environment"?, "endpoint"?, "server_name"?, "ca_pem"?}`.
    pub fn parse(secret: &str) -> Result<Self, CredentialError> {
        let map = parse(secret)?;
        let fields = Fields::new(&map, "");
        fields.only(FIELDS)?;
        let (usual, management) = match fields.optional("environment")?.unwrap_or("production") {
            "production" => (PRODUCTION, MANAGEMENT),
            "sandbox" => (SANDBOX, SANDBOX_MANAGEMENT),
            _ => return Err(fields.invalid("environment", "must be `production` or `sandbox`")),
        };
        let credential = Self {
            key_p8: fields.secret("key_p8")?,
            key_id: id(&fields, "key_id")?,
            team_id: id(&fields, "team_id")?,
            bundle_id: bundle_id(&fields)?,
            endpoint: fields.endpoint(usual)?,
            management: management_of(&fields, management)?,
        };
        credential.signing_key().map_err(|()| {
            fields
                .unusable("key_p8", "must be a P-256 key in PEM (BEGIN PRIVATE KEY), as in Apple's .p8 file")
        })?;
        Ok(credential)
    }

    /// Lists the hosts of its connections, each with the field that names it.
    pub(crate) fn hosts(&self) -> Vec<(String, String)> {
        let mut hosts = vec![("endpoint".to_owned(), self.endpoint.host.clone())];
        let management = self.management.as_ref().and_then(Url::host_str);
        hosts.extend(management.map(|host| ("management_endpoint".to_owned(), host.to_owned())));
        hosts
    }

    /// Returns the signing key; fails if it is not an EC key.
    pub(super) fn signing_key(&self) -> Result<EncodingKey, ()> {
        EncodingKey::from_ec_pem(self.key_p8.expose_secret().as_bytes()).map_err(drop)
    }
}

/// Reads the endpoint of the management of channels. Apple's is used only if messages go to Apple too.
fn management_of(fields: &Fields<'_>, usual: &str) -> Result<Option<Url>, CredentialError> {
    let given = fields.optional("management_endpoint")?;
    if given.is_none() && fields.optional("endpoint")?.is_some() {
        return Ok(None);
    }
    let wrong = || fields.invalid("management_endpoint", "must be a URL such as https://host:2196");
    let url = Url::parse(given.unwrap_or(usual)).map_err(|_| wrong())?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    let is_web = matches!(url.scheme(), "https" | "http") && url.has_host() && url.password().is_none();
    if is_bare && is_web { Ok(Some(url)) } else { Err(wrong()) }
}

fn id(fields: &Fields<'_>, name: &str) -> Result<String, CredentialError> {
    let text = fields.text(name)?;
    let fits = text.len() == ID_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if fits { Ok(text.to_owned()) } else { Err(fields.invalid(name, "must be 10 letters and digits")) }
}

fn bundle_id(fields: &Fields<'_>) -> Result<String, CredentialError> {
    let text = fields.text("bundle_id")?;
    if is_topic(text) {
        return Ok(text.to_owned());
    }
    Err(fields.invalid("bundle_id", "must be letters, digits, `.`, `-` or `_`, such as com.example.app"))
}

/// Returns true if a text can be an `apns-topic`.
pub(super) fn is_topic(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=BUNDLE_ID_MAX_BYTES).contains(&text.len()) && text.bytes().all(allowed)
}
