//! Access tokens of OAuth 2.0 (RFC 6749): fetched from a token endpoint with a grant, and renewed before they expire. The grant itself is the
//! adapter's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};
use reqwest::Url;
use reqwest::header::RETRY_AFTER;
use serde::Deserialize;
use serde_json::Value;
use stentor_core::device::ProviderKind;
use stentor_core::outbound::Refused;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{CredentialError, ProviderTrouble};
use stentor_core::time::Timestamp;

use crate::credential::invalid;
use crate::outbound::Outbound;
use crate::{Setup, replies, retry_after, trouble, vendor_http};

const REPLY_MAX_BYTES: usize = 64 * 1_024;
/// Share of a token's life after which it is renewed while still in use, in percent.
const RENEW_AFTER_PERCENT: u64 = 80;
/// Shortest time between two renewals caused by refused tokens.
const REPLACE_MIN_SPAN: Duration = Duration::from_secs(60);

/// The reason for a missing access token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The token endpoint refuses the key: only a new credential helps.
    #[error("the token endpoint refuses the credential: {0}")]
    Refused(String),
    /// All addresses of the token endpoint are refused by the outbound policy.
    #[error("the token endpoint may not be connected to: {0}")]
    AddressRefused(String),
    /// The token endpoint, or the network path to it, is down.
    #[error("the token endpoint is unavailable: {cause}")]
    Unavailable {
        /// The error.
        cause: String,
        /// The delay in its `Retry-After`.
        retry_after: Option<Duration>,
    },
}

impl Denied {
    /// Returns the outcome of a delivery that was not sent because no access token could be got.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Refused(_) => {
                Outcome::Rejected { reason: Reason::CredentialRefused, scope: OutcomeScope::Credential }
            }
            Self::AddressRefused(_) => replies::ADDRESS_REFUSED,
            Self::Unavailable { retry_after, .. } => replies::unavailable(*retry_after),
        }
    }
}

/// The request with which an adapter gets its access tokens.
pub(crate) trait Grant: Send + Sync {
    /// Returns the push service.
    fn provider(&self) -> ProviderKind;

    /// Returns the vendor's term for the account of the credential.
    fn account(&self) -> &'static str;

    /// Returns the form of a request made at `now`.
    fn form(&self, now: Timestamp) -> Result<Vec<(&'static str, String)>, Denied>;
}

/// The address of a token endpoint, the field that names it, and the certificates to trust there.
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) url: &'a str,
    pub(crate) field: &'a str,
    pub(crate) ca_pem: Option<&'a str>,
}

/// A token endpoint's grant.
#[derive(Deserialize)]
pub struct Granted {
    access_token: String,
    expires_in: u64,
}

/// Parses the body of a grant; `None` if it is not one.
#[must_use]
pub fn parse_grant(body: &[u8]) -> Option<Granted> {
    serde_json::from_slice(body).ok().filter(|grant: &Granted| !grant.access_token.is_empty())
}

