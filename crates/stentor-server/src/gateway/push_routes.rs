//! The state of the Web Push routes, and their refusals.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use stentor_core::id::{AppId, DeviceId};
use stentor_gateway::Gateway;
use stentor_gateway::autopush::OpenApps;
use stentor_gateway::web_push::{PushRate, PushRates, PushRefusal};

use crate::contract::{ErrorCode, Problem};
use crate::face::Api;
use crate::listen::Certificate;
use crate::shares::Shares;

/// Longest host name in a URL: with it a URL stays below 1,000 bytes.
const HOST_MAX_BYTES: usize = 255;
/// Rate at which devices of one app may register themselves.
const REGISTRATION_RATE: PushRate = PushRate { burst_count: 600, per_minute: 600 };
/// Most senders that wait for receipts.
const RECEIPT_WAITS_MAX_COUNT: usize = 16_384;
/// Share of these that the senders of one app may take of the remainder that others leave.
const RECEIPT_WAITS_APP_PERCENT: usize = 50;
/// The default of Retry-After.
const RETRY_SECONDS: u32 = 5;

/// The parts of the routes.
pub(crate) struct PushParts {
    /// The API with the operations.
    pub(crate) api: Api,
    /// The gateway.
    pub(crate) gateway: Gateway,
    /// The server's address as others see it, such as `https://push.example`; if absent, the host of the request is used.
    pub(crate) public_url: Option<String>,
    /// The server's own address and names.
    pub(crate) own: OwnNames,
}

/// The address and names of a server as set by its operator, independent of the claims of callers.
#[derive(Clone)]
pub(crate) struct OwnNames {
    /// The address of the listener.
    pub(crate) address: SocketAddr,
    /// The certificate, if TLS is used.
    pub(crate) certificate: Option<Arc<Certificate>>,
}

impl OwnNames {
    /// Returns true if an origin is an address of the listener.
    fn is_listening_at(&self, origin: &str) -> bool {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        OriginParts::read(origin).is_some_and(|origin| {
            origin.scheme.eq_ignore_ascii_case(scheme)
                && origin.port == self.address.port()
                && self.is_here(origin.host)
        })
    }

    /// Returns true if an origin is covered by the server's certificate, at any port: a name that the operator has proven to own.
    fn is_certified(&self, origin: &str) -> bool {
        let Some(certificate) = &self.certificate else { return false };
        OriginParts::read(origin).is_some_and(|origin| {
            origin.scheme.eq_ignore_ascii_case("https") && certificate.is_for(origin.host)
        })
    }

    fn is_here(&self, host: &str) -> bool {
        let own = self.address.ip().to_canonical();
        let is_local = own.is_loopback() || own.is_unspecified();
        match host.parse::<IpAddr>().map(|named| named.to_canonical()) {
            Ok(named) => named == own || (own.is_unspecified() && named.is_loopback()),
            Err(_) => is_local && host.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// The state of the routes; clones share it.
#[derive(Clone)]
pub(super) struct PushRoutes(Arc<PushShared>);

/// The shared state.
pub(super) struct PushShared {
    pub(super) parts: PushParts,
    pub(super) apps: Arc<OpenApps>,
    pub(super) registrations: Arc<PushRates<AppId>>,
    /// The rate limits of subscriptions.
    pub(super) rates: PushRates<DeviceId>,
    /// Places for senders that wait for receipts.
    pub(super) receipt_waits: Arc<Shares>,
}

impl std::ops::Deref for PushRoutes {
    type Target = PushShared;

    fn deref(&self) -> &PushShared {
        &self.0
    }
}

impl PushRoutes {
    pub(super) fn new(parts: PushParts) -> Self {
        let apps = Arc::new(OpenApps::new(parts.gateway.store().clone()));
        let registrations = Arc::new(PushRates::new(REGISTRATION_RATE));
        let receipt_waits = Shares::new(RECEIPT_WAITS_MAX_COUNT, RECEIPT_WAITS_APP_PERCENT, 1);
        let rates = PushRates::new(PushRate::DEFAULT);
        Self(Arc::new(PushShared { parts, apps, registrations, rates, receipt_waits }))
    }
}

impl PushShared {
    /// Returns the base of the server's URLs; `None` if the request names no host.
    pub(super) fn base(&self, parts: &Parts) -> Option<String> {
        if let Some(url) = &self.parts.public_url {
            return Some(url.trim_end_matches('/').to_owned());
        }
        let scheme = if self.parts.own.certificate.is_some() { "https" } else { "http" };
        Some(format!("{scheme}://{}", host(parts)?))
    }

    /// Returns true if an origin is this server's. The claims of the request do not count, because the sender controls them.
    pub(super) fn is_ours(&self, origin: &str) -> bool {
        use stentor_gateway::web_push::is_origin;
        match &self.parts.public_url {
            Some(url) => is_origin(origin, origin_of(url)) || self.parts.own.is_certified(origin),
            None => self.parts.own.is_listening_at(origin) || self.parts.own.is_certified(origin),
        }
    }
}

/// The parts of an origin (RFC 6454).
struct OriginParts<'a> {
    scheme: &'a str,
    host: &'a str,
    port: u16,
}

impl<'a> OriginParts<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.trim_end_matches('/').split_once("://")?;
        let usual_port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (rest, usual_port),
        };
        Some(Self { scheme, host: host.trim_matches(['[', ']']), port })
    }
}

