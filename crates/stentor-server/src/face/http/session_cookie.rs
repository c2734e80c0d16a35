//! The cookies of the console. That of a session authenticates requests to the REST face; a change must also prove that it comes from a
//! page of the session, because browsers send cookies with requests of any page.

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};

use super::headers::header_text;
use super::request_permit::RequestPermit;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::Api;
use crate::service::ConsoleSession;

/// The cookie of a session. Browsers send it with requests of pages of this server only.
pub(in crate::face) const SESSION_COOKIE: ConsoleCookie =
    ConsoleCookie { name: "stentor_console", tls_name: "__Host-stentor_console", same_site: "Strict" };
/// The cookie of a login at the identity provider, from where a link leads back.
pub(in crate::face) const LOGIN_COOKIE: ConsoleCookie =
    ConsoleCookie { name: "stentor_login", tls_name: "__Host-stentor_login", same_site: "Lax" };
const CSRF_HEADER: &str = "x-stentor-csrf";
/// Says which page makes a browser's request; scripts cannot set it.
const SITE_HEADER: &str = "sec-fetch-site";

/// A cookie that scripts cannot read.
#[derive(Debug, Clone, Copy)]
pub(in crate::face) struct ConsoleCookie {
    name: &'static str,
    /// Name over TLS: browsers accept it from this host over TLS only, for all paths.
    tls_name: &'static str,
    same_site: &'static str,
}

/// Returns the session of a request, if it has a cookie. Rejects a change that does not come from a page of the session.
pub(in crate::face) async fn session_of(parts: &Parts, api: &Api) -> ServiceResult<Option<ConsoleSession>> {
    // An open-ended response outlives its session, and some hand messages over, which no read may do.
    let lasts = RequestPermit::of(&parts.extensions)?.lasts();
    let Some(token) = SESSION_COOKIE.value(&parts.headers, api).filter(|_| api.has_console() && !lasts)
    else {
        return Ok(None);
    };
    require_own_page(&parts.headers)?;
    let session = api.service().session(token).await?;
    if !parts.method.is_safe() {
        let proof = header_text(&parts.headers, CSRF_HEADER)?.unwrap_or_default();
        api.service().require_csrf_token(&session, proof)?;
    }
    Ok(Some(session))
}

/// Rejects a browser's request that another site or origin makes.
pub(in crate::face) fn require_own_page(headers: &HeaderMap) -> ServiceResult<()> {
    match header_text(headers, SITE_HEADER)? {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(Problem::new(ErrorCode::Forbidden, "the request comes from a page of another origin")),
    }
}

impl ConsoleCookie {
    /// Returns a header that sets the cookie, or removes it with an empty token.
    pub(in crate::face) fn set(
        &self,
        headers: &HeaderMap,
        api: &Api,
        token: &str,
        life: Duration,
    ) -> ServiceResult<HeaderValue> {
        let secure = if is_encrypted(headers, api) { "; Secure" } else { "" };
        let (name, same_site, seconds) = (self.name(headers, api), self.same_site, life.as_secs());
        let text =
            format!("{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}");
        HeaderValue::try_from(text)
            .map_err(|_| Problem::new(ErrorCode::Internal, "the cookie cannot be written"))
    }

    /// Returns the token of a request.
    pub(in crate::face) fn value<'a>(&self, headers: &'a HeaderMap, api: &Api) -> Option<&'a str> {
        let name = self.name(headers, api);
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find_map(|(key, value)| (key == name).then_some(value))
    }

    fn name(&self, headers: &HeaderMap, api: &Api) -> &'static str {
        if is_encrypted(headers, api) { self.tls_name } else { self.name }
    }
}

/// Returns true if the browser speaks TLS, to this server or to a proxy that says so. A false word changes only the caller's own cookie.
fn is_encrypted(headers: &HeaderMap, api: &Api) -> bool {
    let forwarded = headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
    forwarded || api.is_encrypted()
}
