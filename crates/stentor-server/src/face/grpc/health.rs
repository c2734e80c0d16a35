//! The gRPC health protocol (grpc.health.v1), for load balancers and probes. Like `/readyz`, it needs no key.

use axum::extract::{Request, State};
use axum::response::Response;
use stentor_wire::WireError;
use stentor_wire::protobuf::fields::{WireValue, put_field, put_number, read_delimited, read_key, skip};

use super::encoding::MessageEncoding;
use super::methods::{PACKAGE, services};
use super::watch::{RunningWatch, WatchSubject, WatchedState};
use super::{only_message, refused_type, written};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::RequestPermit;
use crate::face::http::refusal::Refusal;
use crate::shares::ShareExhausted;

/// The service.
pub(super) const SERVICE: &str = "grpc.health.v1.Health";
/// Path of a single check.
pub(super) const CHECK: &str = "/grpc.health.v1.Health/Check";
/// Path of the watch.
pub(super) const WATCH: &str = "/grpc.health.v1.Health/Watch";
/// File name of its description.
pub(super) const FILE: &str = "grpc/health/v1/health.proto";
/// Its messages, as reflection names them.
pub(super) const MESSAGES: [&str; 2] =
    ["grpc.health.v1.HealthCheckRequest", "grpc.health.v1.HealthCheckResponse"];

/// Maximum size of a request, which contains only a name.
const QUESTION_MAX_BYTES: usize = 4_096;

/// Numbers of the protocol's serving states.
const SERVING: u64 = 1;
const NOT_SERVING: u64 = 2;
const SERVICE_UNKNOWN: u64 = 3;

/// Responds with the present state, or with `NOT_FOUND` for an unknown service.
pub(super) async fn check(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    if let Some(refused) = refused_type(request.headers()) {
        return Ok(refused);
    }
    let encoding = MessageEncoding::of_reply(request.headers());
    if !is_known(&asked(request).await?) {
        return Err(Problem::not_found("service").into());
    }
    Ok(written(&message(state(&api).await), encoding))
}

/// Responds with the present state and with each change of it, also for a service that is unknown.
pub(super) async fn watch(State(api): State<Api>, request: Request) -> Result<Response, Refusal> {
    if let Some(refused) = refused_type(request.headers()) {
        return Ok(refused);
    }
    let owner = RequestPermit::of(request.extensions())?.owner();
    let place = api.limits().health_watches.take(owner, 1).map_err(|_: ShareExhausted| {
        Problem::new(ErrorCode::RateLimited, "as many watches of health are open as are allowed at once")
    })?;
    let (parts, body) = request.into_parts();
    let head = Request::from_parts(parts.clone(), body);
    let is_known = is_known(&asked(head).await?);
    Ok(RunningWatch::new(WatchedHealth { api, is_known }, &parts, place)?.answer().await?)
}

/// Watched health of the server, for one requested service.
struct WatchedHealth {
    api: Api,
    is_known: bool,
}

impl WatchSubject for WatchedHealth {
    async fn look(&mut self) -> ServiceResult<WatchedState> {
        let state = if self.is_known { state(&self.api).await } else { SERVICE_UNKNOWN };
        Ok(WatchedState { message: message(state), is_last: false })
    }
}

async fn state(api: &Api) -> u64 {
    if api.server_status().readiness().await.is_ready() { SERVING } else { NOT_SERVING }
}

fn message(state: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(1, state, &mut out);
    out
}

/// Returns true for the empty name, which stands for the whole server, and for the names of its services.
fn is_known(name: &str) -> bool {
    let own = name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('.'));
    name.is_empty() || own.is_some_and(|own| services().iter().any(|one| one.name == own))
}

async fn asked(request: Request) -> ServiceResult<String> {
    let message = only_message(request, QUESTION_MAX_BYTES).await?;
    let unreadable = |error: WireError| Problem::new(ErrorCode::InvalidRequest, error.to_string());
    name(&message).map_err(unreadable)
}

fn name(mut message: &[u8]) -> Result<String, WireError> {
    let mut found = String::new();
    while !message.is_empty() {
        match read_key(&mut message)? {
            (1, WireValue::Delimited) => {
                found = String::from_utf8_lossy(read_delimited(&mut message)?).into_owned();
            }
            (_, wire) => skip(wire, &mut message)?,
        }
    }
    Ok(found)
}

/// Describes the service as in the original (github.com/grpc/grpc-proto, grpc/health/v1/health.proto).
pub(super) fn file() -> Vec<u8> {
    let mut out = Vec::new();
    put_field(1, FILE.as_bytes(), &mut out);
    put_field(2, b"grpc.health.v1", &mut out);
    let mut request = named("HealthCheckRequest");
    put_field(2, &field("service", 9, None), &mut request);
    put_field(4, &request, &mut out);
    let mut response = named("HealthCheckResponse");
    let states = ".grpc.health.v1.HealthCheckResponse.ServingStatus";
    put_field(2, &field("status", 14, Some(states)), &mut response);
    put_field(4, &serving_states(), &mut response);
    put_field(4, &response, &mut out);
    let mut service = named("Health");
    put_field(2, &method("Check", false), &mut service);
    put_field(2, &method("Watch", true), &mut service);
    put_field(6, &service, &mut out);
    put_field(12, b"proto3", &mut out);
    out
}

fn serving_states() -> Vec<u8> {
    let mut out = named("ServingStatus");
    for (number, name) in (0..).zip(["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"]) {
        let mut value = named(name);
        put_number(2, number, &mut value);
        put_field(2, &value, &mut out);
    }
    out
}

fn method(name: &str, is_stream: bool) -> Vec<u8> {
    let mut out = named(name);
    put_field(2, b".grpc.health.v1.HealthCheckRequest", &mut out);
    put_field(3, b".grpc.health.v1.HealthCheckResponse", &mut out);
    if is_stream {
        put_number(6, 1, &mut out);
    }
    out
}

/// Describes a single field with the number 1.
fn field(name: &str, kind: u64, refers: Option<&str>) -> Vec<u8> {
    let mut out = named(name);
    put_number(3, 1, &mut out);
    put_number(4, 1, &mut out);
    put_number(5, kind, &mut out);
    if let Some(refers) = refers {
        put_field(6, refers.as_bytes(), &mut out);
    }
    put_field(10, name.as_bytes(), &mut out);
    out
}

fn named(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_field(1, name.as_bytes(), &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_and_its_services_have_a_health_and_nothing_else_has() {
        for known in ["", "stentor.v1.Devices", "stentor.v1.ServerStatus"] {
            assert!(is_known(known), "{known}");
        }
        for unknown in ["stentor.v1.", "stentor.v1.Device", "Devices", "grpc.health.v1.Health"] {
            assert!(!is_known(unknown), "{unknown}");
        }
    }
}
