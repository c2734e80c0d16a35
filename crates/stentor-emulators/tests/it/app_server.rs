//! An app server on a connection of XMPP, as the tests of CCS need it.

use crate::rig::{CONTROL, read};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;
use stentor_emulators::{CcsConfig, CcsEmulator, InjectedMessage, RunningCcs, TlsConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const HEAD: &str = "<?xml version='1.0'?><stream:stream to='fcm xmpp client connection server' xmlns='jabber:client' \
    xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>";

pub(crate) async fn ccs(policy: Value) -> RunningCcs {
    ccs_with(CcsConfig { policy: read(policy), ..CcsConfig::default() }).await
}

pub(crate) async fn ccs_with(config: CcsConfig) -> RunningCcs {
    let control = Some(CONTROL.parse().unwrap());
    CcsEmulator::start(CcsConfig { tls: TlsConfig::Plaintext, control, ..config }).await.unwrap()
}

/// An app server on one connection.
pub(crate) struct AppServer {
    stream: TcpStream,
    pub(crate) heard: String,
}

impl AppServer {
    pub(crate) async fn connect(ccs: &RunningCcs) -> Self {
        let stream = TcpStream::connect(ccs.running.addr()).await.unwrap();
        Self { stream, heard: String::new() }
    }

    pub(crate) async fn logged_in(ccs: &RunningCcs) -> Self {
        let mut server = Self::connect(ccs).await;
        server.open().await;
        assert!(server.log_in("4711@gcm.googleapis.com", "key").await.contains("<success"));
        server.bind().await;
        server
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn open(&mut self) {
        self.write(HEAD).await;
        self.until("</stream:features>").await;
    }

    /// Logs in and returns the server's answer.
    pub(crate) async fn log_in(&mut self, name: &str, key: &str) -> String {
        let secret = STANDARD.encode(format!("\0{name}\0{key}"));
        self.auth("PLAIN", &secret).await
    }

    pub(crate) async fn auth(&mut self, mechanism: &str, content: &str) -> String {
        let auth = format!(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='{mechanism}'>{content}</auth>"
        );
        self.write(&auth).await;
        self.until_any(&[
            "</failure>",
            "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
            "</stream:error>",
        ])
        .await
    }

    pub(crate) async fn bind(&mut self) -> String {
        self.open().await;
        self.ask("set", "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>").await
    }

    pub(crate) async fn ask(&mut self, kind: &str, question: &str) -> String {
        self.write(&format!("<iq type='{kind}' id='q1'>{question}</iq>")).await;
        self.until("</iq>").await
    }

    /// Sends JSON as it is.
    pub(crate) async fn say(&mut self, text: &str) {
        self.write(&format!("<message id='s1'><gcm xmlns='google:mobile:data'>{text}</gcm></message>")).await;
    }

    pub(crate) async fn send(&mut self, body: &Value) {
        let text = body.to_string().replace('&', "&amp;").replace('<', "&lt;");
        self.say(&text).await;
    }

    pub(crate) async fn acknowledge(&mut self, id: &str) {
        self.send(&json!({"message_type": "ack", "to": "phone", "message_id": id})).await;
    }

    /// Returns the JSON of the next message.
    pub(crate) async fn hear(&mut self) -> Value {
        let message = self.until("</gcm></message>").await;
        let start = message.find("<gcm xmlns='google:mobile:data'>").unwrap() + 32;
        let text = message[start..].trim_end_matches("</gcm></message>");
        let text =
            text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&apos;", "'");
        serde_json::from_str(&text.replace("&amp;", "&")).unwrap()
    }

    pub(crate) async fn deliver(&mut self, to: &str, id: &str) -> Value {
        self.send(&json!({"to": to, "message_id": id, "data": {"k": "v"}})).await;
        self.hear().await
    }

    pub(crate) async fn until(&mut self, end: &str) -> String {
        self.until_any(&[end]).await
    }

    /// Reads up to the first of these ends, and returns the text up to and including it.
    pub(crate) async fn until_any(&mut self, ends: &[&str]) -> String {
        loop {
            let found = ends.iter().filter_map(|end| self.heard.find(end).map(|at| at + end.len())).min();
            if let Some(at) = found {
                let rest = self.heard.split_off(at);
                return std::mem::replace(&mut self.heard, rest);
            }
            let mut bytes = [0; 4096];
            let count = tokio::time::timeout(PATIENCE, self.stream.read(&mut bytes)).await;
            let count = count.unwrap_or_else(|_| panic!("none of {ends:?} in {}", self.heard)).unwrap();
            assert!(count > 0, "the end comes before {ends:?}: {}", self.heard);
            self.heard.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
    }

    /// Reads to the end of the connection.
    pub(crate) async fn rest(mut self) -> String {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(PATIENCE, self.stream.read_to_end(&mut bytes)).await;
        read.unwrap().unwrap_or_default();
        self.heard + std::str::from_utf8(&bytes).unwrap()
    }

    /// Waits until everything before is worked on: the answer to a ping comes after it.
    pub(crate) async fn ping(&mut self) {
        assert!(self.ask("get", "<ping xmlns='urn:xmpp:ping'/>").await.contains("type='result'"));
    }
}

pub(crate) fn from_phone(id: &str) -> InjectedMessage {
    InjectedMessage {
        sender_id: "4711".to_owned(),
        from: Some("phone".to_owned()),
        data: json!({"k": "v"}).as_object().unwrap().clone(),
        message_id: Some(id.to_owned()),
        ..InjectedMessage::default()
    }
}
