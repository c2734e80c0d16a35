//! The bytes of an attack, and the connections that send them and wait.

use super::entry::{AttackKind, AttackedEntry, Spoken};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// The attackers' priority below the server and the other app (nice(2)).
const GIVING_WAY: i32 = 10;
/// Time between the beginnings of two connections: without it all would end, and begin again, at the same time.
const APART: Duration = Duration::from_millis(2);
/// Pause before a closed connection is opened again.
const AGAIN: Duration = Duration::from_millis(500);
/// The preface of HTTP/2 and an empty SETTINGS frame (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The server's limit of streams per connection.
const STREAMS_MAX_COUNT: u64 = 256;

/// The bytes of each connection, and the number of connections.
pub(super) struct AttackBytes {
    pub(super) first: Vec<u8>,
    pub(super) connections: u64,
}

/// A running attack.
pub(super) struct Pressure(Runtime);

impl Pressure {
    /// Opens all connections, one after the other, and each again when it has ended.
    pub(super) fn begin(address: SocketAddr, bytes: AttackBytes) -> anyhow::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).on_thread_start(give_way).enable_all().build()?;
        for number in 0..bytes.connections {
            let (first, begins_after) = (bytes.first.clone(), APART * u32::try_from(number)?);
            runtime.spawn(async move {
                tokio::time::sleep(begins_after).await;
                loop {
                    let _ended_in_either_way = hold(address, &first).await;
                    tokio::time::sleep(AGAIN).await;
                }
            });
        }
        Ok(Self(runtime))
    }

    /// Ends all of them.
    pub(super) fn end(self) {
        self.0.shutdown_background();
    }
}

fn give_way() {
    let thread = Some(rustix::thread::gettid());
    let own = rustix::process::getpriority_process(thread).unwrap_or_default();
    // Lowering one's own priority is always allowed; without it, the attackers would only compete harder.
    let _ = rustix::process::setpriority_process(thread, own + GIVING_WAY);
}

async fn hold(address: SocketAddr, first: &[u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(first).await?;
    let mut piece = [0; 4_096];
    while stream.read(&mut piece).await? > 0 {}
    Ok(())
}

/// An entry point as an attacker sees it.
#[derive(Clone, Copy)]
pub(super) struct AttackTarget<'a> {
    pub(super) entry_point: &'a AttackedEntry,
    pub(super) host: &'a str,
    pub(super) key: Option<&'a str>,
}

/// Returns the bytes for a target; `None` if the attack does not apply to it.
pub(super) fn bytes(target: AttackTarget<'_>, attack: AttackKind, connections: u64) -> Option<AttackBytes> {
    if attack == AttackKind::Nothing {
        return Some(AttackBytes { first: Vec::new(), connections });
    }
    let AttackTarget { entry_point, host, key } = target;
    let first = match (entry_point.spoken, attack) {
        (Spoken::Http(kind), AttackKind::Streams) => {
            let first = streams(target, kind, connections.min(STREAMS_MAX_COUNT));
            return Some(AttackBytes { first, connections: connections.div_ceil(STREAMS_MAX_COUNT) });
        }
        (Spoken::Http(kind), attack) => over_http(target, kind, attack),
        (Spoken::Socket, AttackKind::HalfBody) => half_a_frame(key?),
        (Spoken::Port(_, begins), AttackKind::HalfBody) if key.is_none() => begins.to_vec(),
        (Spoken::WebSocket, AttackKind::HalfBody) if key.is_none() => {
            half_a_web_frame(entry_point.name, host)
        }
        (Spoken::Socket | Spoken::Port(..) | Spoken::WebSocket, _) => return None,
    };
    Some(AttackBytes { first, connections })
}

fn over_http(target: AttackTarget<'_>, kind: &str, attack: AttackKind) -> Vec<u8> {
    let AttackTarget { entry_point: AttackedEntry { name, .. }, host, key } = target;
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let head = format!("{name} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\n{key}");
    let (headers, body): (&str, &[u8]) = match attack {
        AttackKind::ZstdHead => {
            ("content-encoding: zstd\r\ncontent-length: 10000\r\n\r\n", &[0x28, 0xb5, 0x2f, 0xfd, 0, 11 << 3])
        }
        AttackKind::GzipHead => (
            "content-encoding: gzip\r\ncontent-length: 10000\r\n\r\n",
            &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255],
        ),
        AttackKind::LargeLength => ("content-length: 16000\r\n\r\n", b""),
        AttackKind::Chunked => ("transfer-encoding: chunked\r\n\r\n", b"5\r\n{\"a\":\r\n"),
        AttackKind::HalfBody | AttackKind::Streams | AttackKind::Nothing => {
            ("content-length: 10000\r\n\r\n", b"{\"half\":")
        }
    };
    [head.as_bytes(), headers.as_bytes(), body].concat()
}

/// The hello of the raw socket, and the beginning of a frame of a megabyte.
fn half_a_frame(key: &str) -> Vec<u8> {
    let hello = format!("{{\"stentor\":1,\"key\":\"{key}\"}}");
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    [&length(hello.len())[..], hello.as_bytes(), &length(1_000_000), b"{\"half\":"].concat()
}

/// The upgrade to a WebSocket, and the beginning of a text of 16 KiB (RFC 6455, sections 4.1 and 5.2).
fn half_a_web_frame(name: &str, host: &str) -> Vec<u8> {
    let head = format!(
        "{name} HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    [head.as_bytes(), &[0x81, 0xfe, 0x40, 0, 0, 0, 0, 0], b"{\"messageType\":"].concat()
}

/// Streams with heads that announce a body, and without one.
fn streams(target: AttackTarget<'_>, kind: &str, count: u64) -> Vec<u8> {
    let AttackTarget { entry_point: AttackedEntry { name, .. }, host, key } = target;
    let (method, path) = name.split_once(' ').unwrap_or(("GET", name));
    let mut block = Vec::new();
    let bearer = key.map(|key| format!("Bearer {key}"));
    let mut headers = vec![
        (":method", method),
        (":scheme", "http"),
        (":authority", host),
        (":path", path),
        ("content-type", kind),
    ];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    for (name, value) in headers {
        // Literal, never indexed, neither of them Huffman coded (RFC 7541, section 6.2.3).
        block.push(0x10);
        text(name, &mut block);
        text(value, &mut block);
    }
    let mut bytes = PREFACE.to_vec();
    for stream in 0..count {
        let length = u32::try_from(block.len()).unwrap_or(u32::MAX).to_be_bytes();
        let number = u32::try_from(2 * stream + 1).unwrap_or(u32::MAX).to_be_bytes();
        // HEADERS with END_HEADERS, and without END_STREAM.
        bytes.extend([&length[1..], &[1, 4], &number, &block].concat());
    }
    bytes
}

/// Writes a text with its length as a number of seven bits and more (RFC 7541, section 5.1).
fn text(text: &str, to: &mut Vec<u8>) {
    let mut length = text.len();
    if length < 127 {
        to.push(length as u8);
    } else {
        to.push(127);
        length -= 127;
        while length >= 128 {
            to.push((length % 128 + 128) as u8);
            length /= 128;
        }
        to.push(length as u8);
    }
    to.extend(text.as_bytes());
}
