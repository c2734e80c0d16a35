//! A small client of the public REST API; the command line knows the server in no other way.

use crate::failure::{CommandFailure, Exit};
use anyhow::Context;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Twice the server's own default timeout of a request, so that the server's refusal is seen and not this limit.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Largest page of a list.
const PAGE_MAX_COUNT: usize = 1_000;

/// A key that does not print itself.
#[derive(Clone)]
pub struct Key(pub String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl std::str::FromStr for Key {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.trim().to_owned()))
    }
}

/// A connection to one server in one role.
#[derive(Clone, Debug)]
pub struct ApiClient {
    http: reqwest::Client,
    server: String,
    key: Option<Key>,
    app: Option<String>,
}

impl ApiClient {
    /// Prepares a client; nothing is sent yet.
    pub fn new(server: &str, key: Option<Key>, app: Option<String>) -> anyhow::Result<Self> {
        let http = http(HttpSetting::default())?;
        Ok(Self { http, server: server.trim_end_matches('/').to_owned(), key, app })
    }

    /// Returns the same client, acting for an app.
    pub fn for_app(mut self, app: String) -> Self {
        self.app = Some(app);
        self
    }

    /// Returns the same client with an address of this machine as the source of its connections.
    pub fn with_source(mut self, address: IpAddr) -> anyhow::Result<Self> {
        self.http = http(HttpSetting { source: Some(address), ..HttpSetting::default() })?;
        Ok(self)
    }

    /// Returns the same client, which trusts the servers that this certificate vouches for.
    pub fn with_authority(mut self, pem: &[u8]) -> anyhow::Result<Self> {
        self.http = http(HttpSetting { authority: Some(pem), ..HttpSetting::default() })?;
        Ok(self)
    }

    /// Returns the server's URL.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Names the app it acts for.
    pub fn app(&self) -> Option<&str> {
        self.app.as_deref()
    }

    /// Reads the resource at a path.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.call(self.request(Method::GET, path).timeout(ANSWER_LIMIT)).await
    }

    /// Reads with query parameters.
    pub async fn get_with(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<Value> {
        self.call(self.request(Method::GET, path).query(query).timeout(ANSWER_LIMIT)).await
    }

    /// Reads all pages of a list with a cursor, and returns them as one.
    pub async fn get_all(&self, path: &str, field: &str) -> anyhow::Result<Value> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let mut query = vec![("limit", PAGE_MAX_COUNT.to_string())];
            query.extend(after.map(|after: String| ("after", after)));
            let mut page = self.get_with(path, &query).await?;
            if let Value::Array(items) = page[field].take() {
                all.extend(items);
            }
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() {
                return Ok(serde_json::json!({ field: all }));
            }
        }
    }

    /// Reads a response that is not JSON.
    pub async fn text(&self, path: &str) -> anyhow::Result<String> {
        let request = self.request(Method::GET, path).timeout(ANSWER_LIMIT);
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        response.text().await.map_err(|error| self.unreachable(&error))
    }

    /// Opens a stream, without a timeout.
    pub async fn open(&self, path: &str) -> anyhow::Result<Response> {
        let response =
            self.request(Method::GET, path).send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        Err(refusal(status, &body_of(response).await?).into())
    }

    /// Posts an object.
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(self.request(Method::POST, path).json(body).timeout(ANSWER_LIMIT)).await
    }

    /// Posts an object, and returns status and body of any response.
    pub async fn offer(&self, path: &str, body: &Value) -> anyhow::Result<(StatusCode, Value)> {
        let request = self.request(Method::POST, path).json(body).timeout(ANSWER_LIMIT);
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        Ok((status, body_of(response).await?))
    }

    /// Posts an object that may be repeated without harm.
    pub async fn post_once(&self, path: &str, key: Option<&str>, body: &Value) -> anyhow::Result<Value> {
        let mut request = self.request(Method::POST, path).json(body).timeout(ANSWER_LIMIT);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        self.call(request).await
    }

    /// Posts without a body.
    pub async fn act(&self, path: &str) -> anyhow::Result<Value> {
        self.call(self.request(Method::POST, path).timeout(ANSWER_LIMIT)).await
    }

    /// Puts an object.
    pub async fn put(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(self.request(Method::PUT, path).json(body).timeout(ANSWER_LIMIT)).await
    }

    /// Deletes the resource at a path.
    pub async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.call(self.request(Method::DELETE, path).timeout(ANSWER_LIMIT)).await
    }

    /// Posts a stream of any length, without a timeout.
    pub async fn stream(
        &self,
        path: &str,
        query: &[(&str, String)],
        content_type: &str,
        body: Body,
    ) -> anyhow::Result<Value> {
        let request = self.request(Method::POST, path).query(query).header("Content-Type", content_type);
        self.call(request.body(body)).await
    }

    /// Returns the headers of its requests.
    pub fn headers(&self) -> anyhow::Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", key.0))?);
        }
        if let Some(app) = &self.app {
            headers.insert(HeaderName::from_static("x-stentor-app"), HeaderValue::from_str(app)?);
        }
        Ok(headers)
    }

    /// Reads a path that needs no key, and returns status and body of any response.
    pub async fn probe(&self, path: &str) -> anyhow::Result<(StatusCode, Value)> {
        let request = self.http.get(format!("{}{path}", self.server)).timeout(ANSWER_LIMIT);
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        Ok((status, body_of(response).await?))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.server));
        if let Some(key) = &self.key {
            request = request.bearer_auth(&key.0);
        }
        if let Some(app) = &self.app {
            request = request.header("X-Stentor-App", app);
        }
        request
    }

    async fn call(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let body = body_of(response).await?;
        if status.is_success() { Ok(body) } else { Err(refusal(status, &body).into()) }
    }

    fn unreachable(&self, error: &reqwest::Error) -> anyhow::Error {
        let server = &self.server;
        let sentence = if error.is_builder() {
            format!("{server} is not a URL: write it like http://127.0.0.1:8686")
        } else if let Some(trouble) = tls_trouble(server, &causes(error)) {
            trouble
        } else if error.is_connect() {
            format!(
                "no server answers at {server}: start one with `stentor serve`, or give its address with --server"
            )
        } else if error.is_timeout() {
            format!("{server} took too long to answer: look at its log, and try again")
        } else {
            format!(
                "the connection to {server} broke ({}): look at its log, and try again",
                root_cause(error)
            )
        };
        CommandFailure::new(Exit::Unreachable, sentence).into()
    }
}

