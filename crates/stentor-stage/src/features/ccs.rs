//! An app server at CCS, which writes the protocol by hand: XMPP over loopback, without TLS as the server itself.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use stentor_wire::Value as WireValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);
const BIND: &str = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";

/// An app server that has logged in.
pub(super) struct CcsAppServer {
    stream: TcpStream,
    said: String,
}

impl CcsAppServer {
    /// Logs in as an app under one of the service's names.
    pub(super) async fn log_in(address: &str, domain: &str, app: &str, key: &str) -> anyhow::Result<Self> {
        let mut server = Self { stream: TcpStream::connect(address).await?, said: String::new() };
        let head = format!(
            "<stream:stream to='{domain}' xmlns='jabber:client' \
             xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
        );
        let plain = WireValue::Bytes(format!("\0{app}@{domain}\0{key}").into_bytes());
        // JSON carries bytes as base64.
        let plain = String::from_utf8(stentor_wire::json::write(&plain)?)?;
        let plain = plain.trim_matches('"');
        let auth = format!("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>");
        let steps = [
            (head.as_str(), "</stream:features>"),
            (auth.as_str(), "<success"),
            (head.as_str(), "</stream:features>"),
            (BIND, "</iq>"),
        ];
        for (said, answer) in steps {
            server.stream.write_all(said.as_bytes()).await?;
            server.until(answer).await?;
        }
        Ok(server)
    }

    /// Writes a payload.
    pub(super) async fn say(&mut self, payload: &Value) -> anyhow::Result<()> {
        let text = payload.to_string().replace('&', "&amp;").replace('<', "&lt;");
        let stanza = format!("<message><gcm xmlns='google:mobile:data'>{text}</gcm></message>");
        Ok(self.stream.write_all(stanza.as_bytes()).await?)
    }

    /// Waits for what the service says next in JSON.
    pub(super) async fn hear(&mut self) -> anyhow::Result<Value> {
        self.until("<gcm xmlns=\"google:mobile:data\">").await?;
        let text = self.until("</gcm>").await?;
        let text =
            text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        Ok(serde_json::from_str(&text)?)
    }

    /// Reads up to the end of a text and returns what stands before it.
    async fn until(&mut self, end: &str) -> anyhow::Result<String> {
        let mut buffer = [0; 1_024];
        loop {
            if let Some((before, rest)) = self.said.split_once(end) {
                let (before, rest) = (before.to_owned(), rest.to_owned());
                self.said = rest;
                return Ok(before);
            }
            let count = timeout(PATIENCE, self.stream.read(&mut buffer)).await;
            let count = count.context("CCS said nothing more in 20 seconds")??;
            ensure!(count > 0, "CCS closed the connection");
            self.said.push_str(std::str::from_utf8(&buffer[..count])?);
        }
    }
}
