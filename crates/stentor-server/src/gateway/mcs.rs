//! HTTP requests of MCS clients before they connect: check-in, registration, and the registration of web clients.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use axum::routing::{patch, post};
use stentor_gateway::Gateway;
use stentor_gateway::mcs::{self, McsRegistrar, McsReply, McsWebCaller};

use crate::arrival_limiter::{ArrivalLimiter, ArrivalRate};
use crate::contract::Problem;
use crate::face::Api;
use crate::face::http::origin::origin_of;
use crate::face::http::refusal::{Refusal, WriteRefusal};
use crate::face::http::{EntryRule, LimitedRouter, Routes, body};
use crate::owner::SourceNetwork;

/// Largest body, in bytes.
const BODY_MAX_BYTES: usize = 64 << 10;
/// The header with which a web client sends an app's key.
const KEY: &str = "x-goog-api-key";
/// CORS headers: web clients in browsers may send requests from any site.
const CROSS_ORIGIN: [(&str, &str); 4] = [
    ("access-control-allow-origin", "*"),
    ("access-control-allow-methods", "POST, PATCH, DELETE, OPTIONS"),
    ("access-control-allow-headers", "*, authorization"),
    ("access-control-max-age", "3600"),
];

/// The state of the routes.
#[derive(Clone)]
struct McsRoutes {
    api: Api,
    gateway: Gateway,
    registrar: Arc<dyn McsRegistrar>,
    check_ins: Arc<ArrivalLimiter<SourceNetwork>>,
}

/// Builds the routes. `registrar` decides which apps accept a registration, and `check_ins` limits the rate of check-ins of one address.
pub(super) fn router(
    api: &Api,
    gateway: &Gateway,
    registrar: Arc<dyn McsRegistrar>,
    check_ins: ArrivalRate,
) -> LimitedRouter {
    let write: WriteRefusal = write;
    let (gateway, check_ins) = (gateway.clone(), Arc::new(ArrivalLimiter::new(check_ins)));
    let state = McsRoutes { api: api.clone(), gateway, registrar, check_ins };
    let installations = "/v1/projects/{project}/installations";
    let renewal = "/v1/projects/{project}/installations/{installation}/authTokens:generate";
    let registrations = "/v1/projects/{project}/registrations";
    let registration = "/v1/projects/{project}/registrations/{registration}";
    Routes::new()
        .route("/checkin", post(check_in))
        .route("/c2dm/register3", post(register))
        .route("/fcm/connect/subscribe", post(subscribe).options(preflight))
        .route(installations, post(install).options(preflight))
        .route(renewal, post(renew_installation).options(preflight))
        .route(registrations, post(register_web).options(preflight))
        .route(registration, patch(change_web).delete(unregister_web).options(preflight))
        // No key is known before the body is read, so that all is charged to the address.
        .limited(api, state, EntryRule::Open, write)
}

/// Handles a check-in. It has no key, so that its rate can be limited by address only.
async fn check_in(State(routes): State<McsRoutes>, request: Request) -> Result<Response<Body>, Refusal> {
    let (parts, body) = request.into_parts();
    let address = origin_of(&parts, &routes.api).address;
    // A request without an address did not come from a connection.
    if let Some(Err(wait)) = address.map(|address| routes.check_ins.take(address.into())) {
        return Ok(too_many(wait));
    }
    let body = body::read(Request::from_parts(parts, body), BODY_MAX_BYTES).await?;
    Ok(respond(mcs::check_in(&routes.gateway, &body)))
}

/// A body within its limits.
struct SmallBody(Bytes);

impl FromRequest<McsRoutes> for SmallBody {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &McsRoutes) -> Result<Self, Refusal> {
        Ok(Self(body::read(request, BODY_MAX_BYTES).await?))
    }
}

/// Writes a refusal as plain text, because these clients know no other form; browsers may read it as well.
fn write(response: &mut Response<Body>, problem: &Problem, _: &str) {
    let status = response.status();
    *response = allow_browsers(plain(status, problem.detail.clone()));
    if let Some(seconds) = problem.retry_after_seconds {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}

fn too_many(wait: Duration) -> Response<Body> {
    let text = "too many programs of this address check in at once: try again after the time in Retry-After";
    let mut response = plain(StatusCode::TOO_MANY_REQUESTS, text);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from((wait.as_secs_f64().ceil() as u64).max(1)));
    response
}

fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

async fn register(
    State(routes): State<McsRoutes>,
    headers: HeaderMap,
    SmallBody(body): SmallBody,
) -> Response<Body> {
    let authorization = text(&headers, AUTHORIZATION.as_str());
    respond(mcs::register(&routes.gateway, routes.registrar.as_ref(), authorization, &body).await)
}

async fn subscribe(State(routes): State<McsRoutes>, SmallBody(body): SmallBody) -> Response<Body> {
    respond(mcs::subscribe(&routes.gateway, routes.registrar.as_ref(), &body).await)
}

async fn install(
    State(routes): State<McsRoutes>,
    Path(project): Path<String>,
    headers: HeaderMap,
    SmallBody(body): SmallBody,
) -> Response<Body> {
    let (gateway, registrar) = (&routes.gateway, routes.registrar.as_ref());
    respond(mcs::install(gateway, registrar, &project, text(&headers, KEY), &body).await)
}

async fn renew_installation(
    State(routes): State<McsRoutes>,
    Path((project, _)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response<Body> {
    let (gateway, registrar) = (&routes.gateway, routes.registrar.as_ref());
    let authorization = text(&headers, AUTHORIZATION.as_str());
    respond(mcs::renew_installation(gateway, registrar, &project, authorization).await)
}

async fn register_web(
    State(routes): State<McsRoutes>,
    Path(project): Path<String>,
    headers: HeaderMap,
    SmallBody(body): SmallBody,
) -> Response<Body> {
    let (gateway, registrar) = (&routes.gateway, routes.registrar.as_ref());
    respond(mcs::register_web(gateway, registrar, &project, web_caller(&headers), &body).await)
}

/// Updates a registration; the endpoint in the body identifies it.
async fn change_web(
    routes: State<McsRoutes>,
    Path((project, _)): Path<(String, String)>,
    headers: HeaderMap,
    SmallBody(body): SmallBody,
) -> Response<Body> {
    register_web(routes, Path(project), headers, SmallBody(body)).await
}

async fn unregister_web(
    State(routes): State<McsRoutes>,
    Path((project, token)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response<Body> {
    let (gateway, registrar) = (&routes.gateway, routes.registrar.as_ref());
    respond(mcs::unregister_web(gateway, registrar, &project, web_caller(&headers), &token).await)
}

async fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    allow_browsers(response)
}

fn web_caller(headers: &HeaderMap) -> McsWebCaller<'_> {
    McsWebCaller { key: text(headers, KEY), installation: text(headers, mcs::INSTALLATION_HEADER) }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn respond(reply: McsReply) -> Response<Body> {
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    allow_browsers(response)
}

fn allow_browsers(mut response: Response<Body>) -> Response<Body> {
    for (name, value) in CROSS_ORIGIN {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
