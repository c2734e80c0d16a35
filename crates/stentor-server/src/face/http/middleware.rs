//! Middleware of all requests: the request id, and well-formed responses to panics and refusals.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tracing::Instrument;

use super::refusal::{Refusal, WriteRefusal};
use crate::service::{ErrorCode, Problem};
use crate::trace::OpenSpan;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Maximum length of a request id that is accepted from the caller.
const REQUEST_ID_MAX_BYTES: usize = 64;

/// Id of a request, as an extension of the request.
#[derive(Debug, Clone)]
pub(in crate::face) struct RequestId(pub(in crate::face) Arc<str>);

/// The `Accept` header of the request, as an extension of a refusal.
#[derive(Debug, Clone)]
pub(in crate::face) struct RequestedMedia(pub(in crate::face) HeaderValue);

/// Assigns a request id, maps panics and refusals to responses, and logs the request.
pub(super) async fn outer(State(write): State<WriteRefusal>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("-", MatchedPath::as_str);
    let method = method_of(request.method());
    let accept = request.headers().get(header::ACCEPT).cloned();
    request.extensions_mut().insert(RequestId(id.as_str().into()));
    let started = Instant::now();
    let span = tracing::info_span!("request", id = %id, method, route);
    let open = OpenSpan::of_request(request.headers());
    let work = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(span.clone());
    let mut response = OpenSpan::scope(open.as_ref(), work).await.unwrap_or_else(|_| panicked());
    let problem = problem_of(&response);
    if let Some(problem) = &problem {
        if let Some(accept) = accept {
            response.extensions_mut().insert(RequestedMedia(accept));
        }
        write(&mut response, problem, &id);
    }
    if let Some(open) = open {
        open.end_request(&id, method, route, response.status());
    }
    let _inside = span.enter();
    log(response.status(), started.elapsed(), problem.as_ref());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Returns the error for an unknown path.
pub(in crate::face) fn no_such_address() -> Problem {
    Problem::new(ErrorCode::NotFound, "there is no such address").with_hint("see /docs")
}

fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let fits = |id: &&str| {
        (1..=REQUEST_ID_MAX_BYTES).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    match given.filter(fits) {
        Some(id) => id.to_owned(),
        None => format!("req_{:016x}", rand::random::<u64>()),
    }
}

/// Returns the refusal in a response, or creates one for an error response of the framework.
fn problem_of(response: &Response) -> Option<Problem> {
    if let Some(Refusal(problem)) = response.extensions().get::<Refusal>() {
        return Some(problem.clone());
    }
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => {
            Some(Problem::new(ErrorCode::MethodNotAllowed, "this address knows other methods"))
        }
        status if status.is_client_error() && !is_ours(response) => {
            Some(Problem::new(ErrorCode::InvalidRequest, "the request cannot be read"))
        }
        _ => None,
    }
}

fn is_ours(response: &Response) -> bool {
    response.headers().contains_key(header::CONTENT_TYPE)
}

fn log(status: StatusCode, took: Duration, problem: Option<&Problem>) {
    let (status, micros) = (status.as_u16(), took.as_micros() as u64);
    let code = problem.map_or("", |problem| problem.code.as_str());
    match status {
        500.. => tracing::warn!(status, code, micros, "refused"),
        400.. => tracing::info!(status, code, micros, "refused"),
        _ => tracing::debug!(status, micros, "answered"),
    }
}

/// Returns the name of a known method. Others are the caller's own text and must not reach the log.
fn method_of(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("unknown")
}

fn panicked() -> Response {
    Refusal(failed()).into_response()
}

/// Returns the error for a request that caused a panic.
pub(in crate::face) fn failed() -> Problem {
    tracing::error!("a request made the server panic");
    Problem::new(ErrorCode::Internal, "the server failed at this request")
}

/// Returns the error for a request that exceeded its time limit.
pub(in crate::face) fn timed_out() -> Problem {
    Problem::new(ErrorCode::Unavailable, "the request took too long").with_hint(
        "repeat it with the same Idempotency-Key: a request that was executed is not executed again",
    )
}
