//! The client of a device for the server's gateway.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::Context as _;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use stentor_wire::web_push::PushKeys;

use super::memory::{DeviceMemory, Joined};
use super::outbox::Outgoing;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// The server sends a comment every 30 seconds: if three are missing, the connection is dead.
const SILENCE_LIMIT: Duration = Duration::from_secs(100);

/// The server's response to a request.
#[derive(Debug)]
pub(crate) enum Answer<T> {
    /// The call succeeded.
    Done(T),
    /// The server does not know the device's token any more.
    Unknown,
    /// The request is refused permanently, for this reason.
    Refused(String),
}

/// A client of the server.
#[derive(Clone)]
pub(crate) struct DeviceClient {
    http: reqwest::Client,
    server: String,
    /// A nonce that the server repeats in its refusals; an intermediary that answers in its place does not.
    nonce: String,
}

impl DeviceClient {
    /// Prepares it; nothing is sent yet.
    pub(crate) fn new(server: &str, authority: Option<&[u8]>) -> anyhow::Result<Self> {
        let mut http = reqwest::Client::builder().connect_timeout(CONNECT_LIMIT).read_timeout(SILENCE_LIMIT);
        if let Some(pem) = authority {
            http = http.add_root_certificate(reqwest::Certificate::from_pem(pem)?);
        }
        // Randomly keyed each time, so that only a reader of the request knows it.
        let nonce = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let headers = [(REQUEST_ID, HeaderValue::try_from(&nonce)?)];
        // The server's comments show that the connection is alive: TCP keepalive probes between them would double the traffic of an idle
        // device.
        let http = http.tcp_keepalive(None).default_headers(headers.into_iter().collect()).build()?;
        Ok(Self { http, server: server.trim_end_matches('/').to_owned(), nonce })
    }

    /// Registers this machine.
    pub(crate) async fn join(&self, key: &str, details: &Value) -> anyhow::Result<Answer<Joined>> {
        let url = format!("{}/gateway/v1/devices", self.server);
        let request = self.http.post(url).bearer_auth(key).json(details).timeout(ANSWER_LIMIT);
        self.read(request.send().await?).await
    }

    /// Requests a new token.
    pub(crate) async fn renew(&self, own: &DeviceMemory) -> anyhow::Result<Answer<Joined>> {
        self.read(self.ask(own, Method::POST, "device/token").timeout(ANSWER_LIMIT).send().await?).await
    }

    /// Queries whether the server knows the device.
    pub(crate) async fn show(&self, own: &DeviceMemory) -> anyhow::Result<Answer<Value>> {
        self.read(self.ask(own, Method::GET, "device").timeout(ANSWER_LIMIT).send().await?).await
    }

    /// Removes a device with an obsolete identity.
    pub(crate) async fn withdraw(&self, own: &DeviceMemory) -> anyhow::Result<Answer<()>> {
        let response = self.ask(own, Method::DELETE, "device").timeout(ANSWER_LIMIT).send().await?;
        if response.status().is_success() { Ok(Answer::Done(())) } else { self.refusal(response).await }
    }

    /// Registers keys for which the server encrypts messages from now on.
    pub(crate) async fn put_keys(&self, own: &DeviceMemory, keys: &PushKeys) -> anyhow::Result<Answer<()>> {
        let (p256dh, auth) = keys.texts();
        let request =
            self.ask(own, Method::PUT, "device/keys").json(&json!({"p256dh": p256dh, "auth": auth}));
        let response = request.timeout(ANSWER_LIMIT).send().await?;
        if response.status().is_success() { Ok(Answer::Done(())) } else { self.refusal(response).await }
    }

    /// Opens the stream of messages.
    pub(crate) async fn events(&self, own: &DeviceMemory) -> anyhow::Result<Answer<Response>> {
        let response = self.ask(own, Method::GET, "events").send().await?;
        match response.status() {
            StatusCode::OK => Ok(Answer::Done(response)),
            _ => self.refusal(response).await,
        }
    }

    /// Confirms messages; the confirmations are on the server's disk when this returns.
    pub(crate) async fn confirm(
        &self,
        own: &DeviceMemory,
        messages: &[String],
    ) -> anyhow::Result<Answer<Value>> {
        let request = self.ask(own, Method::POST, "receipts").json(&json!({"messages": messages}));
        self.read(request.timeout(ANSWER_LIMIT).send().await?).await
    }

    /// Sends an upstream message to the app; it is on the server's disk when this returns.
    pub(crate) async fn send(&self, own: &DeviceMemory, message: &Outgoing) -> anyhow::Result<Answer<Value>> {
        let request = self.ask(own, Method::POST, "upstream").json(message);
        self.read(request.timeout(ANSWER_LIMIT).send().await?).await
    }

    fn ask(&self, own: &DeviceMemory, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}/gateway/v1/{path}", self.server);
        self.http.request(method, url).basic_auth(&own.token, Some(&own.secret))
    }

    async fn read<T: serde::de::DeserializeOwned>(&self, response: Response) -> anyhow::Result<Answer<T>> {
        match response.status().is_success() {
            true => Ok(Answer::Done(response.json().await.context("the answer cannot be read")?)),
            false => self.refusal(response).await,
        }
    }

    /// Interprets a refusal: unknown device, permanent, or temporary (an error). An intermediary may respond with 401 too: only a response
    /// of the server itself counts, which proves by the nonce that it has read the request.
    async fn refusal<T>(&self, response: Response) -> anyhow::Result<Answer<T>> {
        let (status, is_encrypted) = (response.status(), response.url().scheme() == "https");
        let problem: Value = response.json().await.unwrap_or_default();
        if !problem["code"].is_string() || !(is_encrypted || problem["request_id"] == self.nonce) {
            anyhow::bail!("{status}, and not by the server itself");
        }
        let detail = problem["detail"].as_str().unwrap_or_default().to_owned();
        match status {
            StatusCode::UNAUTHORIZED => Ok(Answer::Unknown),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT => {
                anyhow::bail!("{status}: {detail}")
            }
            status if status.is_client_error() => Ok(Answer::Refused(format!("{status}: {detail}"))),
            status => anyhow::bail!("{status}: {detail}"),
        }
    }
}
