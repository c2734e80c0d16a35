//! Login of persons by OpenID Connect: the authorization code flow with PKCE, state and nonce.
//!
//! Names the person and the roles; sessions are a matter of the service.

mod claims;
mod discovery;
mod id_token;
mod issuer_http;
mod key_set;
mod refusal;

use std::path::Path;
use std::sync::Arc;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use stentor_core::time::Timestamp;
use stentor_providers::Outbound;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use crate::arrival_limiter::{ArrivalLimiter, ArrivalRate};
use crate::config::{Config, OidcConfig};
use crate::contract::role::PersonInRoles;
use crate::keys::LoginAttempt;
use crate::owner::SourceNetwork;
use claims::ClaimNames;
use discovery::{Discovery, Metadata};
use id_token::{Expected, IdToken};
use issuer_http::IssuerHttp;
pub(crate) use refusal::{LoginRefusal, RefusalCode};

/// Steps of logins of one address at once, and then in a second; a login has two.
const LOGINS: ArrivalRate = ArrivalRate { burst_max_count: 60, per_second_max_count: 1 };
/// Logins that wait for the issuer at once.
const WAITING_MAX_COUNT: usize = 32;
/// Longest code; it is sent on to the issuer.
const CODE_MAX_BYTES: usize = 4_096;

/// The operator's identity provider.
pub(crate) struct IdentityProvider {
    http: IssuerHttp,
    discovery: Discovery,
    client: OidcClient,
    claims: ClaimNames,
    leeway_seconds: i64,
    logins: ArrivalLimiter<SourceNetwork>,
    waiting: Semaphore,
}

/// This installation as the issuer knows it.
struct OidcClient {
    id: String,
    secret: SecretString,
    redirect_url: Url,
    scope: String,
    /// Number of the settings, which sessions of persons carry.
    settings: u64,
}

/// What the browser brings back from the issuer.
#[derive(Debug, Default)]
pub(crate) struct Callback {
    pub(crate) state: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    /// The issuer's name for itself (RFC 9207).
    pub(crate) issuer: Option<String>,
}

/// A reply of the token endpoint. The access token is not used.
#[derive(Deserialize)]
struct Tokens {
    id_token: Option<SecretString>,
}

impl IdentityProvider {
    /// Applies the operator's settings; `None` if persons cannot log in. An error is a sentence.
    pub(crate) fn new(config: &Config) -> Result<Option<Arc<Self>>, String> {
        let (oidc, outbound) = (&config.console.oidc, &config.outbound);
        let Some(settings) = oidc.number().filter(|_| config.console.enabled) else { return Ok(None) };
        let redirect_url = Url::parse(&oidc.redirect_url).map_err(|error| error.to_string())?;
        let http = IssuerHttp::new(Outbound::new(oidc.policy(outbound)))?;
        let client = OidcClient {
            id: oidc.client_id.clone(),
            secret: secret(oidc)?,
            redirect_url,
            scope: oidc.scopes.join(" "),
            settings,
        };
        Ok(Some(Arc::new(Self {
            discovery: Discovery::new(&oidc.issuer)?,
            http,
            client,
            claims: ClaimNames::new(oidc)?,
            leeway_seconds: i64::try_from(oidc.clock_leeway_seconds).unwrap_or_default(),
            logins: ArrivalLimiter::new(LOGINS),
            waiting: Semaphore::new(WAITING_MAX_COUNT),
        })))
    }

    /// Returns the number of the settings, which sessions of persons carry.
    pub(crate) const fn settings(&self) -> u64 {
        self.client.settings
    }

    /// Counts a step of a login.
    pub(crate) fn admit(&self, network: SourceNetwork) -> Result<(), LoginRefusal> {
        self.logins.take(network).map_err(|_| LoginRefusal::new(RefusalCode::TooManyLogins, "of one address"))
    }

