//! An app server at CCS, which writes the protocol by hand: XMPP (RFC 6120) with JSON inside.

use std::time::Duration;

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);
const BIND: &str = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
const PAYLOAD_BEGIN: &str = "<gcm xmlns=\"google:mobile:data\">";
const PAYLOAD_END: &str = "</gcm>";
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// An app server that has logged in.
pub struct CcsAppServer<S> {
    stream: S,
    said: Vec<u8>,
    buffer: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> CcsAppServer<S> {
    /// Logs in over a connection as an app, under one of the service's names.
    pub async fn log_in(stream: S, domain: &str, app: &str, key: &str) -> anyhow::Result<Self> {
        let mut server = Self { stream, said: Vec::new(), buffer: vec![0; READ_BYTES] };
        let head = format!(
            "<stream:stream to='{domain}' xmlns='jabber:client' \
             xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
        );
        let plain = STANDARD.encode(format!("\0{app}@{domain}\0{key}"));
        let auth = format!("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>");
        let steps = [
            (head.as_str(), "</stream:features>"),
            (auth.as_str(), "<success"),
            (head.as_str(), "</stream:features>"),
            (BIND, "</iq>"),
        ];
        for (said, answer) in steps {
            server.write(said).await?;
            timeout(PATIENCE, server.until(answer))
                .await
                .context("CCS accepted no login for 20 seconds")??;
        }
        Ok(server)
    }

    /// Writes a payload.
    pub async fn say(&mut self, payload: &Value) -> anyhow::Result<()> {
        self.write(&stanza(payload)).await
    }

    /// Writes stanzas.
    pub async fn write(&mut self, text: &str) -> anyhow::Result<()> {
        self.stream.write_all(text.as_bytes()).await?;
        Ok(self.stream.flush().await?)
    }

    /// Waits some seconds for the next JSON payload of the service.
    pub async fn hear(&mut self) -> anyhow::Result<Value> {
        let text = timeout(PATIENCE, self.next()).await.context("CCS said nothing more in 20 seconds")??;
        read(&text)
    }

    /// Waits for the text of the next payload. Nothing is lost when the call is dropped before it ends.
    pub async fn next(&mut self) -> anyhow::Result<String> {
        loop {
            if let Some(text) = self.payload()? {
                return Ok(text);
            }
            self.receive().await?;
        }
    }

    /// Takes a whole payload off the received bytes, if there is one.
    fn payload(&mut self) -> anyhow::Result<Option<String>> {
        let Some(begin) = place(&self.said, PAYLOAD_BEGIN) else { return Ok(None) };
        let begin = begin + PAYLOAD_BEGIN.len();
        let Some(length) = place(&self.said[begin..], PAYLOAD_END) else { return Ok(None) };
        let text = std::str::from_utf8(&self.said[begin..begin + length])?.to_owned();
        self.said.drain(..begin + length + PAYLOAD_END.len());
        Ok(Some(text))
    }

    /// Reads up to the end of a text.
    async fn until(&mut self, end: &str) -> anyhow::Result<()> {
        loop {
            if let Some(begin) = place(&self.said, end) {
                self.said.drain(..begin + end.len());
                return Ok(());
            }
            self.receive().await?;
        }
    }

    async fn receive(&mut self) -> anyhow::Result<()> {
        let count = self.stream.read(&mut self.buffer).await?;
        ensure!(count > 0, "CCS closed the connection");
        self.said.extend_from_slice(&self.buffer[..count]);
        Ok(())
    }
}

/// Returns the stanza of a payload.
pub fn stanza(payload: &Value) -> String {
    let text = payload.to_string().replace('&', "&amp;").replace('<', "&lt;");
    format!("<message><gcm xmlns='google:mobile:data'>{text}</gcm></message>")
}

/// Reads the text of a payload.
pub fn read(text: &str) -> anyhow::Result<Value> {
    let text = text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Ok(serde_json::from_str(&text)?)
}

fn place(bytes: &[u8], text: &str) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text.as_bytes())
}