/// Returns scheme, host and port of a URL.
fn origin_of(url: &str) -> &str {
    let after = url.find("://").map_or(0, |place| place + 3);
    let end = url[after..].find('/').map_or(url.len(), |place| after + place);
    &url[..end]
}

fn host(parts: &Parts) -> Option<&str> {
    let named = text(&parts.headers, "host").or_else(|| parts.uri.authority().map(|named| named.as_str()))?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
    let fits = (1..=HOST_MAX_BYTES).contains(&named.len()) && named.bytes().all(is_letter);
    fits.then_some(named)
}

/// Returns a header as text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the response of a refusal.
pub(super) fn refused(refusal: &PushRefusal) -> Response {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], refusal.body()).into_response();
    let headers = response.headers_mut();
    if let Some(seconds) = refusal.retry_after_seconds() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::GONE {
        // An ended subscription stays ended: senders need not retry, and the answer may be cached, but not forever.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=86400"));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("vapid"));
    }
    response
}

/// Writes a problem of the server as a refusal of Web Push.
pub(super) fn write(response: &mut Response, problem: &Problem, _: &str) {
    *response = refused(&refusal_of(problem));
}

/// Returns the Web Push refusal for a problem of the server.
pub(super) fn refusal_of(problem: &Problem) -> PushRefusal {
    let seconds = problem.retry_after_seconds.unwrap_or(RETRY_SECONDS);
    match problem.code {
        ErrorCode::RateLimited => PushRefusal::TooMany(seconds),
        // The app may get a credential for its devices again, so that the subscription has not ended.
        ErrorCode::QueueFull | ErrorCode::Unavailable | ErrorCode::Conflict => {
            PushRefusal::Unavailable(seconds)
        }
        ErrorCode::NotFound => PushRefusal::NoSuchUrl,
        ErrorCode::MethodNotAllowed => PushRefusal::WrongMethod,
        ErrorCode::PayloadTooLarge => PushRefusal::TooLarge,
        _ => PushRefusal::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_ends_before_the_path() {
        for url in ["https://push.example", "https://push.example/", "https://push.example/a/b"] {
            assert_eq!(origin_of(url), "https://push.example");
        }
    }

    #[test]
    fn a_server_is_what_it_listens_on_and_nothing_that_a_caller_says() {
        let own =
            |address: &str| OwnNames { address: address.parse().expect("an address"), certificate: None };
        for (address, origin, is_own) in [
            ("127.0.0.1:80", "http://127.0.0.1", true),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/", true),
            ("127.0.0.1:8080", "http://localhost:8080", true),
            ("[::1]:8080", "http://[::1]:8080", true),
            ("0.0.0.0:8080", "http://127.0.0.1:8080", true),
            ("192.0.2.7:8080", "http://192.0.2.7:8080", true),
            ("192.0.2.7:8080", "http://localhost:8080", false),
            ("127.0.0.1:8080", "https://127.0.0.1:8080", false),
            ("127.0.0.1:8080", "http://127.0.0.1", false),
            ("0.0.0.0:8080", "http://192.0.2.7:8080", false),
            ("127.0.0.1:80", "https://evil.example", false),
            ("127.0.0.1:80", "evil.example", false),
        ] {
            assert_eq!(own(address).is_listening_at(origin), is_own, "{address} {origin}");
        }
    }

    #[test]
    fn a_host_of_other_letters_is_no_host() {
        for (named, is_host) in
            [("push.example:8443", true), ("[::1]:80", true), ("a/b", false), ("a b", false)]
        {
            let request = axum::http::Request::builder().header("host", named).body(()).expect("a request");
            assert_eq!(host(&request.into_parts().0).is_some(), is_host, "{named}");
        }
    }
}
