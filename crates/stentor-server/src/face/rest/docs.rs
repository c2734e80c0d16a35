//! The API reference: OpenAPI as JSON, and a page that shows it without requests to other servers.

use std::sync::LazyLock;

use axum::Extension;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use serde_json::json;

use super::openapi::openapi_json;
use crate::face::Api;
use crate::face::http::Routes;
use crate::face::http::held_reply::StaticReply;
use crate::face::nowhere::answer_nowhere;

const SCRIPT_PATH: &str = "/docs/scalar.js";
/// Content security policy of the page: no resources from other origins.
const POLICY: &str = "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src blob:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Content security policy of a page without scripts.
const PLAIN_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the routes with the reference of the API.
pub(super) fn routes(with_page: bool) -> Routes<Api> {
    let router = Routes::new().route("/openapi.json", get(document));
    if !with_page {
        return router;
    }
    router
        .route("/", get(entrance).fallback(answer_nowhere))
        .route("/docs", get(page))
        .route("/docs/errors", get(errors))
        .route(SCRIPT_PATH, get(script))
}

/// Redirects a browser to the reference. Other clients get an error.
async fn entrance(headers: HeaderMap) -> Response {
    match is_browser(&headers) {
        true => Redirect::temporary("/docs").into_response(),
        false => answer_nowhere(headers).await,
    }
}

/// Returns true if the client is a browser: browsers accept HTML explicitly, programs accept anything.
fn is_browser(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.any(|line| line.to_ascii_lowercase().contains("text/html"))
}

async fn document() -> impl IntoResponse {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| openapi_json().into());
    (Extension(StaticReply), [(header::CONTENT_TYPE, "application/json")], TEXT.clone())
}

async fn page() -> impl IntoResponse {
    let configuration = json!({
        "url": "/openapi.json",
        "withDefaultFonts": false,
        "telemetry": false,
        "hideClientButton": true,
        "showDeveloperTools": "never",
        "agent": { "disabled": true },
        "mcp": { "disabled": true },
    });
    let page = scalar_api_reference::scalar_html(&configuration, Some(SCRIPT_PATH));
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(page))
}

/// Responds with the list of error codes: to browsers as a page with an anchor per code, to which the types of refusals link, and to others
/// as text.
async fn errors(headers: HeaderMap) -> Response {
    static PAGE: LazyLock<Bytes> = LazyLock::new(|| super::error::errors_html().into());
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| super::error::errors_markdown().into());
    let vary = (header::VARY, HeaderValue::from_static("accept"));
    if is_browser(&headers) {
        let policy = (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PLAIN_POLICY));
        return (Extension(StaticReply), [vary, policy], Html(PAGE.clone())).into_response();
    }
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/markdown; charset=utf-8"));
    (Extension(StaticReply), [vary, kind], TEXT.clone()).into_response()
}

async fn script() -> impl IntoResponse {
    let headers: [(HeaderName, &str); 2] = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=86400"),
    ];
    // Several megabytes: each request would otherwise copy them.
    static SCRIPT: LazyLock<Bytes> =
        LazyLock::new(|| scalar_api_reference::get_asset("scalar.js").unwrap_or_default().into());
    (Extension(StaticReply), headers, SCRIPT.clone())
}