/// Parses the error of a refused grant (RFC 6749, section 5.2) into a message fit for a log.
#[must_use]
pub fn parse_refusal(status: u16, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct GrantRefusal {
        // The RFC has words; some services send numbers.
        error: Value,
        error_description: Option<String>,
    }
    let refusal = serde_json::from_slice::<GrantRefusal>(body).ok();
    let error = refusal.as_ref().and_then(|refusal| match &refusal.error {
        Value::String(word) => Some(word.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    let Some(error) = error else { return format!("HTTP {status}") };
    let description = refusal.and_then(|refusal| refusal.error_description).unwrap_or_default();
    replies::printable(format!("{error} {description}").trim())
}

/// The current access token, renewed before it expires, by one request at a time.
pub(crate) struct AccessTokens {
    http: reqwest::Client,
    grant: Box<dyn Grant>,
    uri: Url,
    outbound: Outbound,
    clock: Arc<dyn Clock>,
    held: Mutex<AccessTokenState>,
    /// Held during the request for a token.
    gate: tokio::sync::Mutex<()>,
    /// True if it was logged that all addresses are refused.
    is_logged: AtomicBool,
}

#[derive(Default)]
struct AccessTokenState {
    token: Option<AccessToken>,
    /// The error of the last request for a token; `None` after a success.
    denied: Option<Denied>,
    replaced_at: Option<Timestamp>,
}

#[derive(Clone)]
struct AccessToken {
    bearer: HeaderValue,
    renew_at: Timestamp,
    expires_at: Timestamp,
}

impl AccessTokens {
    /// Prepares for a grant; fetches nothing yet.
    pub(crate) fn new(
        grant: impl Grant + 'static,
        endpoint: &TokenEndpoint<'_>,
        setup: &Setup,
    ) -> Result<Self, CredentialError> {
        let uri = Url::parse(endpoint.url).map_err(|_| invalid(endpoint.field, "must be a URL"))?;
        Ok(Self {
            http: vendor_http::client(endpoint.ca_pem.map(str::as_bytes), &setup.outbound)?,
            grant: Box::new(grant),
            uri,
            outbound: setup.outbound.clone(),
            clock: Arc::clone(&setup.clock),
            held: Mutex::default(),
            gate: tokio::sync::Mutex::default(),
            is_logged: AtomicBool::new(false),
        })
    }

    /// Returns the `authorization` header: the current token, or a new one if that has expired.
    ///
    /// Late in a token's life it also starts its renewal in the background.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<HeaderValue, Denied> {
        let now = self.clock.now();
        if let Some(token) = self.current(now) {
            if now >= token.renew_at {
                self.renew_in_background();
            }
            return Ok(token.bearer);
        }
        let _gate = self.gate.lock().await;
        // The previous holder of the gate may have fetched it.
        match self.current(self.clock.now()) {
            Some(token) => Ok(token.bearer),
            None => self.fetch().await,
        }
    }

    /// Returns another token than the refused one; `None` if there is none, or if the last was replaced just now.
    pub(crate) async fn replace(self: &Arc<Self>, refused: &HeaderValue) -> Option<HeaderValue> {
        let _gate = self.gate.lock().await;
        let now = self.clock.now();
        // The previous holder of the gate may have replaced it.
        if let Some(token) = self.current(now).filter(|token| token.bearer != refused) {
            return Some(token.bearer);
        }
        if !self.may_replace(now) {
            return None;
        }
        let provider = self.grant.provider();
        let log_denied = |denied: &Denied| tracing::warn!(%provider, cause = self.describe(denied).cause, "no new access token");
        self.fetch().await.inspect_err(log_denied).ok()
    }

    /// Returns the error of the last request for a token, unless a later one succeeded.
    pub(crate) fn trouble(&self) -> Option<ProviderTrouble> {
        self.lock().denied.as_ref().map(|denied| self.describe(denied))
    }

    /// Gets a token in advance. Returns the reason if nothing can be sent without other settings; another failure is only logged, because
    /// it will recur when sending.
    pub(crate) async fn warm(self: &Arc<Self>) -> Option<Reason> {
        match self.get().await {
            Ok(_) => None,
            Err(Denied::AddressRefused(_)) => Some(Reason::AddressRefused),
            Err(denied) => {
                let provider = self.grant.provider();
                tracing::warn!(%provider, cause = self.describe(&denied).cause, "no access token yet");
                None
            }
        }
    }

    /// Describes an error, with the host of the token endpoint.
    pub(crate) fn describe(&self, denied: &Denied) -> ProviderTrouble {
        let cause = match denied {
            Denied::Refused(words) => format!("refuses the {}: {words}", self.grant.account()),
            Denied::AddressRefused(why) => format!("may not be connected to: {why}"),
            Denied::Unavailable { cause, .. } => cause.clone(),
        };
        trouble::trouble(&trouble::place_of(&self.uri), "token endpoint", &cause)
    }

    fn may_replace(&self, now: Timestamp) -> bool {
        let mut held = self.lock();
        // A clock that went back must not block replacements until it has caught up.
        let recent = held.replaced_at.is_some_and(|at| at <= now && now < at.plus(REPLACE_MIN_SPAN));
        if !recent {
            // Noted before the request: an endpoint that refuses must not be called for each batch.
            held.replaced_at = Some(now);
        }
        !recent
    }

    fn renew_in_background(self: &Arc<Self>) {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            // Another task is fetching one already.
            let Ok(_gate) = this.gate.try_lock() else { return };
            let now = this.clock.now();
            if this.current(now).is_some_and(|token| now < token.renew_at) {
                return;
            }
            if let Err(denied) = this.fetch().await {
                let (provider, cause) = (this.grant.provider(), this.describe(&denied).cause);
                tracing::warn!(%provider, cause, "the access token could not be renewed ahead of its end");
                this.postpone(now);
            }
        });
    }

    /// Postpones the next early renewal a little.
    fn postpone(&self, now: Timestamp) {
        if let Some(token) = &mut self.lock().token {
            token.renew_at = now.plus(REPLACE_MIN_SPAN);
        }
    }

    fn current(&self, now: Timestamp) -> Option<AccessToken> {
        self.lock().token.clone().filter(|token| now < token.expires_at)
    }

    async fn fetch(&self) -> Result<HeaderValue, Denied> {
        let fetched = self.ask().await;
        match &fetched {
            // Logged once, until the result changes.
            Err(cause @ Denied::AddressRefused(_)) if !self.is_logged.swap(true, Relaxed) => {
                let provider = self.grant.provider();
                tracing::warn!(%provider, host = self.uri.host_str(), %cause, "no access token");
            }
            Err(Denied::AddressRefused(_)) => {}
            _ => self.is_logged.store(false, Relaxed),
        }
        self.lock().denied = fetched.as_ref().err().cloned();
        fetched
    }

    async fn ask(&self) -> Result<HeaderValue, Denied> {
        // A literal address is not looked up.
        let checked = self.outbound.check_host(self.uri.host_str().unwrap_or_default());
        checked.map_err(|refused| Denied::AddressRefused(refused.to_string()))?;
        // Taken before the request: the token's life counts from here, so that the token is not used after its end.
        let now = self.clock.now();
        let form = self.grant.form(now)?;
        let response =
            self.http.post(self.uri.clone()).form(&form).send().await.map_err(|cause| unreachable(&cause))?;
        let status = response.status().as_u16();
        let wait = response.headers().get(RETRY_AFTER).and_then(|v| retry_after::parse(v.as_bytes(), now));
        let body = vendor_http::read(response, REPLY_MAX_BYTES).await.map_err(|cause| unreachable(&cause))?;
        let token = granted(status, &body, wait, now)?;
        let bearer = token.bearer.clone();
        self.lock().token = Some(token);
        Ok(bearer)
    }

    fn lock(&self) -> MutexGuard<'_, AccessTokenState> {
        self.held.lock()
    }
}

