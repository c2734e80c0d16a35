//! The control port: plain HTTP/1.1, for scripts, tests and test devices.

use super::Control;
use crate::device::{DeviceMessage, TokenRegistration};
use crate::error::EmulatorError;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

type ControlBody = UnsyncBoxBody<Bytes, Infallible>;
type ControlRefusal = (StatusCode, String);

/// A running control port.
pub(super) struct ControlPort {
    address: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ControlPort {
    pub(super) async fn open(address: SocketAddr, control: Control) -> Result<Self, EmulatorError> {
        let fail = |source| EmulatorError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let port = Self { address, stop: CancellationToken::new(), tasks: TaskTracker::new() };
        let accept = accept_all(listener, control, port.stop.clone(), port.tasks.clone());
        port.tasks.spawn(port.stop.clone().run_until_cancelled_owned(accept));
        Ok(port)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for ControlPort {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept_all(listener: TcpListener, control: Control, stop: CancellationToken, tasks: TaskTracker) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // An accept fails when its client has gone, or when there is no file descriptor: other tasks must run to release one.
            tokio::task::yield_now().await;
            continue;
        };
        let control = control.clone();
        let handler = service_fn(move |request| {
            let control = control.clone();
            async move { Ok::<_, Infallible>(answer(&control, request).await) }
        });
        let serve = async move {
            // A client that breaks off ends only its own connection.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), handler)
                .await;
        };
        tasks.spawn(stop.clone().run_until_cancelled_owned(serve));
    }
}

async fn answer(control: &Control, request: Request<Incoming>) -> Response<ControlBody> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return failure((StatusCode::BAD_REQUEST, error.to_string())),
    };
    if head.method == Method::GET && head.uri.path() == "/messages" {
        return messages(control, head.uri.query()).await.unwrap_or_else(failure);
    }
    route(control, &head.method, head.uri.path(), &body).unwrap_or_else(failure)
}

fn route(
    control: &Control,
    method: &Method,
    path: &str,
    body: &[u8],
) -> Result<Response<ControlBody>, ControlRefusal> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let own = control.routes.as_ref().and_then(|routes| routes.route(method.as_str(), &segments, body));
    if let Some(answer) = own {
        return answer.map(|value| reply(&value));
    }
    match (method.as_str(), segments.as_slice()) {
        ("GET", ["healthz"]) => Ok(reply(&json!({"status": "ok"}))),
        ("GET", ["counts"]) => Ok(reply(&control.sums())),
        // A token in base64 may have slashes.
        ("GET", ["tokens", token @ ..]) => Ok(reply(&control.counts(&token.join("/")))),
        ("GET", ["policy"]) => Ok(reply(&control.context.policy.judge().policy)),
        ("PUT", ["policy"]) => {
            let refuse = |error: EmulatorError| (StatusCode::BAD_REQUEST, error.to_string());
            control.set_policy(parse(body)?).map_err(refuse)?;
            Ok(reply(&json!({})))
        }
        ("POST", ["reset"]) => {
            control.reset().map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
            Ok(reply(&json!({})))
        }
        ("POST", ["fault"]) => {
            control.context.faults.inject(parse(body)?);
            Ok(reply(&json!({})))
        }
        ("POST", ["device", "register"]) => {
            // A script may send no body at all.
            let registration: TokenRegistration =
                if body.is_empty() { TokenRegistration::default() } else { parse(body)? };
            Ok(reply(&json!({"token": control.devices.register(registration)})))
        }
        ("POST", ["device", token, "expire"]) => expire(control, token, body),
        ("POST", ["device", token, "replace"]) => {
            let registration: TokenRegistration =
                if body.is_empty() { TokenRegistration::default() } else { parse(body)? };
            let new = control.devices.replace(token, registration).ok_or_else(unknown_device)?;
            Ok(reply(&json!({"token": new})))
        }
        ("GET", ["device", token, "messages"]) => {
            control.devices.listen(token).map(stream_messages).ok_or_else(unknown_device)
        }
        _ => Err((StatusCode::NOT_FOUND, format!("nothing at {method} {path}"))),
    }
}

/// Shows the kept messages behind `after`. Waits up to `wait_ms` for one if there is none yet.
async fn messages(control: &Control, query: Option<&str>) -> Result<Response<ControlBody>, ControlRefusal> {
    let (mut after, mut wait) = (0, Duration::ZERO);
    for field in query.unwrap_or_default().split('&').filter(|field| !field.is_empty()) {
        let refusal =
            || (StatusCode::BAD_REQUEST, "the query takes after=NUMBER and wait_ms=NUMBER".to_owned());
        let (name, value) = field.split_once('=').ok_or_else(refusal)?;
        let value = value.parse().map_err(|_| refusal())?;
        match name {
            "after" => after = value,
            "wait_ms" => wait = Duration::from_millis(value),
            _ => return Err(refusal()),
        }
    }
    let unkept = || (StatusCode::NOT_FOUND, "no messages are kept: start with --keep-messages".to_owned());
    control.devices.messages_behind(after, wait).await.map(|page| reply(&page)).ok_or_else(unkept)
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Expiry {
    since_ms: Option<u64>,
}

fn expire(control: &Control, token: &str, body: &[u8]) -> Result<Response<ControlBody>, ControlRefusal> {
    let expiry: Expiry = if body.is_empty() { Expiry::default() } else { parse(body)? };
    if control.devices.expire(token, expiry.since_ms) { Ok(reply(&json!({}))) } else { Err(unknown_device()) }
}

fn unknown_device() -> ControlRefusal {
    (StatusCode::NOT_FOUND, "no device has registered with this token".to_owned())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ControlRefusal> {
    serde_json::from_slice(body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

fn reply(value: &impl serde::Serialize) -> Response<ControlBody> {
    match serde_json::to_vec(value) {
        Ok(body) => typed(Full::new(Bytes::from(body)).boxed_unsync(), JSON),
        Err(error) => failure((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

fn failure((status, error): ControlRefusal) -> Response<ControlBody> {
    let mut response = typed(Full::new(Bytes::from(failure_json(&error))).boxed_unsync(), JSON);
    *response.status_mut() = status;
    response
}

fn failure_json(error: &str) -> Vec<u8> {
    json!({ "error": error }).to_string().into_bytes()
}

/// Sends one JSON line per message, for as long as the device listens.
fn stream_messages(messages: UnboundedReceiver<DeviceMessage>) -> Response<ControlBody> {
    let lines = stream::unfold(messages, |mut messages| async {
        let message = messages.recv().await?;
        let line = serde_json::to_vec(&message);
        let mut line = line.unwrap_or_else(|error| failure_json(&error.to_string()));
        line.push(b'\n');
        Some((Bytes::from(line), messages))
    });
    let frames = lines.map(|line| Ok::<_, Infallible>(Frame::data(line)));
    typed(StreamBody::new(frames).boxed_unsync(), NDJSON)
}

fn typed(body: ControlBody, content_type: &'static str) -> Response<ControlBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
