//! Access tokens: the token endpoints of Entra ID and of Microsoft accounts, and the tokens that they give out.
//!
//! An access token carries its expiry, its client and a signature of this emulator, so that it outlives a restart with the same seed and
//! needs no table.

use super::WnsOptions;
use crate::fcm::parse_form;
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const GRANT_TYPE: &str = "client_credentials";
const SCOPE: &str = "https://wns.windows.com/.default";
const OLD_SCOPES: [&str; 2] = ["notify.windows.com", "s.notify.live.net"];
const TOKEN_PREFIX: &str = "stentor-emulator";

/// A client that may send, with its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WnsClient {
    /// The tenant of Entra ID; any if absent.
    #[serde(default)]
    pub tenant: Option<String>,
    /// The id: that of an app registration in Entra ID, or the package security identifier of an older app.
    pub client_id: String,
    /// The secret.
    pub client_secret: String,
}

/// Shows the ids, never the secret.
impl std::fmt::Debug for WnsClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("WnsClient");
        shown.field("tenant", &self.tenant).field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// The endpoint of a token request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenEndpoint<'a> {
    /// Entra ID, for a tenant.
    Entra(&'a str),
    /// Microsoft accounts, for apps of the years before.
    Account,
}

/// A refused token request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TokenDenial {
    pub(super) status: StatusCode,
    error: &'static str,
    /// The number of the error at Entra ID.
    number: u32,
    sentence: &'static str,
}

/// Issues access tokens and recognizes them.
pub(super) struct TokenIssuer {
    clients: Vec<WnsClient>,
    is_required: bool,
    life_s: u64,
    key: hmac::Key,
}

/// The access token that a connection used last, so that it is verified once.
#[derive(Default)]
pub(super) struct TokenSession(Option<(HeaderValue, AccessToken)>);

/// The content of an access token.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AccessToken {
    client_id: String,
    expires_s: u64,
}

impl<'a> TokenEndpoint<'a> {
    /// Returns the endpoint at a path.
    pub(super) fn at(path: &'a str) -> Option<Self> {
        if path == "/accesstoken.srf" {
            return Some(Self::Account);
        }
        let tenant = path.strip_prefix('/')?.strip_suffix("/oauth2/v2.0/token")?;
        (!tenant.is_empty() && !tenant.contains('/')).then_some(Self::Entra(tenant))
    }

    fn takes(self, scope: &str) -> bool {
        match self {
            // Microsoft's own example ends with a slash.
            Self::Entra(_) => scope.trim_end_matches('/') == SCOPE,
            Self::Account => OLD_SCOPES.contains(&scope),
        }
    }
}