    /// Returns the address at the issuer at which the person logs in.
    pub(crate) async fn begin(&self, attempt: &LoginAttempt) -> Result<Url, LoginRefusal> {
        let _place = self.place()?;
        let metadata = self.discovery.metadata(&self.http).await?;
        let mut url = metadata.authorization_endpoint.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", self.client.redirect_url.as_str())
            .append_pair("scope", &self.client.scope)
            .append_pair("state", &attempt.state)
            .append_pair("nonce", &attempt.nonce)
            .append_pair("code_challenge", &challenge(&attempt.verifier))
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// Returns the person whom the issuer has named.
    pub(crate) async fn finish(
        &self,
        attempt: &LoginAttempt,
        callback: Callback,
        now: Timestamp,
    ) -> Result<PersonInRoles, LoginRefusal> {
        let state = callback.state.as_deref().unwrap_or_default();
        if !bool::from(attempt.state.as_bytes().ct_eq(state.as_bytes())) {
            return Err(LoginRefusal::new(
                RefusalCode::StateMismatch,
                "the state is not that of the browser",
            ));
        }
        let _place = self.place()?;
        let metadata = self.discovery.metadata(&self.http).await?;
        check_issuer(&metadata, callback.issuer.as_deref())?;
        let code = code_of(callback)?;
        let id_token = self.exchange(&metadata, &code, &attempt.verifier).await?;
        let claims = self.verified(&metadata, id_token.expose_secret(), &attempt.nonce, now).await?;
        self.claims.person(&claims)
    }

    /// Returns the address at which the person logs out of the issuer, if it has one.
    pub(crate) async fn logout_url(&self) -> Option<Url> {
        let _place = self.place().ok()?;
        let metadata = self.discovery.metadata(&self.http).await.ok()?;
        let mut url = metadata.end_session_endpoint.clone()?;
        let mut back = self.client.redirect_url.clone();
        back.set_path("/console");
        url.query_pairs_mut()
            .append_pair("client_id", &self.client.id)
            .append_pair("post_logout_redirect_uri", back.as_str());
        Some(url)
    }

    fn place(&self) -> Result<tokio::sync::SemaphorePermit<'_>, LoginRefusal> {
        let taken = self.waiting.try_acquire();
        taken.map_err(|_| LoginRefusal::new(RefusalCode::TooManyLogins, "so many wait for the issuer"))
    }

    /// Turns the code into an ID token.
    async fn exchange(
        &self,
        metadata: &Metadata,
        code: &str,
        verifier: &str,
    ) -> Result<SecretString, LoginRefusal> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.client.redirect_url.as_str()),
            ("code_verifier", verifier),
            ("client_id", self.client.id.as_str()),
        ];
        let secret = Some(self.client.secret.expose_secret()).filter(|secret| !secret.is_empty());
        let basic = secret.filter(|_| metadata.takes_basic()).map(|secret| (self.client.id.as_str(), secret));
        if let (Some(secret), None) = (secret, basic) {
            form.push(("client_secret", secret));
        }
        let tokens: Tokens = self.http.post(&metadata.token_endpoint, &form, basic).await?;
        tokens.id_token.ok_or_else(|| LoginRefusal::new(RefusalCode::IdTokenInvalid, "there is none"))
    }

    async fn verified(
        &self,
        metadata: &Metadata,
        id_token: &str,
        nonce: &str,
        now: Timestamp,
    ) -> Result<id_token::Claims, LoginRefusal> {
        let token = IdToken::read(id_token)?;
        let key = self.discovery.key(&self.http, metadata, &token).await?;
        let claims = token.verified(&key)?;
        let now_seconds = now.as_millis() / 1_000;
        let expected = Expected {
            issuer: &metadata.issuer,
            client_id: &self.client.id,
            nonce,
            now_seconds,
            leeway_seconds: self.leeway_seconds,
        };
        claims.check(&expected)?;
        Ok(claims)
    }
}

fn secret(oidc: &OidcConfig) -> Result<SecretString, String> {
    let file: &Path = &oidc.client_secret_file;
    if file.as_os_str().is_empty() {
        return Ok(oidc.client_secret.clone());
    }
    let content = std::fs::read_to_string(file);
    let content =
        content.map_err(|error| format!("console.oidc.client_secret_file: {}: {error}", file.display()))?;
    Ok(content.trim().to_owned().into())
}

/// Returns the text by which the issuer recognises the verifier (RFC 7636, section 4.2).
fn challenge(verifier: &str) -> String {
    use base64::Engine as _;
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash)
}

/// Rejects an answer that comes from another issuer (RFC 9207).
fn check_issuer(metadata: &Metadata, named: Option<&str>) -> Result<(), LoginRefusal> {
    let is_right = match named {
        Some(issuer) => issuer == metadata.issuer,
        None => !metadata.names_itself,
    };
    if is_right {
        return Ok(());
    }
    Err(LoginRefusal::new(RefusalCode::StateMismatch, "the answer comes from another issuer"))
}

fn code_of(callback: Callback) -> Result<String, LoginRefusal> {
    match callback {
        Callback { error: Some(error), .. } if error == "access_denied" => {
            Err(LoginRefusal::new(RefusalCode::LoginCanceled, "the issuer or the person has refused it"))
        }
        Callback { error: Some(_), .. } => {
            Err(LoginRefusal::new(RefusalCode::IssuerRefused, "the issuer reports an error"))
        }
        Callback { code: Some(code), .. } if code.len() <= CODE_MAX_BYTES => Ok(code),
        _ => Err(LoginRefusal::new(RefusalCode::IssuerRefused, "there is no code")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_that_of_the_example_of_rfc_7636() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
