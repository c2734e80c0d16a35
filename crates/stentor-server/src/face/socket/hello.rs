//! The first frame of each side: key and encoding from the client, limits from the server.

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use stentor_core::id::AppId;
use stentor_wire::frame;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::envelope::FrameEncoding;
use super::{REQUESTS_IN_FLIGHT_MAX_COUNT, VERSION};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::decode::decode;

/// Maximum size of a hello. It is read before authentication, and therefore small.
pub const HELLO_MAX_BYTES: usize = 4_096;

/// First frame of a client.
#[derive(Debug, Clone)]
pub struct Hello {
    /// Key of the client.
    pub key: SecretString,
    /// App that the client acts for. The operator's key belongs to no app, and names one here.
    pub app: Option<AppId>,
    /// Encoding of the requests.
    pub encoding: FrameEncoding,
}

/// The hello as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HelloFrame {
    stentor: u32,
    key: SecretString,
    app: Option<String>,
    #[serde(default)]
    encoding: FrameEncoding,
}

/// Response of the server to a valid hello.
#[derive(Debug, Serialize)]
pub(super) struct ServerGreeting<'a> {
    stentor: u32,
    server: &'static str,
    connection: &'a str,
    encoding: FrameEncoding,
    limits: GreetingLimits,
}

#[derive(Debug, Serialize)]
struct GreetingLimits {
    frame_max_bytes: usize,
    requests_in_flight_max: usize,
    idle_timeout_seconds: u64,
}

impl Hello {
    /// Parses a hello.
    pub fn read(frame: &[u8]) -> ServiceResult<Self> {
        let HelloFrame { stentor, key, app, encoding } = decode(frame)?;
        if stentor != VERSION {
            let known = format!("is {stentor}; this server speaks version {VERSION}");
            return Err(Problem::field("stentor", known));
        }
        let app = app.filter(|app| !app.is_empty()).map(|app| app.parse());
        let app = app.transpose().map_err(|_| Problem::not_found("app").at("app"))?;
        Ok(Self { key, app, encoding })
    }
}

impl<'a> ServerGreeting<'a> {
    /// Creates the greeting of the named connection.
    pub(super) fn new(
        connection: &'a str,
        encoding: FrameEncoding,
        frame_max_bytes: usize,
        idle_timeout_seconds: u64,
    ) -> Self {
        let requests_in_flight_max = encoding.in_flight_max_count();
        let limits = GreetingLimits { frame_max_bytes, requests_in_flight_max, idle_timeout_seconds };
        Self { stentor: VERSION, server: env!("CARGO_PKG_VERSION"), connection, encoding, limits }
    }
}

impl FrameEncoding {
    /// Returns the maximum number of requests in flight. Documents without numbers are answered in order, one at a time.
    pub(super) const fn in_flight_max_count(self) -> usize {
        if self.documents().is_none() { REQUESTS_IN_FLIGHT_MAX_COUNT } else { 1 }
    }
}

/// Reads exactly the bytes of a hello; `None` if the peer left before it was complete.
pub(super) async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> ServiceResult<Option<Vec<u8>>> {
    let mut header = [0; frame::HEADER_BYTES];
    if stream.read_exact(&mut header).await.is_err() {
        return Ok(None);
    }
    let length = u32::from_be_bytes(header) as usize;
    if length > HELLO_MAX_BYTES {
        let detail = format!("the first frame is a hello of at most {HELLO_MAX_BYTES} bytes");
        let hint = "see docs/faces/socket.md: four bytes of length, the most significant first, then JSON";
        return Err(Problem::new(ErrorCode::PayloadTooLarge, detail).with_hint(hint));
    }
    let mut payload = vec![0; length];
    let whole = stream.read_exact(&mut payload).await;
    Ok(whole.is_ok().then_some(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(hello: &str) -> (ErrorCode, Option<String>) {
        let problem = Hello::read(hello.as_bytes()).expect_err("refused");
        (problem.code, problem.field)
    }

    #[test]
    fn a_hello_names_version_key_app_and_encoding() {
        let hello = Hello::read(br#"{"stentor":1,"key":"sk_x"}"#).expect("a hello");
        assert_eq!((hello.app, hello.encoding), (None, FrameEncoding::Json));
        let hello = br#"{"stentor":1,"key":"sk_x","app":"app_0000000000001","encoding":"xmlrpc"}"#;
        let hello = Hello::read(hello).expect("a hello");
        assert!(hello.app.is_some() && hello.encoding == FrameEncoding::Xmlrpc);
    }

    #[test]
    fn what_is_wrong_with_a_hello_is_named() {
        let field = |name: &str| (ErrorCode::InvalidField, Some(name.to_owned()));
        assert_eq!(refused(r#"{"stentor":2,"key":"k"}"#), field("stentor"));
        assert_eq!(refused(r#"{"stentor":1}"#), field("key"));
        assert_eq!(refused(r#"{"stentor":1,"key":"k","encoding":"morse"}"#), field("encoding"));
        assert_eq!(refused(r#"{"stentor":1,"key":"k","more":1}"#), field("more"));
        let app = r#"{"stentor":1,"key":"k","app":"mine"}"#;
        assert_eq!(refused(app), (ErrorCode::NotFound, Some("app".to_owned())));
        assert_eq!(refused("[1]").0, ErrorCode::InvalidRequest);
        assert_eq!(refused("{").0, ErrorCode::InvalidRequest);
    }
}
