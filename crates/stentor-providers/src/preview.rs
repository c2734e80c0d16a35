//! Previews of requests, for a person who wants to see what a message becomes at a push service.

use http::{HeaderName, HeaderValue};
use stentor_http2::Endpoint;

/// Stands for the token of a device, which no reply shows.
pub(crate) const TOKEN_PLACE: &str = "{token}";
/// Stands for the secret that identifies the sender.
const SECRET_PLACE: &str = "…";

/// The request that a message causes for one device, without its token and without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPreview {
    /// Its URL.
    pub url: String,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body, before any encryption.
    pub body: String,
}

impl RequestPreview {
    /// Shows a request.
    pub(crate) fn new(url: String, headers: &[(HeaderName, HeaderValue)], body: &[u8]) -> Self {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let mut headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        headers.push(("authorization".to_owned(), SECRET_PLACE.to_owned()));
        Self { url, headers, body: String::from_utf8_lossy(body).into_owned() }
    }
}

/// Returns the URL of a path at an endpoint.
pub(crate) fn url_at(endpoint: &Endpoint, path: &str) -> String {
    let (scheme, usual) = if endpoint.cleartext { ("http", 80) } else { ("https", 443) };
    let name = endpoint.name();
    match endpoint.port == usual {
        true => format!("{scheme}://{name}{path}"),
        false => format!("{scheme}://{name}:{}{path}", endpoint.port),
    }
}