fn granted(
    status: u16,
    body: &[u8],
    retry_after: Option<Duration>,
    now: Timestamp,
) -> Result<AccessToken, Denied> {
    match status {
        200 => {}
        429 | 500.. => {
            return Err(Denied::Unavailable { cause: format!("HTTP {status}"), retry_after });
        }
        _ => return Err(Denied::Refused(parse_refusal(status, body))),
    }
    let odd =
        || Denied::Unavailable { cause: "its response cannot be understood".to_owned(), retry_after: None };
    let grant = parse_grant(body).ok_or_else(odd)?;
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", grant.access_token)).map_err(|_| odd())?;
    bearer.set_sensitive(true);
    let life = Duration::from_secs(grant.expires_in.min(24 * 3_600));
    let renew_at = now.plus(life * RENEW_AFTER_PERCENT as u32 / 100);
    Ok(AccessToken { bearer, renew_at, expires_at: now.plus(life) })
}

fn unreachable(cause: &reqwest::Error) -> Denied {
    let mut text = cause.to_string();
    // The library wraps the resolver's refusal.
    let mut source = std::error::Error::source(cause);
    while let Some(inner) = source {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return Denied::AddressRefused(refused.to_string());
        }
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    Denied::Unavailable { cause: text, retry_after: None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_make_the_grant_parsers_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), status in any::<u16>()) {
            let _ = parse_grant(&bytes);
            prop_assert!(parse_refusal(status, &bytes).chars().count() <= 200);
        }
    }

    #[test]
    fn a_grant_is_renewed_after_four_fifths_of_its_life() {
        let now = Timestamp::from_millis(1_000_000);
        let token = granted(200, br#"{"access_token":"a","expires_in":3600}"#, None, now).expect("granted");
        assert_eq!(token.renew_at, now.plus(Duration::from_secs(2_880)));
        assert_eq!(token.expires_at, now.plus(Duration::from_secs(3_600)));
        assert!(token.bearer.is_sensitive());
    }

    #[test]
    fn refusals_and_failures_of_the_token_endpoint_are_told_apart() {
        let now = Timestamp::default();
        let denied = |status, body: &[u8]| granted(status, body, None, now).err().expect("denied");
        let refused =
            denied(400, br#"{"error":"invalid_grant","error_description":"Invalid JWT Signature."}"#);
        assert_eq!(refused, Denied::Refused("invalid_grant Invalid JWT Signature.".into()));
        let numbered = denied(400, br#"{"error":1101,"error_description":"invalid client_secret"}"#);
        assert_eq!(numbered, Denied::Refused("1101 invalid client_secret".into()));
        assert_eq!(denied(403, b"<html>"), Denied::Refused("HTTP 403".into()));
        for (status, body) in [(503, &b""[..]), (429, b""), (500, b"{}"), (200, b"garbage"), (200, b"{}")] {
            assert!(matches!(denied(status, body), Denied::Unavailable { .. }), "{status}");
        }
        let newline = br#"{"access_token":"a\nb","expires_in":1}"#;
        assert!(matches!(denied(200, newline), Denied::Unavailable { .. }));
    }
}
