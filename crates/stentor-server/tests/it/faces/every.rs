//! The same stories through every face. A request is a record; a response is a record or a refusal.

mod encodings;
mod known;
mod listed;
mod rest;
mod stories;
mod trouble;

use reqwest::header::HeaderMap;
use reqwest::{Body, Client, Method, RequestBuilder};
use serde_json::{Value, json};
use stentor_server::contract::description::{OperationShape, description};

use super::socket;
use crate::harness::Server;

/// The face of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Through {
    Rest,
    Soap,
    Xmlrpc,
    Grpc,
    Socket,
}

const EVERY_FACE: [Through; 5] =
    [Through::Rest, Through::Soap, Through::Xmlrpc, Through::Grpc, Through::Socket];
const HTTP_FACES: [Through; 4] = [Through::Rest, Through::Soap, Through::Xmlrpc, Through::Grpc];

/// Code and field of a refusal.
type Refused = (String, Option<String>);

/// A request over HTTP.
struct HttpRequest {
    method: Method,
    path: String,
    content_type: &'static str,
    /// The idempotency key, if it is sent in a header.
    repeat: Option<String>,
    body: Vec<u8>,
}

/// A response over HTTP.
struct HttpReply {
    headers: HeaderMap,
    body: Vec<u8>,
}

/// Starts a server with all faces.
async fn server() -> Server {
    socket::socket_server(|config| {
        config.api.body_timeout_seconds = 2;
        config.api.large_body_max_bytes = 200_000;
        config.api.body_max_bytes = 200_000;
    })
    .await
}

/// Calls an operation through one face, on a connection of its own.
async fn ask(
    through: Through,
    server: &Server,
    key: &str,
    operation: &str,
    record: &Value,
) -> Result<Value, Refused> {
    if through == Through::Socket {
        return ask_socket(server, key, operation, record).await;
    }
    let request = prepared(through, operation, record);
    let body = Body::from(request.body.clone());
    let response = start(through, server, key, &request, body).send().await.expect("an answer");
    read(through, operation, received(response).await)
}

/// Calls an operation that must succeed; returns the reply.
async fn done(through: Through, server: &Server, key: &str, operation: &str, record: Value) -> Value {
    let reply = ask(through, server, key, operation, &record).await;
    reply.unwrap_or_else(|refused| panic!("{through:?} {operation}: {refused:?}"))
}

async fn ask_socket(server: &Server, key: &str, operation: &str, record: &Value) -> Result<Value, Refused> {
    let hello = json!({"stentor": 1, "key": key});
    let mut client = socket::said_hello(socket::connect(server).await, &hello).await;
    if client.greeting.get("error").is_some() {
        return Err(socket::refusal(&client.greeting));
    }
    client.send(operation, record.clone()).await;
    let reply = client.reply().await;
    if reply.get("error").is_some() { Err(socket::refusal(&reply)) } else { Ok(reply["reply"].clone()) }
}

fn prepared(through: Through, operation: &str, record: &Value) -> HttpRequest {
    match through {
        Through::Rest => rest::request(operation, record),
        Through::Soap => encodings::soap_request(shape(operation), record),
        Through::Xmlrpc => encodings::xmlrpc_request(operation, record),
        Through::Grpc => encodings::grpc_request(shape(operation), record),
        Through::Socket => unreachable!("frames are no requests of HTTP"),
    }
}

/// Starts a request with any kind of body.
fn start(through: Through, server: &Server, key: &str, request: &HttpRequest, body: Body) -> RequestBuilder {
    let client = match through {
        Through::Grpc => Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client"),
        _ => server.client.clone(),
    };
    let started = client.request(request.method.clone(), format!("{}{}", server.url, request.path));
    let mut started = started.bearer_auth(key).header("te", "trailers");
    if let Some(repeat) = &request.repeat {
        started = started.header("idempotency-key", repeat);
    }
    // A request without a body has no content type either.
    if request.content_type.is_empty() {
        return started;
    }
    started.header("content-type", request.content_type).body(body)
}

async fn received(response: reqwest::Response) -> HttpReply {
    use http_body_util::BodyExt as _;
    let mut headers = response.headers().clone();
    let body = Body::from(response).collect().await.expect("a body");
    headers.extend(body.trailers().cloned().unwrap_or_default());
    HttpReply { headers, body: body.to_bytes().to_vec() }
}

fn read(through: Through, operation: &str, reply: HttpReply) -> Result<Value, Refused> {
    match through {
        Through::Rest => rest::read(&reply),
        Through::Soap => encodings::read_soap(shape(operation), &reply),
        Through::Xmlrpc => encodings::read_xmlrpc(&reply),
        Through::Grpc => encodings::read_grpc(shape(operation), &reply),
        Through::Socket => unreachable!("frames are no requests of HTTP"),
    }
}

fn shape(operation: &str) -> &'static OperationShape {
    let found = description().operations.iter().find(|one| one.facts.name == operation);
    found.unwrap_or_else(|| panic!("there is no operation {operation}"))
}
