//! A device: the behaviour of a browser on autopush's WebSocket (RFC 6455 over TLS), as small as it can be.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::authority::RoomAuthority;

const CHANNEL: &str = "5f2e9d0c-9b34-4c33-8f80-0a4a6f1c2b1d";
/// The time limit for a message of the server.
const WORD_MAX: Duration = Duration::from_secs(60);

/// A device that is connected.
pub(crate) struct PushDevice(BufStream<TlsStream<TcpStream>>);

impl PushDevice {
    /// Connects to the server at `localhost`.
    pub(crate) async fn connect(port: u16, app: &str, files: &RoomAuthority) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&files.authority)?)?;
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(("localhost", port)).await?;
        let name = ServerName::try_from("localhost")?;
        let mut stream = BufStream::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?);
        let request = format!(
            "GET /gateway/v1/autopush/{app} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: push-notification\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head)?;
        ensure!(head.starts_with("HTTP/1.1 101 "), "{head}");
        Ok(Self(stream))
    }

    /// Returns the name that it is given after hello.
    pub(crate) async fn greet(&mut self, agent: Option<&str>) -> anyhow::Result<String> {
        self.say(json!({"messageType": "hello", "use_webpush": true, "broadcasts": {}, "uaid": agent}))
            .await?;
        let heard = self.hear().await?;
        Ok(heard["uaid"].as_str().with_context(|| heard.to_string())?.to_owned())
    }

    /// Subscribes for the holder of a key; returns the URL for it.
    pub(crate) async fn subscribe(&mut self, key: &str) -> anyhow::Result<String> {
        self.say(json!({"messageType": "register", "channelID": CHANNEL, "key": key})).await?;
        let heard = self.hear().await?;
        Ok(heard["pushEndpoint"].as_str().with_context(|| heard.to_string())?.to_owned())
    }

    pub(crate) async fn unsubscribe(&mut self) -> anyhow::Result<()> {
        self.say(json!({"messageType": "unregister", "channelID": CHANNEL, "code": 200})).await?;
        let heard = self.hear().await?;
        ensure!(heard["status"] == 200, "{heard}");
        Ok(())
    }

    /// Receives a notification and confirms it.
    pub(crate) async fn notification(&mut self) -> anyhow::Result<Value> {
        let heard = self.hear().await?;
        ensure!(heard["messageType"] == "notification" && heard["channelID"] == CHANNEL, "{heard}");
        let update = json!({"channelID": CHANNEL, "version": heard["version"], "code": 100});
        self.say(json!({"messageType": "ack", "updates": [update]})).await?;
        Ok(heard)
    }

    /// Checks that no message arrives before the response to a ping.
    pub(crate) async fn hears_nothing_more(&mut self) -> anyhow::Result<()> {
        self.say(json!({})).await?;
        let heard = self.hear().await?;
        ensure!(heard == json!({}), "{heard}");
        Ok(())
    }

    /// Closes the connection, and waits until the server has seen it.
    pub(crate) async fn leave(&mut self) -> anyhow::Result<()> {
        // A close without a code, masked with zeros.
        self.0.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await?;
        self.0.flush().await?;
        let mut rest = Vec::new();
        // Further messages of the server are ignored, and so is the way in which the connection ends.
        let gone = tokio::time::timeout(WORD_MAX, self.0.read_to_end(&mut rest)).await;
        _ = gone.context("the server does not let go")?;
        Ok(())
    }

    async fn say(&mut self, message: Value) -> anyhow::Result<()> {
        let text = message.to_string();
        // A text, masked with zeros.
        self.0.write_all(&[0x81, 0x80 | 126]).await?;
        self.0.write_u16(u16::try_from(text.len())?).await?;
        self.0.write_all(&[0; 4]).await?;
        self.0.write_all(text.as_bytes()).await?;
        Ok(self.0.flush().await?)
    }

    async fn hear(&mut self) -> anyhow::Result<Value> {
        let reading = async {
            let (first, second) = (self.0.read_u8().await?, self.0.read_u8().await?);
            let length = if second == 126 { self.0.read_u16().await? } else { u16::from(second) };
            let mut payload = vec![0; usize::from(length)];
            self.0.read_exact(&mut payload).await?;
            ensure!(first == 0x81, "no text: {first:#x} {payload:?}");
            Ok(serde_json::from_slice(&payload)?)
        };
        tokio::time::timeout(WORD_MAX, reading).await.context("the server says nothing")?
    }
}
