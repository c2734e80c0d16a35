//! The raw socket: a comparison of a document over HTTP and in a frame, without a method, address or header of HTTP.

use super::super::list_page::{ListKind, ListPage};
use super::super::served::ROOT_KEY;
use super::{FaceUnderTrial, TOPICS, TrialVerdict, is};
use anyhow::Context;
use serde_json::{Value, json};
use stentor_lab::probes::PaperProtocol;
use stentor_wire::frame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Limit of a received frame: a page of some topics.
const FRAME_MAX_BYTES: u32 = 1_024 * 1_024;

impl FaceUnderTrial {
    /// Sends one document over HTTP and in a frame, and compares the replies.
    pub(super) async fn transport(&self) -> TrialVerdict {
        let encoding = match self.protocol {
            PaperProtocol::Soap => "soap",
            PaperProtocol::XmlRpc => "xmlrpc",
            PaperProtocol::Rest => return self.rest_in_frames().await,
        };
        let document = self.document(&self.own.call(TOPICS, None));
        let by_http = self.post(document.clone()).await?.body;
        let (mut stream, greeting) = self.greeted(encoding).await?;
        anyhow::ensure!(greeting.get("error").is_none(), "the hello is refused: {greeting}");
        let in_frame = exchanged(&mut stream, document.as_bytes()).await?;
        let page = |body: &[u8]| ListPage::read(self.reader(), ListKind::Topics, body);
        let (wanted, received) = (page(&by_http)?, page(&in_frame)?);
        let is_same = received == wanted && received.topics.len() as u64 == TOPICS;
        let same = if is_same { "as over HTTP" } else { "otherwise than over HTTP" };
        let bytes = if in_frame == by_http { "byte for byte" } else { "in other bytes" };
        is(
            is_same,
            format!(
                "in frames of the raw socket the document is answered {same}, with {} topics, {bytes}",
                received.topics.len()
            ),
        )
    }

    /// Requests an encoding of the raw socket that would carry requests of REST.
    async fn rest_in_frames(&self) -> TrialVerdict {
        let (_, greeting) = self.greeted("rest").await?;
        let code = greeting["error"]["code"].as_str().unwrap_or("a greeting");
        is(
            greeting.get("error").is_none(),
            format!(
                "the operation stands in method and path; the raw socket replies {code} to a hello with this encoding"
            ),
        )
    }

    /// Sends the hello, and returns the greeting.
    async fn greeted(&self, encoding: &str) -> anyhow::Result<(TcpStream, Value)> {
        let mut stream = TcpStream::connect(self.socket).await?;
        let hello = json!({"stentor": 1, "key": ROOT_KEY, "app": self.app, "encoding": encoding}).to_string();
        let greeting = exchanged(&mut stream, hello.as_bytes()).await?;
        Ok((stream, serde_json::from_slice(&greeting)?))
    }
}

/// Sends a frame and returns the payload of the next one.
async fn exchanged(stream: &mut TcpStream, payload: &[u8]) -> anyhow::Result<Vec<u8>> {
    stream.write_all(&frame::write(payload)?).await?;
    let length = stream.read_u32().await.context("no frame comes back")?;
    anyhow::ensure!(length <= FRAME_MAX_BYTES, "a frame of {length} bytes");
    let mut reply = vec![0; length as usize];
    stream.read_exact(&mut reply).await?;
    Ok(reply)
}
