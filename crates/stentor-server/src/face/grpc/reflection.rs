//! Server reflection: services and their descriptors, for clients without our `.proto` file. It needs no key, because `stentor contract
//! proto` prints the same.

use std::sync::OnceLock;

use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use stentor_wire::WireError;
use stentor_wire::protobuf::fields::{WireValue, put_field, put_number, read_delimited, read_key, skip};

use super::encoding::MessageEncoding;
use super::methods::{FILE, Method, PACKAGE, services};
use super::stream::{Messages, streamed};
use super::{descriptor, health, pieces, refused_type, request_id};
use crate::contract::description::description;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::refusal::Refusal;

/// Paths of both versions of the service, which share their messages.
pub(super) const PATHS: &[&str] = &[
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
/// Maximum size of a request, which contains only a name.
const QUESTION_MAX_BYTES: usize = 4_096;
/// Maximum number of requests in one call.
const QUESTIONS_MAX_COUNT: usize = 100;

/// A reflection request.
enum ReflectionQuestion<'a> {
    File(&'a str),
    Symbol(&'a str),
    Services,
    Other,
}

/// Responds to each request until the client ends the stream.
pub(super) async fn answer(State(_): State<Api>, request: Request) -> Result<Response, Refusal> {
    if let Some(refused) = refused_type(request.headers()) {
        return Ok(refused);
    }
    let (encoding, wanted) =
        (MessageEncoding::of_request(request.headers())?, MessageEncoding::of_reply(request.headers()));
    let request_id = request_id(request.extensions());
    let messages = Messages::of(pieces(request.into_body()), encoding, QUESTION_MAX_BYTES);
    let answers = unfold(Some((messages, QUESTIONS_MAX_COUNT)), async |state| {
        let (mut messages, left) = state?;
        let answer = messages.next().await?.and_then(|question| reply(&question));
        let left = left.checked_sub(1).filter(|_| answer.is_ok());
        Some((answer, left.map(|left| (messages, left))))
    });
    Ok(streamed(answers.boxed(), wanted, request_id))
}

fn reply(message: &Bytes) -> ServiceResult<Vec<u8>> {
    let unreadable = |error: WireError| Problem::new(ErrorCode::InvalidRequest, error.to_string());
    let mut out = Vec::new();
    put_field(2, message, &mut out);
    let (number, answer) = match question(message).map_err(unreadable)? {
        ReflectionQuestion::File(FILE) => (4, file()),
        ReflectionQuestion::Symbol(name) if is_known(name) => (4, file()),
        ReflectionQuestion::File(health::FILE) => (4, one(&health::file())),
        ReflectionQuestion::Symbol(name) if is_of_health(name) => (4, one(&health::file())),
        ReflectionQuestion::Services => (6, service_list()),
        ReflectionQuestion::File(_) | ReflectionQuestion::Symbol(_) => (7, error(5, "there is no such name")),
        ReflectionQuestion::Other => (7, error(12, "this request is not supported")),
    };
    put_field(number, &answer, &mut out);
    Ok(out)
}

fn question(mut message: &[u8]) -> Result<ReflectionQuestion<'_>, WireError> {
    let mut found = ReflectionQuestion::Other;
    while !message.is_empty() {
        let (number, wire) = read_key(&mut message)?;
        if wire != WireValue::Delimited {
            skip(wire, &mut message)?;
            continue;
        }
        let text = std::str::from_utf8(read_delimited(&mut message)?).unwrap_or_default();
        match number {
            3 => found = ReflectionQuestion::File(text),
            4 => found = ReflectionQuestion::Symbol(text),
            7 => found = ReflectionQuestion::Services,
            _ => {}
        }
    }
    Ok(found)
}

/// Returns true if a full name denotes a record, a service or a method.
fn is_known(name: &str) -> bool {
    let Some(name) = name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('.')) else { return false };
    let (first, method) = name.split_once('.').unwrap_or((name, ""));
    let has = |methods: &[Method]| method.is_empty() || methods.iter().any(|one| one.name == method);
    description().record(name).is_some()
        || services().iter().any(|service| service.name == first && has(&service.methods))
}

/// Returns true if a full name denotes the health service, one of its methods or one of its messages.
fn is_of_health(name: &str) -> bool {
    let is_method = || [health::CHECK, health::WATCH].iter().any(|path| path[1..].replace('/', ".") == name);
    name == health::SERVICE || health::MESSAGES.contains(&name) || is_method()
}

fn file() -> Vec<u8> {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    one(FILE.get_or_init(descriptor::file))
}

fn service_list() -> Vec<u8> {
    let own = services().into_iter().map(|service| format!("{PACKAGE}.{}", service.name));
    let mut out = Vec::new();
    for name in own.chain([health::SERVICE.to_owned()]) {
        put_field(1, &one(name.as_bytes()), &mut out);
    }
    out
}

fn one(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_field(1, value, &mut out);
    out
}

fn error(code: u64, why: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(1, code, &mut out);
    put_field(2, why.as_bytes(), &mut out);
    out
}