impl TokenIssuer {
    pub(super) fn new(options: &WnsOptions, seed: u64) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &seed.to_le_bytes());
        let clients = options.clients.clone();
        Self { clients, is_required: options.require_token, life_s: options.token_life_s, key }
    }

    /// Answers a token request with this form and this `authorization` header.
    pub(super) fn grant(
        &self,
        endpoint: TokenEndpoint<'_>,
        form: &[u8],
        header: Option<&HeaderValue>,
    ) -> Result<Value, TokenDenial> {
        let form = parse_form(form);
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if field("grant_type") != Some(GRANT_TYPE) {
            return Err(denied(
                400,
                "unsupported_grant_type",
                70003,
                "The grant type must be client_credentials.",
            ));
        }
        let basic = header.and_then(basic_credentials);
        let client_id = field("client_id").or(basic.as_ref().map(|(id, _)| id.as_str()));
        let secret = field("client_secret").or(basic.as_ref().map(|(_, secret)| secret.as_str()));
        let client_id = client_id.filter(|id| !id.is_empty());
        let client_id =
            client_id.ok_or_else(|| denied(400, "invalid_request", 900_144, "client_id is missing."))?;
        self.check_client(endpoint, client_id, secret)?;
        if !field("scope").is_some_and(|scope| endpoint.takes(scope)) {
            return Err(denied(400, "invalid_scope", 70011, "The scope is not valid."));
        }
        Ok(self.granted(endpoint, client_id))
    }

    fn check_client(
        &self,
        endpoint: TokenEndpoint<'_>,
        client_id: &str,
        secret: Option<&str>,
    ) -> Result<(), TokenDenial> {
        let secret = secret.filter(|secret| !secret.is_empty());
        let secret =
            secret.ok_or_else(|| denied(401, "invalid_client", 7_000_218, "The secret is missing."))?;
        if self.clients.is_empty() {
            return Ok(());
        }
        let is_of_tenant = |client: &&WnsClient| match (&client.tenant, endpoint) {
            (Some(own), TokenEndpoint::Entra(tenant)) => own == tenant,
            _ => true,
        };
        let known = self.clients.iter().filter(is_of_tenant).find(|client| client.client_id == client_id);
        match known {
            None => Err(denied(400, "unauthorized_client", 700_016, "The client is not in this tenant.")),
            Some(client) if client.client_secret == secret => Ok(()),
            Some(_) => Err(denied(401, "invalid_client", 7_000_215, "Invalid client secret provided.")),
        }
    }

    fn granted(&self, endpoint: TokenEndpoint<'_>, client_id: &str) -> Value {
        let token = self.issue(client_id, now_s() + self.life_s);
        match endpoint {
            TokenEndpoint::Entra(_) => json!({"token_type": "Bearer", "expires_in": self.life_s,
                "ext_expires_in": self.life_s, "access_token": token}),
            TokenEndpoint::Account => {
                json!({"token_type": "bearer", "expires_in": self.life_s, "access_token": token})
            }
        }
    }

    fn issue(&self, client_id: &str, expires_s: u64) -> String {
        let signed = format!("{TOKEN_PREFIX}.{expires_s}.{}", URL_SAFE_NO_PAD.encode(client_id));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, signed.as_bytes())))
    }

    /// Returns the client of a request; an empty one if no token is required. `None` if the request may not send.
    pub(super) fn admit<'a>(
        &self,
        session: &'a mut TokenSession,
        header: Option<&HeaderValue>,
    ) -> Option<&'a str> {
        if !self.is_required {
            return Some("");
        }
        let header = header?;
        // The same header again is the rule: its signature is verified once for a connection.
        if session.0.as_ref().is_none_or(|(current, _)| current != header) {
            session.0 = Some((header.clone(), self.recognize(header)?));
        }
        let (_, token) = session.0.as_ref()?;
        (token.expires_s > now_s()).then_some(token.client_id.as_str())
    }

    /// Returns the content of one of our own tokens.
    fn recognize(&self, header: &HeaderValue) -> Option<AccessToken> {
        let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
        let token = scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())?;
        let (signed, signature) = token.rsplit_once('.')?;
        hmac::verify(&self.key, signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        let (expires, client_id) = signed.strip_prefix(TOKEN_PREFIX)?.strip_prefix('.')?.split_once('.')?;
        let client_id = String::from_utf8(URL_SAFE_NO_PAD.decode(client_id).ok()?).ok()?;
        Some(AccessToken { client_id, expires_s: expires.parse().ok()? })
    }
}

impl TokenDenial {
    /// Returns the body in the form of Entra ID, which is that of RFC 6749 with more fields.
    pub(super) fn body(&self) -> Value {
        let description = format!("AADSTS{}: {}", self.number, self.sentence);
        json!({"error": self.error, "error_description": description, "error_codes": [self.number]})
    }
}

fn denied(status: u16, error: &'static str, number: u32, sentence: &'static str) -> TokenDenial {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    TokenDenial { status, error, number, sentence }
}

/// Reads id and secret of a client from a header (RFC 6749, section 2.3.1).
fn basic_credentials(header: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = header.to_str().ok()?.split_once(' ')?;
    let encoded = scheme.eq_ignore_ascii_case("basic").then_some(encoded.trim())?;
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    text.split_once(':').map(|(id, secret)| (id.to_owned(), secret.to_owned()))
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
