//! The token endpoint: client credentials (RFC 6749, section 4.4) in, an access token out.

use crate::access_tokens::{AccessTokens, BearerSession, IssuedToken};
use crate::fcm::parse_form;
use crate::observer::token_hash;
use http::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::json;

const GRANT_TYPE: &str = "client_credentials";
const TOKEN_PREFIX: &str = "hms.stentor-emulator";
/// The vendor's code of a request that cannot be granted; a sub-code names the cause.
const INVALID_REQUEST: u32 = 1101;
const WRONG_SECRET: u32 = 12_304;
const UNKNOWN_CLIENT: u32 = 20_003;
const MALFORMED_CLIENT: u32 = 20_002;
const NO_SECRET: u32 = 20_171;
/// Not verified: the vendor's table has no sub-code for it.
const WRONG_GRANT: u32 = 20_000;
const CLIENT_ID_MAX_DIGITS: usize = 64;

/// Authentication of senders and the issuing of access tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HmsAuth {
    /// Requires an access token of this emulator for sending.
    pub required: bool,
    /// The OAuth 2.0 clients that exist; when empty, any client with any secret.
    pub clients: Vec<HmsClient>,
    /// The lifetime of an access token, in seconds.
    pub token_life_s: u64,
}

impl Default for HmsAuth {
    fn default() -> Self {
        Self { required: true, clients: Vec::new(), token_life_s: 3600 }
    }
}

/// An OAuth 2.0 client of a project.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HmsClient {
    /// Its id.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// The project that it may send for.
    pub project_id: String,
}

/// Shows the ids, never the secret.
impl std::fmt::Debug for HmsClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("HmsClient");
        shown.field("client_id", &self.client_id).field("project_id", &self.project_id);
        shown.finish_non_exhaustive()
    }
}

/// A refused grant: the vendor's codes, and a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HmsDenial {
    sub_code: u32,
    description: &'static str,
}

/// The reason why a request may not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HmsRefusedCaller {
    /// There is no access token, or none for this project.
    Unknown,
    /// The access token has expired.
    Expired,
}

/// The addressee of a path: a project of version 2, or a client of version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HmsSender<'a> {
    Project(&'a str),
    Client(&'a str),
}

/// Issues access tokens and recognizes them.
pub(super) struct ClientTokens {
    auth: HmsAuth,
    tokens: AccessTokens,
}

impl ClientTokens {
    pub(super) fn new(auth: HmsAuth, seed: u64) -> Self {
        Self { auth, tokens: AccessTokens::new(TOKEN_PREFIX, seed) }
    }

    /// Answers a request for a token.
    pub(super) fn grant(&self, form: &[u8]) -> Result<serde_json::Value, HmsDenial> {
        let form = parse_form(form);
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if field("grant_type") != Some(GRANT_TYPE) {
            return Err(denied(WRONG_GRANT, "unsupported grant_type"));
        }
        let client_id = field("client_id").unwrap_or_default();
        if client_id.is_empty()
            || client_id.len() > CLIENT_ID_MAX_DIGITS
            || !client_id.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Err(denied(MALFORMED_CLIENT, "invalid client_id"));
        }
        let secret = field("client_secret").unwrap_or_default();
        if secret.is_empty() {
            return Err(denied(NO_SECRET, "client_secret is empty"));
        }
        self.check(client_id, secret)?;
        let access_token = self.tokens.issue(owner(client_id), self.auth.token_life_s);
        Ok(json!({
            "access_token": access_token, "expires_in": self.auth.token_life_s, "token_type": "Bearer",
        }))
    }

    fn check(&self, client_id: &str, secret: &str) -> Result<(), HmsDenial> {
        if self.auth.clients.is_empty() {
            return Ok(());
        }
        match self.client(client_id) {
            None => Err(denied(UNKNOWN_CLIENT, "client_id does not exist")),
            Some(client) if client.client_secret != secret => {
                Err(denied(WRONG_SECRET, "invalid client_secret"))
            }
            Some(_) => Ok(()),
        }
    }

    fn client(&self, client_id: &str) -> Option<&HmsClient> {
        self.auth.clients.iter().find(|client| client.client_id == client_id)
    }

    /// Checks that a request may send.
    pub(super) fn admit(
        &self,
        session: &mut BearerSession,
        header: Option<&HeaderValue>,
        sender: HmsSender<'_>,
    ) -> Result<(), HmsRefusedCaller> {
        if !self.auth.required {
            return Ok(());
        }
        let token = self.tokens.find(session, header).ok_or(HmsRefusedCaller::Unknown)?;
        match () {
            () if token.has_expired() => Err(HmsRefusedCaller::Expired),
            () if self.may_send(token, sender) => Ok(()),
            () => Err(HmsRefusedCaller::Unknown),
        }
    }

    fn may_send(&self, token: IssuedToken, sender: HmsSender<'_>) -> bool {
        match sender {
            HmsSender::Client(client_id) => owner(client_id) == token.owner,
            HmsSender::Project(_) if self.auth.clients.is_empty() => true,
            HmsSender::Project(project) => {
                let mut clients = self.auth.clients.iter().filter(|client| client.project_id == project);
                clients.any(|client| owner(&client.client_id) == token.owner)
            }
        }
    }
}

impl HmsDenial {
    pub(super) fn body(&self) -> serde_json::Value {
        json!({"error": INVALID_REQUEST, "sub_error": self.sub_code, "error_description": self.description})
    }
}

fn denied(sub_code: u32, description: &'static str) -> HmsDenial {
    HmsDenial { sub_code, description }
}

/// Returns the number that stands for a client in its tokens.
fn owner(client_id: &str) -> u64 {
    token_hash(client_id.as_bytes())
}
