//! Attempts at a route, byte by byte.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use stentor_server::face::EntryRule;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The credential of an attempt.
#[derive(Debug, Clone)]
pub(super) enum Credential {
    None,
    Key(&'static str, String),
    Device(String, String),
}

/// The form in which a body does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    HalfBody,
    ZstdHead,
    GzipHead,
    LargeLength,
    Chunks,
    HalfHead,
}

/// The end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The server closed it, or could not be reached.
    Closed,
    /// The response lasts, as a stream or a wait for messages.
    Lasts,
    StillOpen,
}

/// One attempt at one route.
pub(super) struct Attempt {
    method: String,
    path: String,
    credential: Credential,
    rule: EntryRule,
    form: Form,
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = match &self.credential {
            Credential::None => "no key",
            Credential::Key(kind, _) => kind,
            Credential::Device(..) => "device",
        };
        write!(to, "{} {} {who} {:?} {:?}", self.method, self.path, self.rule, self.form)
    }
}

impl Credential {
    pub(super) const fn is_device(&self) -> bool {
        matches!(self, Self::Device(..))
    }

    fn header(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Key(_, key) => format!("authorization: Bearer {key}\r\n"),
            Self::Device(token, secret) => {
                format!("authorization: Basic {}\r\n", BASE64_STANDARD.encode(format!("{token}:{secret}")))
            }
        }
    }
}

impl Attempt {
    /// Returns all attempts at one route with one credential.
    pub(super) fn all(method: &str, path: &str, credential: &Credential, rule: EntryRule) -> Vec<Self> {
        use Form::{Chunks, GzipHead, HalfBody, HalfHead, LargeLength, ZstdHead};
        let forms = [HalfBody, ZstdHead, GzipHead, LargeLength, Chunks, HalfHead];
        forms.map(|form| Self::new(method, path, credential, rule, form)).into()
    }

    /// Returns the attempt with the head of a zstd frame that demands 2 MiB, and no more bytes.
    pub(super) fn zstd_head(method: &str, path: &str, credential: &Credential, rule: EntryRule) -> Self {
        Self::new(method, path, credential, rule, Form::ZstdHead)
    }

    fn new(method: &str, path: &str, credential: &Credential, rule: EntryRule, form: Form) -> Self {
        let (method, path, credential) = (method.to_owned(), path.to_owned(), credential.clone());
        Self { method, path, credential, rule, form }
    }

    fn bytes(&self, host: &str) -> Vec<u8> {
        let kind = if self.path.contains("import") { "application/x-ndjson" } else { "application/json" };
        let head = format!(
            "{} {} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\n{}",
            self.method,
            self.path,
            self.credential.header()
        );
        let (headers, body): (&str, &[u8]) = match self.form {
            Form::HalfBody => ("content-length: 1000\r\n\r\n", b"{\"half\":"),
            Form::ZstdHead => (
                "content-encoding: zstd\r\ncontent-length: 1000\r\n\r\n",
                &[0x28, 0xb5, 0x2f, 0xfd, 0, 11 << 3],
            ),
            Form::GzipHead => (
                "content-encoding: gzip\r\ncontent-length: 1000\r\n\r\n",
                &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255],
            ),
            Form::LargeLength => ("content-length: 16000\r\n\r\n", b""),
            Form::Chunks => ("transfer-encoding: chunked\r\n\r\n", b"5\r\n{\"a\":\r\n"),
            Form::HalfHead => ("x-half:", b""),
        };
        [head.as_bytes(), headers.as_bytes(), body].concat()
    }

    /// Sends the attempt, and leaves the connection open.
    pub(super) async fn begin(&self, host: &str) -> TcpStream {
        let mut stream = TcpStream::connect(host).await.expect("connected");
        stream.write_all(&self.bytes(host)).await.expect("written");
        stream
    }

    /// Sends the attempt, and waits until the server ends the connection.
    pub(super) async fn make(&self, host: &str, patience: Duration) -> Ending {
        let mut stream = self.begin(host).await;
        let mut answer = Vec::new();
        let reading = async {
            let mut piece = [0; 4_096];
            while let Ok(count @ 1..) = stream.read(&mut piece).await {
                answer.extend_from_slice(&piece[..count]);
                // A route with a lasting response has received all it needs.
                if self.rule.lasts() && answer.starts_with(b"HTTP/1.1 200") {
                    return Ending::Lasts;
                }
            }
            Ending::Closed
        };
        match timeout(patience, reading).await {
            Ok(ending) => ending,
            // A poll of a device waits for its messages.
            Err(_) if self.rule.lasts() && self.credential.is_device() => Ending::Lasts,
            Err(_) => Ending::StillOpen,
        }
    }
}
