//! What the issuer says of itself: its endpoints and its keys, read when they are needed and remembered for a while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Url;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tokio::sync::Mutex;

use super::id_token::IdToken;
use super::issuer_http::IssuerHttp;
use super::key_set::{IssuerKey, KeySet, PublishedKeys};
use super::refusal::LoginRefusal;
use crate::arrival_limiter::{ArrivalLimiter, ArrivalRate};

/// Time for which endpoints and keys are remembered.
const MEMORY: Duration = Duration::from_secs(3_600);
/// Time without another request after one that failed.
const FAILURE_PAUSE: Duration = Duration::from_secs(2);
/// Reads of the keys for a key that is not among the remembered ones, at once and then in a second.
const KEY_READS: ArrivalRate = ArrivalRate { burst_max_count: 4, per_second_max_count: 1 };
const METHOD_BASIC: &str = "client_secret_basic";
const METHOD_POST: &str = "client_secret_post";

/// The issuer, and what is remembered of it.
pub(super) struct Discovery {
    issuer: String,
    address: Url,
    known: Mutex<Known>,
    key_reads: ArrivalLimiter<()>,
}

#[derive(Default)]
struct Known {
    metadata: Option<Remembered<Metadata>>,
    keys: Option<Remembered<KeySet>>,
    failed: Option<(Instant, LoginRefusal)>,
}

struct Remembered<T> {
    value: Arc<T>,
    read_at: Instant,
}

/// The endpoints of the issuer (OpenID Connect Discovery, section 3).
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) issuer: String,
    #[serde(deserialize_with = "address")]
    pub(super) authorization_endpoint: Url,
    #[serde(deserialize_with = "address")]
    pub(super) token_endpoint: Url,
    #[serde(default, deserialize_with = "address_or_none")]
    pub(super) end_session_endpoint: Option<Url>,
    #[serde(deserialize_with = "address")]
    jwks_uri: Url,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// True if each answer names the issuer (RFC 9207).
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub(super) names_itself: bool,
}

impl Discovery {
    pub(super) fn new(issuer: &str) -> Result<Self, String> {
        let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let address = Url::parse(&address).map_err(|error| format!("console.oidc.issuer: {error}"))?;
        let key_reads = ArrivalLimiter::new(KEY_READS);
        Ok(Self { issuer: issuer.to_owned(), address, known: Mutex::default(), key_reads })
    }

    /// Returns the endpoints. Logins that come together wait for one request.
    pub(super) async fn metadata(&self, http: &IssuerHttp) -> Result<Arc<Metadata>, LoginRefusal> {
        let mut known = self.known.lock().await;
        if let Some(metadata) = Remembered::fresh(known.metadata.as_ref()) {
            return Ok(metadata);
        }
        known.check_failure()?;
        let read = http.get::<Metadata>(&self.address).await;
        let checked = read.and_then(|metadata| self.checked(metadata));
        let metadata = known.note(checked)?;
        known.metadata = Some(metadata.clone());
        Ok(metadata.value)
    }

    /// Returns the key of a token. A key that is not known is looked for once more at the issuer, which may have a new one.
    pub(super) async fn key(
        &self,
        http: &IssuerHttp,
        metadata: &Metadata,
        token: &IdToken<'_>,
    ) -> Result<IssuerKey, LoginRefusal> {
        let mut known = self.known.lock().await;
        let fresh = Remembered::fresh(known.keys.as_ref());
        if let Some(key) = fresh.as_ref().and_then(|keys| keys.of(token)) {
            return Ok(key);
        }
        known.check_failure()?;
        if fresh.is_some() && self.key_reads.take(()).is_err() {
            return Err(LoginRefusal::invalid("its key is not known, and too many keys were looked for"));
        }
        let read = http.get::<PublishedKeys>(&metadata.jwks_uri).await;
        let keys = known.note(read.map(KeySet::from))?;
        known.keys = Some(keys.clone());
        keys.value.of(token).ok_or_else(|| LoginRefusal::invalid("its key is none of the issuer's"))
    }

    /// Rejects endpoints that another issuer names, and those that would show secrets on the line.
    fn checked(&self, metadata: Metadata) -> Result<Metadata, LoginRefusal> {
        if metadata.issuer != self.issuer {
            return Err(LoginRefusal::unavailable("the issuer names itself otherwise than the setting"));
        }
        let is_secret = |url: &Url| url.scheme() == "https" || url.scheme() == self.address.scheme();
        let are_secret = is_secret(&metadata.authorization_endpoint)
            && is_secret(&metadata.token_endpoint)
            && is_secret(&metadata.jwks_uri)
            && metadata.end_session_endpoint.as_ref().is_none_or(is_secret);
        match are_secret {
            true => Ok(metadata),
            false => Err(LoginRefusal::unavailable("an endpoint of the issuer has no TLS")),
        }
    }
}

impl Metadata {
    /// Returns true if the client proves itself by HTTP Basic, which is the default.
    pub(super) fn takes_basic(&self) -> bool {
        let Some(methods) = &self.token_endpoint_auth_methods_supported else { return true };
        let has = |method: &str| methods.iter().any(|one| one == method);
        has(METHOD_BASIC) || !has(METHOD_POST)
    }
}

impl Known {
    /// Repeats a failure for a while, so that an issuer in trouble is asked at a bounded rate.
    fn check_failure(&self) -> Result<(), LoginRefusal> {
        match self.failed {
            Some((at, refusal)) if at.elapsed() < FAILURE_PAUSE => Err(refusal),
            _ => Ok(()),
        }
    }

    fn note<T>(&mut self, read: Result<T, LoginRefusal>) -> Result<Remembered<T>, LoginRefusal> {
        let now = Instant::now();
        self.failed = read.as_ref().err().map(|refusal| (now, *refusal));
        read.map(|value| Remembered { value: Arc::new(value), read_at: now })
    }
}

impl<T> Remembered<T> {
    fn fresh(known: Option<&Self>) -> Option<Arc<T>> {
        known.filter(|known| known.read_at.elapsed() < MEMORY).map(|known| known.value.clone())
    }
}

impl<T> Clone for Remembered<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), read_at: self.read_at }
    }
}

fn address<'de, D: Deserializer<'de>>(given: D) -> Result<Url, D::Error> {
    Url::parse(&String::deserialize(given)?).map_err(D::Error::custom)
}

fn address_or_none<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Url>, D::Error> {
    let text: Option<String> = Option::deserialize(given)?;
    text.map(|text| Url::parse(&text).map_err(D::Error::custom)).transpose()
}