/// Reads a key file of one line.
pub fn read_key(path: &Path) -> anyhow::Result<Key> {
    Ok(Key(std::fs::read_to_string(path)?.trim().to_owned()))
}

/// The settings that differ between connections.
#[derive(Default)]
struct HttpSetting<'a> {
    source: Option<IpAddr>,
    authority: Option<&'a [u8]>,
}

fn http(setting: HttpSetting<'_>) -> anyhow::Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder().connect_timeout(CONNECT_LIMIT).no_proxy();
    builder = builder.local_address(setting.source);
    if let Some(pem) = setting.authority {
        let authorities = reqwest::Certificate::from_pem_bundle(pem)?;
        anyhow::ensure!(!authorities.is_empty(), "there is no certificate in PEM");
        builder = authorities.into_iter().fold(builder, reqwest::ClientBuilder::add_root_certificate);
    }
    builder.build().context("the HTTP client cannot be set up")
}

/// Encodes a name with any characters as one path segment.
pub fn segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            segment.push_str(&format!("%{byte:02X}"));
        }
    }
    segment
}

async fn body_of(response: Response) -> anyhow::Result<Value> {
    let bytes = response.bytes().await.map_err(|error| {
        let sentence = format!("the answer broke off ({}): try again", root_cause(&error));
        anyhow::Error::from(CommandFailure::new(Exit::Unreachable, sentence))
    })?;
    // A body that is not JSON comes from a server that is not Stentor; its status says enough.
    Ok(serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// Turns a problem (RFC 9457) into one sentence.
fn refusal(status: StatusCode, problem: &Value) -> CommandFailure {
    let text = |field: &str| problem[field].as_str().filter(|text| !text.is_empty());
    let said = text("detail")
        .or(text("title"))
        .map_or_else(|| format!("the server answered {status}"), str::to_owned);
    let field = text("field").filter(|field| !said.contains(*field)).map(|field| format!("{field}: "));
    let hint = text("hint").map(|hint| format!(" ({hint})"));
    let sentence = format!("{}{said}{}", field.unwrap_or_default(), hint.unwrap_or_default());
    CommandFailure::new(exit_for(status), sentence).with_code(text("code").map(str::to_owned))
}

fn exit_for(status: StatusCode) -> Exit {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Exit::Denied,
        StatusCode::NOT_FOUND => Exit::NotFound,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
            Exit::Unreachable
        }
        _ => Exit::NotDone,
    }
}

fn root_cause(error: &reqwest::Error) -> String {
    causes(error).pop().unwrap_or_default()
}

/// Lists the messages of an error and of its causes, the deepest last.
fn causes(error: &reqwest::Error) -> Vec<String> {
    let mut next: Option<&dyn std::error::Error> = Some(error);
    let mut causes = Vec::new();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes
}

/// Returns a hint for a TLS failure: the server is running, and a hint to start it would mislead.
fn tls_trouble(server: &str, causes: &[String]) -> Option<String> {
    let said = |mark: &str| causes.iter().rev().find(|cause| cause.contains(mark));
    if let Some(cause) = said("invalid peer certificate") {
        let why = cause.rsplit("invalid peer certificate: ").next().unwrap_or(cause);
        let advice = match why {
            _ if why.contains("UnknownIssuer") => "give its authority's certificate with --ca",
            _ if why.contains("CaUsedAsEndEntity") => {
                "the server shows an authority's certificate: it needs one of its own"
            }
            _ if why.contains("xpired") => "have it renewed",
            _ => "give the name that the certificate is for with --server",
        };
        return Some(format!("certificate of {server}: {why}: {advice}"));
    }
    if said("InvalidContentType").is_some() {
        return Some(format!("{server} does not speak TLS: write http:// instead of https://"));
    }
    if server.starts_with("http://") && said("invalid HTTP version").is_some() {
        return Some(format!(
            "{server} does not answer in HTTP: if it speaks TLS, write https:// instead of http://"
        ));
    }
    if server.starts_with("https://") && said("received fatal alert").is_some() {
        let why = said("received fatal alert").map(String::as_str).unwrap_or_default();
        return Some(format!("TLS with {server} failed: {why}"));
    }
    None
}

#[cfg(test)]
mod tests;
