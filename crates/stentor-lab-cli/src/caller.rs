//! A caller of a REST API with little work of its own: one kept connection of HTTP/1.1, one call at a time, one write and usually one read
//! for each call.

use std::io::{self, Write as _};

use anyhow::Context as _;
use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode, header};
use stentor_stage::client::ApiClient;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longest answer, head and body together.
const ANSWER_MAX_BYTES: usize = 1_024 * 1_024;
/// Most headers of an answer.
const HEADERS_MAX_COUNT: usize = 64;

/// Reasons for which a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallerError {
    /// No connection.
    #[error("no server answers at {0}: {1}")]
    Connect(String, io::Error),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// The bytes received are not a supported response.
    #[error("the answer cannot be read: {0}")]
    Answer(String),
}

/// One caller.
#[derive(Debug)]
pub(crate) struct HttpCaller {
    stream: TcpStream,
    /// Header lines of every call.
    lines: Vec<u8>,
    request: Vec<u8>,
    answer: BytesMut,
}

impl HttpCaller {
    /// Connects to `host:port`, without TLS; `headers` are sent with every call.
    pub(crate) async fn connect(authority: &str, headers: HeaderMap) -> Result<Self, CallerError> {
        let refused = |error| CallerError::Connect(authority.to_owned(), error);
        let stream = TcpStream::connect(authority).await.map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        let mut lines = format!("host: {authority}\r\n").into_bytes();
        for (name, value) in &headers {
            lines.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        Ok(Self { stream, lines, request: Vec::new(), answer: BytesMut::new() })
    }

    /// Makes one call and gives its answer whole. After an error the connection is of no more use.
    pub(crate) async fn call(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), CallerError> {
        self.request.clear();
        write!(self.request, "{method} {path} HTTP/1.1\r\n")?;
        self.request.extend_from_slice(&self.lines);
        write!(self.request, "content-length: {}\r\n\r\n", body.len())?;
        self.request.extend_from_slice(&body);
        self.stream.write_all(&self.request).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<(StatusCode, Bytes), CallerError> {
        loop {
            if let Some(head) = read_head(&self.answer)?
                && self.answer.len() >= head.bytes + head.body_bytes
            {
                // A copy of the little that is kept, so that the buffer stays the connection's own.
                let body = Bytes::copy_from_slice(&self.answer[head.bytes..][..head.body_bytes]);
                self.answer.advance(head.bytes + head.body_bytes);
                return Ok((head.status, body));
            }
            if self.answer.len() > ANSWER_MAX_BYTES {
                return Err(CallerError::Answer(format!("it is longer than {ANSWER_MAX_BYTES} bytes")));
            }
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

/// Opens a caller with the role of a client.
pub(crate) async fn open(client: &ApiClient) -> anyhow::Result<HttpCaller> {
    let authority = client.server().strip_prefix("http://").context("a caller speaks without TLS only")?;
    Ok(HttpCaller::connect(authority, client.headers()?).await?)
}

/// The parsed head of a response.
struct ResponseHead {
    status: StatusCode,
    bytes: usize,
    body_bytes: usize,
}

/// Parses a head; `None` while it is incomplete.
fn read_head(answer: &[u8]) -> Result<Option<ResponseHead>, CallerError> {
    let wrong = |what: &dyn std::fmt::Display| CallerError::Answer(what.to_string());
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX_COUNT];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(bytes) = response.parse(answer).map_err(|error| wrong(&error))? else {
        return Ok(None);
    };
    let status = StatusCode::from_u16(response.code.unwrap_or_default()).map_err(|error| wrong(&error))?;
    let length =
        response.headers.iter().find(|one| one.name.eq_ignore_ascii_case(header::CONTENT_LENGTH.as_str()));
    let length = length.and_then(|one| std::str::from_utf8(one.value).ok()?.trim().parse().ok());
    let body_bytes: usize = length.ok_or_else(|| wrong(&"it does not say how long it is"))?;
    if body_bytes > ANSWER_MAX_BYTES {
        return Err(wrong(&format!("its body would be longer than {ANSWER_MAX_BYTES} bytes")));
    }
    Ok(Some(ResponseHead { status, bytes, body_bytes }))
}

#[cfg(test)]
mod tests;
