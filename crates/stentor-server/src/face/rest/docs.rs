//! The reference: OpenAPI as JSON, and a page that reads it without any other server.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use serde_json::json;

use super::openapi::openapi_json;
use crate::face::Api;

const SCRIPT_PATH: &str = "/docs/scalar.js";
/// What the page may load: nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src blob:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Returns the routes that describe all others.
pub(super) fn routes(with_page: bool) -> Router<Api> {
    let router = Router::new().route("/openapi.json", get(document));
    if !with_page {
        return router;
    }
    router.route("/docs", get(page)).route("/docs/errors", get(errors)).route(SCRIPT_PATH, get(script))
}

async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json())
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

async fn errors() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], super::error::errors_markdown())
}

async fn script() -> impl IntoResponse {
    let headers: [(HeaderName, &str); 2] = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=86400"),
    ];
    (headers, scalar_api_reference::get_asset("scalar.js").unwrap_or_default())
}
