//! The API reference: OpenAPI as JSON, and a page that shows it without requests to other servers. Beside it stands the documentation, if
//! the operator names the folder of its site.

use std::path::Path;
use std::sync::LazyLock;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use serde_json::json;
use tower::ServiceExt as _;
use tower_http::services::ServeDir;

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

/// Content security policy of the documentation: no script and no style within a page, but for attributes of mdBook's tables. mdBook frames
/// its list of pages where scripts are off.
const SITE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; \
                           img-src 'self' data:; font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'self'";
/// Path of the documentation.
const SITE_PATH: &str = "/docs/";

/// Returns the routes with the reference of the API and the documentation.
pub(super) fn routes(api: &Api) -> Routes<Api> {
    let router = Routes::new().route("/openapi.json", get(document));
    if !api.has_docs() {
        return router;
    }
    let router = router
        .route("/", get(entrance).fallback(answer_nowhere))
        .route("/docs/reference", get(page))
        .route("/docs/errors", get(errors))
        .route(SCRIPT_PATH, get(script));
    match api.docs_dir() {
        None => router.route("/docs", get(page)),
        Some(_) => router
            .route("/docs", get(async || Redirect::temporary(SITE_PATH)))
            .route(SITE_PATH, get(site))
            .route("/docs/{*file}", get(site)),
    }
}

/// Responds with a file of the documentation.
async fn site(State(api): State<Api>, request: Request) -> Response {
    let headers = request.headers().clone();
    let file = match api.docs_dir() {
        Some(folder) => site_file(folder, request).await,
        None => None,
    };
    match file {
        Some(file) => ([(header::CONTENT_SECURITY_POLICY, SITE_POLICY)], file).into_response(),
        None => answer_nowhere(headers).await,
    }
}

/// Reads the requested file; `None` if there is none.
async fn site_file(folder: &Path, mut request: Request) -> Option<Response> {
    let path = request.uri().path().strip_prefix("/docs")?;
    *request.uri_mut() = path.parse::<Uri>().ok()?;
    let Ok(reply) = ServeDir::new(folder).precompressed_gzip().oneshot(request).await;
    // A folder below would be a redirect to a path without `/docs`: no page links to one.
    let is_file = reply.status().is_success() || reply.status() == StatusCode::NOT_MODIFIED;
    is_file.then(|| reply.into_response())
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
