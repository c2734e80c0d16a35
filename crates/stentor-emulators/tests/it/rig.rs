//! Shared parts of the tests: clients, and emulators that are quick to start.

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use stentor_emulators::{
    ApnsConfig, ApnsEmulator, ApnsOptions, FcmConfig, FcmEmulator, Policy, RunningApns, RunningFcm, TlsConfig,
};
use tokio::net::TcpStream;

pub(crate) const CONTROL: &str = "127.0.0.1:0";

pub(crate) async fn apns(policy: Value) -> RunningApns {
    apns_with(ApnsConfig {
        vendor: ApnsOptions { require_token: false, ..ApnsOptions::default() },
        policy: read(policy),
        ..ApnsConfig::default()
    })
    .await
}

pub(crate) async fn apns_with(config: ApnsConfig) -> RunningApns {
    let control = Some(CONTROL.parse().unwrap());
    let config = ApnsConfig { tls: TlsConfig::Plaintext, control, ..config };
    ApnsEmulator::start(config).await.unwrap()
}

pub(crate) async fn fcm(policy: Value) -> RunningFcm {
    let mut config = FcmConfig { policy: read(policy), ..FcmConfig::default() };
    config.vendor.auth.required = false;
    fcm_with(config).await
}

pub(crate) async fn fcm_with(config: FcmConfig) -> RunningFcm {
    let control = Some(CONTROL.parse().unwrap());
    let config = FcmConfig { tls: TlsConfig::Plaintext, control, ..config };
    FcmEmulator::start(config).await.unwrap()
}

pub(crate) fn read(policy: Value) -> Policy {
    serde_json::from_value(policy).unwrap()
}

/// A device token of 64 digits that differs in its number.
pub(crate) fn hex(number: u32) -> String {
    format!("{number:064x}")
}

/// An HTTP/2 client on one plaintext connection.
pub(crate) struct Client {
    pub(crate) send: SendRequest<Bytes>,
    pub(crate) connection: tokio::task::JoinHandle<Result<(), h2::Error>>,
    authority: String,
}

/// A response with its body and its framing.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap_or_default().to_owned()
    }
}

impl Client {
    pub(crate) async fn connect(address: std::net::SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        // Otherwise the end of each large body waits until the bytes before it are acknowledged, 40 ms later.
        stream.set_nodelay(true).unwrap();
        let (send, connection): (_, Connection<_, Bytes>) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        Self { send, connection, authority: address.to_string() }
    }

    pub(crate) fn request(&self, path: &str) -> http::request::Builder {
        Request::post(format!("http://{}{path}", self.authority))
    }

    /// Starts a request without waiting for its answer.
    pub(crate) async fn start(
        &mut self,
        request: Request<()>,
        body: &[u8],
    ) -> Result<h2::client::ResponseFuture, h2::Error> {
        let mut ready = self.send.clone().ready().await?;
        let (response, mut stream) = ready.send_request(request, body.is_empty())?;
        if !body.is_empty() {
            stream.send_data(Bytes::copy_from_slice(body), true)?;
        }
        Ok(response)
    }

    pub(crate) async fn send(&mut self, request: Request<()>, body: &[u8]) -> Result<Reply, h2::Error> {
        finish(self.start(request, body).await?).await
    }

    pub(crate) async fn push(&mut self, token: &str) -> Result<Reply, h2::Error> {
        let request = self.push_request(token);
        self.send(request, ALERT).await
    }

    pub(crate) async fn start_push(&mut self, token: &str) -> Result<h2::client::ResponseFuture, h2::Error> {
        let request = self.push_request(token);
        self.start(request, ALERT).await
    }

    pub(crate) fn push_request(&self, token: &str) -> Request<()> {
        let request = self.request(&format!("/3/device/{token}")).header("apns-topic", "com.example.app");
        request.header("apns-push-type", "alert").body(()).unwrap()
    }
}

pub(crate) const ALERT: &[u8] = br#"{"aps":{"alert":"hello"}}"#;

pub(crate) async fn finish(response: h2::client::ResponseFuture) -> Result<Reply, h2::Error> {
    let (head, mut stream) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk?;
        stream.flow_control().release_capacity(chunk.len())?;
        body.extend_from_slice(&chunk);
    }
    Ok(Reply { status: head.status, headers: head.headers, body })
}

/// An FCM send request to one token.
pub(crate) fn to_token(token: &str) -> Value {
    json!({"message": {"token": token, "notification": {"title": "hello"}}})
}

/// Sends JSON to a path of an emulator over HTTP/1.1.
pub(crate) async fn post(address: std::net::SocketAddr, path: &str, body: &Value) -> (u16, Value) {
    let response =
        reqwest::Client::new().post(format!("http://{address}{path}")).json(body).send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or_default())
}
