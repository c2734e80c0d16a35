//! The web console: files for a browser, and the sessions with which its pages call the REST face. It has no operation of its own.

mod files;
mod login;
mod session;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::map_response;
use axum::response::Response;

use super::Api;
use super::http::refusal::WriteRefusal;
use super::http::{EntryRule, LimitedRouter, Routes};
use super::rest;

/// Content security policy of all pages: scripts and styles in files of this server only, and no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of every response below `/console`.
const GUARDS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Builds the routes of the console; none if it is switched off.
pub(super) fn router(api: &Api) -> LimitedRouter {
    if !api.has_console() {
        return LimitedRouter::default();
    }
    let write: WriteRefusal = rest::write_refusal;
    let limited = |routes: Routes<Api>, rule| routes.around(guarded).limited(api, api.clone(), rule, write);
    let open = limited(files::routes(), EntryRule::Open).merge(limited(login::routes(), EntryRule::Open));
    open.merge(limited(session::routes(), EntryRule::Keyed))
}

fn guarded<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    router.layer(map_response(async |mut response: Response| {
        for (name, value) in GUARDS {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }))
}
